package node

import (
	"testing"
	"time"

	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver"
)

// TestCheckpointDueByLog: enough log brings a checkpoint without the interval being
// over, not more than one in the least time between them, and the other nodes get the
// newest only when one is due by time or asked for.
func TestCheckpointDueByLog(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	n, err := p.try("a", func(o *Options) { o.CheckpointLogBytes = 20_000 })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Command(t.Context(), testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for range 2 {
		before := n.Stats()[0].Checkpoints
		q := n.partitions[0].Load()
		eventually.Holds(t, "enough log for a checkpoint", func() bool {
			p.events(n, 1)
			return q.checkpoint.behind.due(20_000) || n.Stats()[0].Checkpoints > before
		})
		eventually.Holds(t, "a checkpoint by the amount of log", func() bool { return n.Stats()[0].Checkpoints > before })
	}
	if made, most := n.Stats()[0].Checkpoints, 1+int64(time.Since(begun)/leastBetween); made > most {
		t.Errorf("%d checkpoints in %v, expected %d at most", made, time.Since(begun), most)
	}
	if got := p.shelf.has(0); len(got) != 0 {
		t.Errorf("checkpoints %d were uploaded, expected none before the interval is over", got)
	}
	if err := n.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	last := n.Stats()[0].LastCheckpoint
	eventually.Holds(t, "the newest is uploaded when it is asked for", func() bool { return n.Stats()[0].SharedOffset == last })
	p.stop(n)
}

// checkedLog calls noting when it is to note how far it goes.
type checkedLog struct {
	*file.Log
	noting func()
}

func (l *checkedLog) NoteEnds() error {
	l.noting()
	return l.Log.NoteEnds()
}

// TestL1LogEndNotedFirst: a checkpoint counts as made, in the metrics too, once the log has
// noted how far it goes.
func TestL1LogEndNotedFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	log := &checkedLog{Log: f.log, noting: func() {}}
	n, err := Open(t.Context(), f.options(func(o *Options) { o.Log = log }))
	if err != nil {
		t.Fatal(err)
	}
	defer f.close(t, n)
	if _, err := n.Command(t.Context(), testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	made := n.Stats()[0].LastCheckpoint
	noted := int64(-1)
	log.noting = func() { noted = n.Stats()[0].LastCheckpoint }
	if err := n.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	log.noting = func() {}
	if now := n.Stats()[0].LastCheckpoint; noted != made || now == made {
		t.Errorf("the newest checkpoint was %d before, %d when the log noted its end, %d after; expected the second to be the first", made, noted, now)
	}
}

// TestLateCheckpointHurries: a checkpoint is not throttled once too much log would be
// replayed.
func TestLateCheckpointHurries(t *testing.T) {
	t.Parallel()
	var b behind
	b.add(100)
	b.freeze()
	if !b.due(0) || b.due(1) || b.unwritten() != 100 {
		t.Errorf("100 bytes frozen, none written: due %v, %d unwritten", b.due(1), b.unwritten())
	}
	b.wrote()
	b.add(79)
	if b.due(80) || !b.due(79) || b.unwritten() != 79 {
		t.Error("79 bytes since the newest checkpoint count otherwise")
	}
	f := newFixture(t)
	n := f.mustOpen(t)
	defer f.close(t, n)
	p := n.partitions[0].Load()
	p.checkpoint.behind.add(int(n.opts.CheckpointLogBytes + n.opts.CheckpointLogBytes/8))
	if d := p.throttled(lateShare * time.Second); d != time.Second {
		t.Errorf("too much log would be replayed, and it pauses for %v of %v", d, lateShare*time.Second)
	}
}

// TestCheckpointsAsked: a checkpoint that is asked for while another one is written is not
// lost, one that is due by the amount of log is asked for once, one that is late is written
// with shorter pauses, and one that is later, or that a request waits for, without.
func TestCheckpointsAsked(t *testing.T) {
	t.Parallel()
	c := newCheckpointing()
	takes := func(share int) bool {
		return c.throttled(lateShare*time.Second, 100) == time.Duration(share)*time.Second
	}
	c.request()
	c.request()
	c.noteApplied(99, 100)
	if len(c.due) != 1 || len(c.dueByLog) != 0 {
		t.Errorf("%d asked for, %d due by the log", len(c.due), len(c.dueByLog))
	}
	c.noteApplied(1, 100)
	c.noteApplied(11, 100)
	if len(c.dueByLog) != 1 || !takes(lateShare) {
		t.Error("111 of 100 bytes: not due, or late already")
	}
	c.noteApplied(1, 100)
	if !takes(1) {
		t.Error("112 of 100 bytes, and pauses are as long as before, or there are none")
	}
	c.noteApplied(12, 100)
	if !takes(1) {
		t.Error("124 of 100 bytes, and it is written without pauses already")
	}
	c.noteApplied(1, 100)
	if !takes(0) {
		t.Error("125 of 100 bytes, and it may be throttled")
	}
	c.behind.freeze()
	finished := c.finished.Wait()
	c.wrote(7, time.Second)
	c.wrote(9, time.Second)
	if c.last.Load() != 9 || c.written.Load() != 2 || c.writtenNs.Load() != int64(2*time.Second) || !closed(finished) || !takes(lateShare) {
		t.Errorf("after two: the newest at %d, %d written", c.last.Load(), c.written.Load())
	}
	c.requestFirst()
	if len(c.due) != 1 || !takes(0) {
		t.Error("the first after a replay: not asked for, or it may be throttled")
	}
	if c.wrote(11, time.Second); !takes(lateShare) {
		t.Error("the first is written, and the next one may not be throttled")
	}
	c.urgent.Add(1)
	if !takes(0) {
		t.Error("a request waits for it, and it may be throttled")
	}
}
