package resolver

import (
	"context"
	"encoding/binary"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine"
)

// flowNode is a machine with its log and checkpoints on a file system in memory.
// It appends a record only when told to, so that a run is a function of its seed.
type flowNode struct {
	t       testing.TB
	ckpt    checkpoint.Dir
	log     [][]byte
	m       *Machine
	credits int64 // of the account when it is opened
	seq     uint64
	now     int64 // the clock of the one who appends
	rows    query.Batch
	out     Outcome
	steps   int   // of flows in a record at most
	budget  int   // enrolments that a record begins at most
	scan    int   // profiles looked at in a record for a flow that goes live
	loaded  int64 // offset of the checkpoint that the machine was made from
	saved   int64 // offset of the newest checkpoint
}

func newFlowNode(t testing.TB, settings Settings, credits int64, steps, scan int) *flowNode {
	n := &flowNode{t: t, ckpt: checkpoint.Dir{FS: vfs.NewMem(), Root: "p"}, credits: credits, now: 1_000_000_000_000, steps: steps, budget: steps, scan: scan}
	n.open()
	n.record(eventlog.KindCommand, eventlog.AppendCommand(nil, CommandBootstrap, must.JSON(testBootstrap(settings))))
	return n
}

func (n *flowNode) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *flowNode) account() *account.State { return n.m.accounts[testAccount] }

func (n *flowNode) view() *View { return n.m.View(nil, n.account().Number) }

// open makes the machine from the newest checkpoint and the log behind it.
func (n *flowNode) open() {
	n.t.Helper()
	n.must(n.ckpt.FS.MkdirAll(n.ckpt.Root, 0o755))
	n.must(n.ckpt.Prepare())
	var f checkpoint.Manifest
	var ids []eventlog.RecordID
	list, err := n.ckpt.List()
	n.must(err)
	if len(list) > 0 {
		f, ids, err = n.ckpt.ReadManifest(list[len(list)-1])
		n.must(err)
	}
	n.must(n.ckpt.Restore(f))
	s, err := state.Open(n.ckpt.FS, n.ckpt.Path(checkpoint.DirLive), 1<<20, state.NewPebbleLogger(slog.New(slog.DiscardHandler)))
	n.must(err)
	var runs []*dedup.Run
	for _, name := range f.Runs {
		r, err := dedup.OpenRun(n.ckpt.FS, n.ckpt.Path(checkpoint.DirKeys, name), name)
		n.must(err)
		runs = append(runs, r)
	}
	n.m, err = loadMachine(s, f, ids, runs)
	n.must(err)
	n.m.flows.Bounds.Steps, n.m.flows.Bounds.Scan, n.m.flows.Bounds.Enrolments = n.steps, n.scan, n.budget
	err = n.m.adoptSegments(n.ckpt.ReadSegments(f.Segments))
	n.must(err)
	n.loaded = f.Next
	var out Outcome
	var rows query.Batch
	for n.m.next < int64(len(n.log)) {
		n.apply(n.m.next, &rows, &out)
	}
}

// close gives up the machine, as a crash does.
func (n *flowNode) close() {
	for _, r := range n.m.idempotencyKeys.Runs {
		_ = r.Close()
	}
	n.must(n.m.store.DB.Close())
}

func (n *flowNode) checkpoint() {
	n.t.Helper()
	if n.saved == n.m.next || n.m.Lagging() { // nor does a partition write one then
		return
	}
	n.saved = n.m.next
	f := n.m.Freeze()
	w, err := n.ckpt.Write(f, n.m.store.DB, nil, nil)
	n.must(err)
	n.m.Thaw(w)
	_, err = n.ckpt.Prune(-1)
	n.must(err)
}

// crash throws the machine away and makes another (R1: they are equal).
func (n *flowNode) crash() {
	n.t.Helper()
	before, err := n.m.Hash()
	n.must(err)
	n.close()
	n.open()
	after, err := n.m.Hash()
	n.must(err)
	if before != after {
		n.t.Fatalf("R1: the state at %d differs after a crash and a replay from %d", n.m.next, n.loaded)
	}
}

// replayed is the hash of a machine that applied the whole log and never crashed.
func (n *flowNode) replayed() string {
	n.t.Helper()
	fresh := &flowNode{t: n.t, ckpt: checkpoint.Dir{FS: vfs.NewMem(), Root: "p"}, credits: n.credits, steps: n.steps, budget: n.budget, scan: n.scan, log: n.log}
	fresh.open()
	defer fresh.close()
	sum, err := fresh.m.Hash()
	n.must(err)
	return sum
}

func (n *flowNode) apply(offset int64, rows *query.Batch, out *Outcome) {
	n.t.Helper()
	recordLog(n.t, n.m, n.log[offset])
	if err := n.m.Apply(offset, n.log[offset], rows, out); err != nil {
		n.t.Fatalf("record %d: %v", offset, err)
	}
	if offset == 0 {
		a := n.account()
		a.EmailCredits = n.credits
		n.m.saveAccount(a)
	}
}

// record appends a record with the present stamp and applies it.
func (n *flowNode) record(kind eventlog.Kind, body []byte) *Outcome {
	n.t.Helper()
	n.seq++
	env := eventlog.Envelope{Kind: kind, Account: testAccount, StampMs: n.now}
	if kind == eventlog.KindTick || kind == eventlog.KindContinue {
		env.Account = 0
	}
	binary.LittleEndian.PutUint64(env.ID[:], n.seq)
	n.log = append(n.log, append(env.Append(nil), body...))
	n.apply(int64(len(n.log)-1), &n.rows, &n.out)
	return &n.out
}

// work is the next piece of the past that a segment needs, nil for none.
func (n *flowNode) work() []byte {
	n.t.Helper()
	a := n.account()
	w, ok := a.Engine.Work(func(uint32) bool { return false })
	switch {
	case !ok:
		return nil
	case w.Scan != nil:
		snap := n.view().Snapshot()
		defer snap.Close() // it only gives memory back
		s := engine.NewScanner(w.Scan)
		n.must(snap.Scan(context.Background(), func(o uint32, f *segment.Facts) error { s.Add(o, f); return nil }))
		chunk, err := s.Chunk(true)
		n.must(err)
		return chunk
	}
	l := engine.NewLoader(w.State)
	for i := range n.rows.Rows() {
		props := n.rows.Properties.At(i)
		if n.rows.Offset[i] >= w.State.UpTo || string(n.rows.EventType.At(i)) != w.State.Event || w.State.AfterMs != nil && n.rows.TimeMs[i] <= *w.State.AfterMs {
			continue
		}
		matches := true
		for _, p := range w.State.Where {
			matches = matches && p.Match(props, 0)
		}
		if matches {
			l.Add(a.Profiles.Root(n.rows.Ordinal[i]), n.rows.TimeMs[i], props)
		}
	}
	chunk, last := l.Chunk(1 << 20)
	if !last {
		n.t.Fatal("the past of a segment is too large for this test")
	}
	return chunk
}
