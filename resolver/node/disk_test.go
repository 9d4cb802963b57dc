package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/fake"
)

// TestFullDiskHoldsCheckpointsUp: while there is no space for the state, events are
// taken up to the bound on what changed in memory, reads continue and nothing is left of
// checkpoints that were begun; with space again they are written, and hold everything.
func TestFullDiskHoldsCheckpointsUp(t *testing.T) {
	t.Parallel()
	testlevel.SkipQuick(t, "fills a disk")
	f := newFixture(t)
	disk := fake.NewScarceFS(f.fs)
	start := func() *Node {
		t.Helper()
		n, err := Open(context.Background(), f.options(func(o *Options) {
			o.FS, o.CheckpointInterval, o.GenerationBytes, o.MaxBacklog = disk, 10*time.Millisecond, 256<<10, 5
			o.End = func(why string) { t.Errorf("the process ends: %s", why) }
		}))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := start()
	if _, err := n.Command(context.Background(), testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	sent := 0
	sendWithin := func(patience time.Duration) error {
		env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount}
		if err := n.stamp(&env); err != nil {
			t.Fatal(err)
		}
		e := fake.Event("external_id", fmt.Sprint("person ", sent))
		e.Attributes = fmt.Appendf(nil, `{"a":%q}`, strings.Repeat("x", 4000))
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		var out resolver.Outcome
		err := n.Submit(ctx, testAccount, fake.AppendEvents(env.Append(nil), []eventlog.Event{e}), &out)
		if !errors.Is(err, resolver.ErrOverloaded) {
			sent++ // stored, though perhaps not applied in time
		}
		return err
	}
	send := func() error { return sendWithin(time.Minute) }
	stats := func() Stats { return n.Stats()[0] }
	for range 2 {
		for range 10 {
			if err := send(); err != nil {
				t.Fatal(err)
			}
		}
		eventually.Holds(t, "a checkpoint", func() bool { return stats().LastCheckpoint == stats().Applied })
		last := stats().LastCheckpoint
		disk.Full.Store(true)
		taken := 0
		eventually.Holds(t, "events are refused", func() bool {
			err := sendWithin(200 * time.Millisecond) // some wait for space
			if err == nil {
				taken++
			}
			return errors.Is(err, resolver.ErrOverloaded)
		})
		if taken < 10 || n.Err() != nil || !stats().DiskFull || stats().LastCheckpoint != last {
			t.Fatalf("%d were taken, %v, %+v", taken, n.Err(), stats())
		}
		if c, err := viewed(context.Background(), n, testAccount); err != nil || c == 0 {
			t.Fatal(c, err)
		}
		disk.Full.Store(false)
		eventually.Holds(t, "events are taken again", func() bool { return send() == nil })
		eventually.Holds(t, "a checkpoint", func() bool { return stats().LastCheckpoint == stats().Applied && !stats().DiskFull })
	}
	// A stop on a full disk leaves no checkpoint, and no half of one.
	disk.Full.Store(true)
	if err := send(); err != nil {
		t.Fatal(err)
	}
	f.close(t, n)
	disk.Full.Store(false)
	names, err := f.fs.List("state/p0/checkpoints")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, checkpoint.TmpPrefix) {
			t.Errorf("%s is left", name)
		}
	}
	f.openLog(t)
	n = start()
	if got := stats().Profiles; got != int64(sent) {
		t.Errorf("%d profiles, want %d", got, sent)
	}
	f.close(t, n)
}
