package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/fake"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// damageFixture is a directory with two checkpoints that share files, and what a
// node must answer of it.
type damageFixture struct {
	fs      *vfs.MemFS
	history *fake.History
	next    int64
	hash    string
	opened  uint64
}

func newDamageFixture(t *testing.T, seed uint64) *damageFixture {
	t.Helper()
	d := &damageFixture{fs: vfs.NewMem(), history: &fake.History{Rand: rand.New(rand.NewPCG(1, 1))}}
	n, log := d.mustOpen(t, d.fs, d.history)
	if _, err := n.Command(context.Background(), testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 9))
	for i := range 60 {
		if i%4 == 0 {
			randomSegmentCommand(rng, n)
		}
		d.submit(t, rng, n, i)
		if i == 25 || i == 40 {
			if err := n.Checkpoint(); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.note(t, n)
	d.stop(t, n, log)
	return d
}

// submit sends five events with idempotency keys of their own.
func (d *damageFixture) submit(t *testing.T, rng *rand.Rand, n *Node, i int) {
	t.Helper()
	evs := make([]eventlog.Event, 5)
	for j := range evs {
		evs[j] = fake.RandomEvent(rng, 30, damageNow.UnixMilli())
		evs[j].IdempotencyKey = fmt.Appendf(nil, "%d-%d", i, j)
	}
	env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount, StampMs: damageNow.UnixMilli() + int64(i)}
	for j := range env.ID {
		env.ID[j] = byte(rng.Uint32())
	}
	var out resolver.Outcome
	if err := n.Submit(context.Background(), testAccount, fake.AppendEvents(env.Append(nil), evs), &out); err != nil {
		t.Fatal(err)
	}
}

// note remembers what the node's state is, once all that it does by itself is done.
func (d *damageFixture) note(t *testing.T, n *Node) {
	t.Helper()
	eventually.Succeeds(t, func() error {
		var cut query.Cut
		working := false
		if err := n.Read(context.Background(), testAccount, func(v *resolver.View) error {
			cut, working = v.Cut(), n.partitions[0].Load().mu.m.Pending() > 0
			for _, s := range v.Segments().All() {
				_, live := v.Segments().Members(s.ID, v.LogTimeMs())
				working = working || !live
			}
			return nil
		}); err != nil {
			return err
		}
		if working {
			return errors.New("segments are being built")
		}
		if err := n.WaitHistory(context.Background(), cut); err != nil {
			return err
		}
		next, hash, err := n.StateHash(0)
		d.next, d.hash = next, hash
		if err == nil && next != cut.UpTo {
			err = errors.New("records keep coming")
		}
		return err
	})
}

var damageNow = time.UnixMilli(1_000_000_000_000)

func (d *damageFixture) open(fs vfs.FS, h query.History, logger *slog.Logger) (*Node, *file.Log, error) {
	log, err := file.Open("log", file.Options{FS: fs, Partitions: 1})
	if err != nil {
		return nil, nil, err
	}
	d.opened++
	n, err := Open(context.Background(), Options{FS: fs, Dir: "state", Log: log, LogName: fmt.Sprintf("log %016x", log.ID()), History: h, Logger: logger,
		Now: func() time.Time { return damageNow }, Rand: &fake.Random{Rand: rand.New(rand.NewPCG(3, d.opened))},
		CheckpointInterval: time.Hour, Feed: FeedOptions{Delay: time.Millisecond, RetryMax: time.Millisecond}})
	if err != nil {
		err = errors.Join(err, log.Close())
	}
	return n, log, err
}

func (d *damageFixture) mustOpen(t *testing.T, fs vfs.FS, h query.History) (*Node, *file.Log) {
	t.Helper()
	n, log, err := d.open(fs, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	return n, log
}

func (d *damageFixture) stop(t *testing.T, n *Node, log *file.Log) {
	t.Helper()
	if err := n.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// copy is the directory on a file system of its own, its links kept.
func (d *damageFixture) copy(t *testing.T) vfs.FS {
	t.Helper()
	to := vfs.NewMem()
	names, err := d.fs.List("")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if _, err := vfs.Clone(d.fs, to, n, n); err != nil {
			t.Fatal(err)
		}
	}
	offsets, err := (&checkpoint.Dir{FS: to, Root: "state/p0"}).List()
	if err != nil {
		t.Fatal(err)
	}
	// Checkpoints share the files that both have, by hard links.
	for _, newer := range offsets[1:] {
		older := to.PathJoin("state", "p0", checkpoint.DirCheckpoints, checkpoint.Name(offsets[0]))
		dir := to.PathJoin("state", "p0", checkpoint.DirCheckpoints, checkpoint.Name(newer))
		for _, path := range fake.FilesBelow(t, to, older) {
			rel := strings.TrimPrefix(path, older)
			if !checkpoint.WrittenOnce(strings.TrimPrefix(strings.TrimPrefix(rel, "/"), checkpoint.DirPebble+"/")) && !checkpoint.WrittenOnce(strings.TrimPrefix(rel, "/")) {
				continue
			}
			if _, err := to.Stat(dir + rel); err == nil {
				if err := errors.Join(to.Remove(dir+rel), to.Link(path, dir+rel)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return to
}

// check opens a directory that was damaged and compares it with what it was.
func (d *damageFixture) check(t *testing.T, fs vfs.FS, h *fake.History) error {
	t.Helper()
	n, log, err := d.open(fs, h, nil)
	if err != nil {
		return err
	}
	next, hash, err := n.StateHash(0)
	if err == nil && (next != d.next || hash != d.hash) {
		err = fmt.Errorf("the state at %d is another one than that at %d before", next, d.next)
	}
	if err == nil {
		err = waitHistory(t, n, query.Cut{UpTo: d.next})
	}
	if err == nil {
		err = h.Same(d.history)
	}
	return errors.Join(err, n.Close(context.Background()), log.Close())
}

// TestL1R1DamagedCheckpoint: whatever single file of the newest checkpoint is
// damaged, in whatever way, in one checkpoint or in both that share it, a start
// serves all that was acknowledged: the state is the same to the last bit (L1, R1).
func TestL1R1DamagedCheckpoint(t *testing.T) {
	t.Parallel()
	d := newDamageFixture(t, 1)
	offset, err := resolver.NewestCheckpoint(d.fs, "state", 0)
	if err != nil || offset != d.next {
		t.Fatal(offset, d.next, err)
	}
	newest := d.fs.PathJoin("state", "p0", checkpoint.DirCheckpoints, checkpoint.Name(offset))
	files := fake.FilesBelow(t, d.fs, newest)
	damaged := 0
	for _, path := range files {
		for _, kind := range fake.DamageKinds {
			fs := d.copy(t)
			if !fake.DamageFile(t, fs, path, kind) {
				continue
			}
			if err := d.check(t, fs, d.history.Clone()); err != nil {
				t.Errorf("%s %s: %v", path, kind.Name, err)
			}
			damaged++
		}
	}
	for _, part := range []string{"/" + checkpoint.FileManifest, "/" + checkpoint.FileRecords, "/pebble/marker.manifest", "/pebble/OPTIONS", "/keys/", "/segments/"} {
		if !slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(strings.TrimPrefix(f, newest), part) }) {
			t.Errorf("no file %s… was damaged", part)
		}
	}
	t.Logf("%d files, %d damaged directories", len(files), damaged)
}

// TestL1R1ForeignFileInCheckpoint: a file of another directory's checkpoint is not
// taken for one's own, also where it has the same name (L1, R1).
func TestL1R1ForeignFileInCheckpoint(t *testing.T) {
	t.Parallel()
	d, other := newDamageFixture(t, 1), newDamageFixture(t, 2)
	newest := func(d *damageFixture) string {
		offset, err := resolver.NewestCheckpoint(d.fs, "state", 0)
		if err != nil {
			t.Fatal(err)
		}
		return d.fs.PathJoin("state", "p0", checkpoint.DirCheckpoints, checkpoint.Name(offset))
	}
	dirs := [2]string{newest(d), newest(other)}
	swapped := 0
	theirs := fake.FilesBelow(t, other.fs, dirs[1])
	for i, path := range fake.FilesBelow(t, d.fs, dirs[0]) {
		rel := strings.TrimPrefix(path, dirs[0])
		from := dirs[1] + rel
		if !slices.Contains(theirs, from) {
			from = theirs[i%len(theirs)]
		}
		content, err := statefiles.Read(other.fs, from)
		if err != nil {
			t.Fatal(err)
		}
		own, err := statefiles.Read(d.fs, path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(content, own) {
			continue
		}
		fs := d.copy(t)
		if err := errors.Join(fs.Remove(path), statefiles.Write(fs, path, content)); err != nil {
			t.Fatal(err)
		}
		if err := d.check(t, fs, d.history.Clone()); err != nil {
			t.Errorf("%s: %v", rel, err)
		}
		swapped++
	}
	if swapped < 5 {
		t.Errorf("%d files were swapped", swapped)
	}
}

// TestStateOfAnotherLogIsRefused: a whole state beside another log is neither used
// nor thrown away.
func TestStateOfAnotherLogIsRefused(t *testing.T) {
	t.Parallel()
	d, other := newDamageFixture(t, 1), newDamageFixture(t, 2)
	fs := d.copy(t)
	if err := fs.RemoveAll("log"); err != nil {
		t.Fatal(err)
	}
	if _, err := vfs.Clone(other.fs, fs, "log", "log"); err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprint(fake.FilesBelow(t, fs, "state"))
	n, _, err := d.open(fs, d.history.Clone(), nil)
	if err == nil || !errors.Is(err, checkpoint.ErrOtherLog) || !strings.Contains(err.Error(), "Put the log back") || n != nil {
		t.Fatalf("%v", err)
	}
	if after := fmt.Sprint(fake.FilesBelow(t, fs, "state")); after != before {
		t.Errorf("the refused start changed files: %s became %s", before, after)
	}
}

// TestRecordsMissingBehindDamage: a log that ends before a checkpoint is refused,
// also when that checkpoint cannot be read.
func TestRecordsMissingBehindDamage(t *testing.T) {
	t.Parallel()
	d := newDamageFixture(t, 1)
	fs := d.copy(t)
	dir := fs.PathJoin("state", "p0", checkpoint.DirCheckpoints)
	if err := fs.Rename(fs.PathJoin(dir, checkpoint.Name(d.next)), fs.PathJoin(dir, checkpoint.Name(d.next+5))); err != nil {
		t.Fatal(err)
	}
	fake.DamageFile(t, fs, fs.PathJoin(dir, checkpoint.Name(d.next+5), checkpoint.FileManifest), fake.DamageKinds[4])
	if _, _, err := d.open(fs, d.history.Clone(), nil); err == nil || !strings.Contains(err.Error(), "records are missing") {
		t.Fatalf("%v", err)
	}
}

// TestCheckpointUnderAnotherNumber: a copy of a checkpoint whose name says another
// offset, beyond the log's end, too, is set aside, and the one that is whole is used.
func TestCheckpointUnderAnotherNumber(t *testing.T) {
	t.Parallel()
	d := newDamageFixture(t, 1)
	fs := d.copy(t)
	dir := fs.PathJoin("state", "p0", checkpoint.DirCheckpoints)
	if _, err := vfs.Clone(fs, fs, fs.PathJoin(dir, checkpoint.Name(d.next)), fs.PathJoin(dir, checkpoint.Name(99999))); err != nil {
		t.Fatal(err)
	}
	if err := d.check(t, fs, d.history.Clone()); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat(fs.PathJoin(dir, checkpoint.DamagedPrefix+checkpoint.Name(99999))); err != nil {
		t.Error(err)
	}
}

// TestNoCheckpointLeft: without any checkpoint, and without history, everything
// comes back from the log.
func TestNoCheckpointLeft(t *testing.T) {
	t.Parallel()
	d := newDamageFixture(t, 1)
	fs := d.copy(t)
	if err := fs.RemoveAll("state"); err != nil {
		t.Fatal(err)
	}
	if err := d.check(t, fs, &fake.History{Rand: rand.New(rand.NewPCG(1, 1))}); err != nil {
		t.Error(err)
	}
}

// TestDamageOfTheStoreStopsForARestart: a file that is damaged while the store has
// it open stops the node with the reason, and the next start repairs the state.
func TestDamageOfTheStoreStopsForARestart(t *testing.T) {
	t.Parallel()
	d := newDamageFixture(t, 1)
	fs := d.copy(t)
	n, log := d.mustOpen(t, fs, d.history.Clone())
	p := n.partitions[0].Load()
	p.ckpt.Damaged(statefiles.Damaged("000007.sst", "checksum"))
	select {
	case <-n.Failed():
	case <-time.After(time.Minute):
		t.Fatal("the node continues")
	}
	if err := n.Err(); !errors.Is(err, ErrStateDamaged) {
		t.Errorf("%v", err)
	}
	_ = n.Close(context.Background())
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.check(t, fs, d.history.Clone()); err != nil {
		t.Error(err)
	}
}

// TestL2HistoryIsRebuilt: a history that lost all or some of its rows has them again,
// while events continue arriving, also when the rebuilding is cut off at times (L2).
func TestL2HistoryIsRebuilt(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		d := newDamageFixture(t, seed)
		fs, h := d.copy(t), d.history.Clone()
		h.Lose(rng)
		h.Failures = fake.Pick(rng, 0, 30)
		for round := range 3 {
			n, log := d.mustOpen(t, fs, h)
			for i := range rng.IntN(8) {
				d.submit(t, rng, n, 100*(round+1)+i)
			}
			if rng.IntN(3) == 0 {
				h.Lose(rng) // while it is open
				d.submit(t, rng, n, 100*(round+1)+50)
			}
			if round == 2 {
				h.Mu.Lock()
				h.Failures = 0
				h.Mu.Unlock()
				d.noteEnd(t, n)
				want := d.replayRows(t, log)
				if err := h.Same(want); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = n.Close(ctx)
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// noteEnd waits until history has all there is.
func (d *damageFixture) noteEnd(t *testing.T, n *Node) {
	t.Helper()
	eventually.Succeeds(t, func() error {
		d.next = n.Stats()[0].Applied
		return waitHistory(t, n, query.Cut{UpTo: d.next})
	})
}

// replayRows is the history that the log implies up to d.next.
func (d *damageFixture) replayRows(t *testing.T, log *file.Log) *fake.History {
	t.Helper()
	r, err := log.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h := &fake.History{Rand: rand.New(rand.NewPCG(1, 1))}
	m := testMachine(t)
	var out resolver.Outcome
	for m.Next() < d.next {
		e, err := r.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		rows := query.Batch{From: e.Offset, To: e.Offset + 1}
		if err := m.Apply(e.Offset, e.Data, &rows, &out); err != nil {
			t.Fatal(err)
		}
		if err := h.Append(context.Background(), &rows); err != nil {
			t.Fatal(err)
		}
	}
	return h
}
