package resolver

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine"
)

// lockstep are machines that are given the same records: whole has all accounts,
// each of parts those of its partition.
type lockstep struct {
	t       *testing.T
	rng     *rand.Rand
	fs      vfs.FS
	src     *checkpoint.Dir
	whole   *Machine
	parts   []*Machine
	pasts   map[uint64]*query.Batch // what each account's past has, for chunks
	chunks  int
	records int
}

// outcome is what one machine made of a record.
type outcome struct {
	out  Outcome
	rows query.Batch
}

func (l *lockstep) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func newLockstep(t *testing.T, rng *rand.Rand) *lockstep {
	l := &lockstep{t: t, rng: rng, fs: vfs.NewMem(), pasts: map[uint64]*query.Batch{}}
	l.src = &checkpoint.Dir{FS: l.fs, Root: "from/p0"}
	l.must(l.fs.MkdirAll(l.src.Root, 0o755))
	l.must(l.src.Prepare())
	m, err := LoadCheckpoint(l.src, checkpoint.Manifest{}, nil, 1<<20, discard())
	l.must(err)
	l.whole = m
	t.Cleanup(func() {
		for _, m := range append(l.parts, l.whole) {
			if m != nil {
				l.must(closeAll(m.store, m.idempotencyKeys.Runs))
			}
		}
	})
	return l
}

func (l *lockstep) part(account uint64) *Machine { return l.parts[account%uint64(len(l.parts))] }

// pass lets a machine pass over the record of an account it does not have.
func pass(m *Machine, env eventlog.Envelope) {
	m.next++
	m.logTime = max(m.logTime, env.StampMs)
	m.records.Add(env.ID)
}

// apply gives a record to all machines and compares what they say of it.
func (l *lockstep) apply(rec []byte) {
	l.t.Helper()
	env, _, err := eventlog.DecodeEnvelope(rec)
	l.must(err)
	l.records++
	var whole outcome
	if err := l.whole.Apply(l.whole.next, rec, &whole.rows, &whole.out); err != nil {
		l.t.Fatalf("record of account %d: %v", env.Account, err)
	}
	for account := range l.whole.accounts {
		past := l.pasts[account]
		if past == nil {
			past = new(query.Batch)
			l.pasts[account] = past
		}
		appendRows(past, &whole.rows, account)
	}
	if l.parts == nil {
		return
	}
	var merged query.Batch
	for i, m := range l.parts {
		if env.Account != 0 && int(env.Account%uint64(len(l.parts))) != i {
			pass(m, env)
			continue
		}
		var one outcome
		if err := m.Apply(m.next, rec, &one.rows, &one.out); err != nil {
			l.t.Fatalf("partition %d, record of account %d: %v", i, env.Account, err)
		}
		for _, a := range m.byIndex {
			appendRows(&merged, &one.rows, a.Number)
		}
		if env.Account == 0 {
			continue
		}
		if got, want := describeOutcome(&one.out), describeOutcome(&whole.out); got != want {
			l.t.Fatalf("record %d of account %d is answered with\n%s, was with\n%s", l.whole.next-1, env.Account, got, want)
		}
		if got, want := describeRows(&one.rows, env.Account), describeRows(&whole.rows, env.Account); got != want {
			l.t.Fatalf("record %d of account %d has the rows\n%s, had\n%s", l.whole.next-1, env.Account, got, want)
		}
	}
}

// appendRows appends the events and aliases of one account.
func appendRows(to, from *query.Batch, account uint64) {
	for i := range from.Rows() {
		if from.Account[i] != account {
			continue
		}
		to.Account, to.Offset, to.Index = append(to.Account, account), append(to.Offset, from.Offset[i]), append(to.Index, from.Index[i])
		to.Ordinal, to.TimeMs = append(to.Ordinal, from.Ordinal[i]), append(to.TimeMs, from.TimeMs[i])
		to.EventType.Append(from.EventType.At(i))
		to.Properties.Append(from.Properties.At(i))
		to.IdempotencyKey.Append(from.IdempotencyKey.At(i))
	}
}

func describeOutcome(o *Outcome) string {
	return fmt.Sprintf("%d %v %v %s %d", o.Offset, o.Refusal, o.Events, o.Reply, o.NextRow)
}

func describeRows(b *query.Batch, account uint64) string {
	var own query.Batch
	appendRows(&own, b, account)
	var text bytes.Buffer
	for i := range own.Rows() {
		fmt.Fprintf(&text, "%d.%d %d %d %s %s %s\n", own.Offset[i], own.Index[i], own.Ordinal[i], own.TimeMs[i], own.EventType.At(i), own.Properties.At(i), own.IdempotencyKey.At(i))
	}
	for _, a := range b.Aliases {
		if a.Account == account {
			fmt.Fprintf(&text, "%+v\n", a)
		}
	}
	for _, x := range b.Transitions {
		if x.Account == account {
			fmt.Fprintf(&text, "%+v\n", x)
		}
	}
	return text.String()
}

func (l *lockstep) machines() []*Machine { return append([]*Machine{l.whole}, l.parts...) }

func (l *lockstep) pending() bool {
	return slices.ContainsFunc(l.machines(), func(m *Machine) bool { return m.Pending() > 0 || m.Lagging() })
}

func (l *lockstep) own(kind eventlog.Kind, account uint64, body []byte) []byte {
	env := eventlog.Envelope{Kind: kind, Account: account, StampMs: l.whole.logTime}
	binary.LittleEndian.PutUint64(env.ID[:], uint64(l.whole.next))
	env.ID[15] = 0xee
	return append(env.Append(nil), body...)
}

// finish does what nodes do by themselves until nothing is left: how much of it
// one record does depends on who else is there, where it ends does not.
func (l *lockstep) finish() {
	l.t.Helper()
	for n := 0; ; n++ {
		if n > 30_000 {
			l.t.Fatal("work without an end")
		}
		for n := 0; l.pending(); n++ {
			if n > 30_000 {
				l.t.Fatal("work without an end")
			}
			l.apply(l.own(eventlog.KindContinue, 0, nil))
		}
		chunk := false
		for _, a := range slices.Sorted(maps.Keys(l.whole.accounts)) {
			b := l.work(l.whole, a)
			if l.parts != nil {
				if got := l.work(l.part(a), a); !bytes.Equal(got, b) {
					l.t.Fatalf("account %d: the past of a segment is asked for in another way", a)
				}
			}
			if b != nil {
				l.chunks++
				l.apply(l.own(eventlog.KindChunk, a, b))
				chunk = true
			}
		}
		if !chunk {
			return
		}
	}
}

// work is the next piece of the past that a segment of the account needs.
func (l *lockstep) work(m *Machine, account uint64) []byte {
	l.t.Helper()
	a := m.accounts[account]
	w, ok := a.Engine.Work(func(uint32) bool { return false })
	switch {
	case !ok:
		return nil
	case w.Scan != nil:
		snap := m.View(nil, a.Number).Snapshot()
		defer snap.Close() // it only gives memory back
		s := engine.NewScanner(w.Scan)
		l.must(snap.Scan(context.Background(), func(o uint32, f *segment.Facts) error { s.Add(o, f); return nil }))
		chunk, err := s.Chunk(true)
		l.must(err)
		return chunk
	}
	rows, load := l.pasts[account], engine.NewLoader(w.State)
	for i := range rows.Rows() {
		props := rows.Properties.At(i)
		if rows.Offset[i] >= w.State.UpTo || string(rows.EventType.At(i)) != w.State.Event || w.State.AfterMs != nil && rows.TimeMs[i] <= *w.State.AfterMs {
			continue
		}
		matches := true
		for _, p := range w.State.Where {
			matches = matches && p.Match(props, 0)
		}
		if matches {
			load.Add(a.Profiles.Root(rows.Ordinal[i]), rows.TimeMs[i], props)
		}
	}
	chunk, last := load.Chunk(1 << 20)
	if !last {
		l.t.Fatal("the past of a segment is too large for this test")
	}
	return chunk
}

// compare compares every account's state.
func (l *lockstep) compare(when string) {
	l.t.Helper()
	want, err := l.whole.accountHashes(context.Background())
	l.must(err)
	for i, m := range l.parts {
		if m.next != l.whole.next || m.logTime != l.whole.logTime {
			l.t.Fatalf("%s: partition %d is at %d, %d; want %d, %d", when, i, m.next, m.logTime, l.whole.next, l.whole.logTime)
		}
		have, err := m.accountHashes(context.Background())
		l.must(err)
		for a, sum := range have {
			if sum != want[a] {
				l.t.Fatalf("%s: account %d is not what it would have been", when, a)
			}
			delete(want, a)
		}
	}
	if len(want) > 0 {
		l.t.Fatalf("%s: %d accounts are nowhere", when, len(want))
	}
}

// split writes a checkpoint, splits it and reads what came of it. The machine
// that was split continues beside.
func (l *lockstep) split(partitions int) {
	l.t.Helper()
	l.finish()
	f := l.whole.Freeze()
	w, err := l.src.Write(f, l.whole.store.DB, nil, nil)
	l.must(err)
	l.whole.Thaw(w)
	// A copy, as the machine continues in the directory.
	_, err = vfs.Clone(l.fs, l.fs, l.src.Root, "copy/p0")
	l.must(err)
	res, err := Split(context.Background(), SplitOptions{FS: l.fs, From: "copy", To: "to", Partitions: partitions, Offset: l.whole.next, Logger: discard()})
	l.must(err)
	// Again, as after a crash.
	again, err := Split(context.Background(), SplitOptions{FS: l.fs, From: "copy", To: "to", Partitions: partitions, Offset: l.whole.next, Logger: discard()})
	l.must(err)
	if !reflect.DeepEqual(res, again) || len(res.Checkpoints) != partitions || res.Accounts != int64(len(l.whole.accounts)) {
		l.t.Fatalf("%+v, then %+v", res, again)
	}
	for i := range partitions {
		c := &checkpoint.Dir{FS: l.fs, Root: l.fs.PathJoin("to", fmt.Sprintf("p%d", i))}
		m, err := openCheckpointAt(c, l.whole.next, discard())
		l.must(err)
		l.parts = append(l.parts, m)
	}
	l.compare("after the split")
}

// stream are the records of one account.
type stream struct {
	account uint64
	records [][]byte
}

// streamOf makes of a log of a single account that of another one.
func (l *lockstep) streamOf(log [][]byte, account uint64, first bool) *stream {
	s := &stream{account: account}
	for i, rec := range log {
		env, body, err := eventlog.DecodeEnvelope(rec)
		l.must(err)
		switch {
		case env.Kind == eventlog.KindChunk, env.Kind == eventlog.KindContinue:
			continue // these are rebuilt
		case i == 0:
			b := testBootstrap(DefaultSettings())
			// Each hashes by a key of its own.
			b.HashKey = fmt.Sprintf("%032x", account)
			if first {
				body = eventlog.AppendCommand(nil, CommandBootstrap, must.JSON(b))
				break
			}
			b.Company.ID, b.User.ID, b.APIKey.ID = fmt.Sprintf("com_%d", account), fmt.Sprintf("usr_%d", account), fmt.Sprintf("key_%d", account)
			body = eventlog.AppendCommand(nil, CommandCompanyCreate, must.JSON(b))
		}
		// An e-mail is one company's: companies share none here.
		body = bytes.ReplaceAll(bytes.Clone(body), []byte("@x.io"), []byte("@"+string('a'+byte(account%16))+".io"))
		if env.Account != 0 {
			env.Account = account
		}
		binary.LittleEndian.PutUint64(env.ID[8:], account^binary.LittleEndian.Uint64(env.ID[8:]))
		s.records = append(s.records, append(env.Append(nil), body...))
	}
	return s
}

// nodeLog is what random commands and events leave in the log of a node.
func nodeLog(t *testing.T, seed uint64) (out [][]byte) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 9))
	fs, now := vfs.NewMem(), int64(1_000_000_000_000)
	log, err := file.Open("log", file.Options{FS: fs, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	ids := &seededReader{Rand: rand.New(rand.NewPCG(seed, 4))}
	node, err := Serve(context.Background(), ServeOptions{FS: fs, Dir: "state", Log: wholeLog{Log: log}, History: &modelHistory{Rand: rand.New(rand.NewPCG(seed, 5))}, Rand: ids,
		Now: func() time.Time { return time.UnixMilli(now) }, Feed: feed.Options{Delay: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(node, log)
	if _, err := node.Command(context.Background(), testAccount, CommandBootstrap, testBootstrap(DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	world := pick(rng, 3, 10, 30)
	for i := range 60 {
		switch rng.IntN(4) {
		case 0:
			randomSegmentCommand(rng, node)
		case 1, 2:
			randomContactCommand(rng, world, node)
		default:
			ev := randomEvent(rng, world, now)
			ev.IdempotencyKey = fmt.Appendf(nil, "%d", rng.IntN(40))
			env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount, StampMs: now + int64(i)}
			_, _ = ids.Read(env.ID[:])
			var o Outcome
			if err := node.Submit(context.Background(), testAccount, appendEvents(env.Append(nil), []eventlog.Event{ev}), &o); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, end, err := log.Bounds(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := log.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range end {
		e, err := r.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, bytes.Clone(e.Data))
	}
	return out
}

// TestSplitGoesOnAsBefore splits the state of several random accounts and goes
// on: each account is what it would have been in one partition, answers the same
// and has the same rows for history (R1), after the split and after everything
// that follows: ids, flows and their timers, segments, the outbox, contacts,
// keys of idempotency.
//
// MUSTER_SPLIT_SEED repeats one seed.
func TestSplitGoesOnAsBefore(t *testing.T) {
	t.Parallel()
	seeds := testlevel.Count[uint64](4, 12)
	if seed, err := strconv.ParseUint(os.Getenv("MUSTER_SPLIT_SEED"), 10, 64); err == nil {
		splitGoesOn(t, seed)
		return
	}
	if testlevel.Long() {
		seeds = 300
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			splitGoesOn(t, seed)
		})
	}
}

func splitGoesOn(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 8))
	l := newLockstep(t, rng)
	var streams []*stream
	left := 0
	for i := range 4 {
		var log [][]byte
		if i%2 == 0 {
			s := newFlowSim(t, seed*100+uint64(i))
			s.live(15 + rng.IntN(25))
			log = s.n.log
			s.n.close()
		} else {
			log = nodeLog(t, seed*100+uint64(i))
		}
		x := l.streamOf(log, (rng.Uint64()|1<<40)&^15|uint64(i), i == 0)
		left += len(x.records)
		streams = append(streams, x)
	}
	partitions, splitAt := pick(rng, 1, 2, 3, 5), rng.IntN(left)
	l.apply(streams[0].records[0])
	streams[0].records = streams[0].records[1:]
	for n := 0; ; n++ {
		if n == splitAt {
			l.split(partitions)
		}
		streams = slices.DeleteFunc(streams, func(s *stream) bool { return len(s.records) == 0 })
		if len(streams) == 0 {
			break
		}
		s := pick(rng, streams...)
		l.apply(s.records[0])
		s.records = s.records[1:]
		l.finish()
		if l.parts != nil && rng.IntN(20) == 0 {
			l.compare("amid")
		}
	}
	if l.parts == nil {
		l.split(partitions)
	}
	for range 5 {
		l.whole.logTime += rng.Int64N(3_600_000)
		for _, m := range l.parts {
			m.logTime = l.whole.logTime
		}
		l.apply(l.own(eventlog.KindTick, 0, nil))
		l.finish()
	}
	l.compare("at the end")
	t.Logf("seed %d: %d records, %d chunks, %d partitions", seed, l.records, l.chunks, partitions)
}

// TestSplitRefuses what it cannot make anything of.
func TestSplitRefuses(t *testing.T) {
	t.Parallel()
	l := newLockstep(t, rand.New(rand.NewPCG(1, 1)))
	s := l.streamOf(nodeLog(t, 1), 12, true)
	for _, r := range s.records {
		l.apply(r)
	}
	l.split(2)
	for offset, want := range map[int64]error{l.whole.next + 1: ErrSplitBehind, l.whole.next: nil} {
		_, err := Split(t.Context(), SplitOptions{FS: l.fs, From: "copy", To: "other", Partitions: 2, Offset: offset})
		if !errors.Is(err, want) {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
	if _, err := Split(t.Context(), SplitOptions{FS: l.fs, From: "nowhere", To: "other", Partitions: 2, Offset: 3}); !errors.Is(err, ErrSplitBehind) {
		t.Error(err)
	}
}
