package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/fake"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// shelf is shared storage in memory.
type shelf struct {
	fs vfs.FS // where it is

	mu           sync.Mutex
	uploaded     map[int][]int64             // offsets by partition
	newest       func() error                // asked before Newest
	beforeUpload func(context.Context) error // asked before Upload
	asked        []int64                     // what Newest was called with
}

func newShelf() *shelf { return &shelf{fs: vfs.NewMem(), uploaded: map[int][]int64{}} }

// of is the shelf as a node sees it that keeps its files in fs.
func (s *shelf) of(fs vfs.FS) SharedCheckpoints { return shelfOf{s, fs} }

type shelfOf struct {
	*shelf
	local vfs.FS
}

func (s shelfOf) Newest(_ context.Context, partition int, dir string, have int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, have)
	if s.newest != nil {
		if err := s.newest(); err != nil {
			return 0, err
		}
	}
	there := s.uploaded[partition]
	if len(there) == 0 || slices.Max(there) <= have {
		return -1, nil
	}
	offset := slices.Max(there)
	_, err := vfs.Clone(s.fs, s.local, fmt.Sprintf("p%d-%d", partition, offset), dir, vfs.CloneSync)
	return offset, err
}

func (s shelfOf) Place() string { return "the shelf" }

func (s shelfOf) NewestPart(ctx context.Context, partition int, dir string, have int64, files []string) (int64, error) {
	offset, err := s.Newest(ctx, partition, dir, have)
	if err != nil || offset < 0 {
		return offset, err
	}
	names, err := s.local.List(dir)
	for _, name := range names {
		if !slices.Contains(files, name) {
			err = errors.Join(err, s.local.RemoveAll(s.local.PathJoin(dir, name)))
		}
	}
	return offset, err
}

func (s shelfOf) Upload(ctx context.Context, partition int, dir string, offset int64, _ uint64) error {
	s.mu.Lock()
	ask := s.beforeUpload
	s.mu.Unlock()
	if ask != nil {
		if err := ask(ctx); err != nil {
			return err
		}
	}
	if _, err := s.local.Stat(s.local.PathJoin(dir, checkpoint.FileManifest)); err != nil {
		return err // pruned while it was uploaded
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.uploaded[partition], offset) {
		return nil
	}
	if _, err := vfs.Clone(s.local, s.fs, dir, fmt.Sprintf("p%d-%d", partition, offset)); err != nil {
		return err
	}
	s.uploaded[partition] = append(s.uploaded[partition], offset)
	return nil
}

// has lists the checkpoints of a partition.
func (s *shelf) has(partition int) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.uploaded[partition])
}

// pair is several nodes that own the partition one after the other.
type pair struct {
	*fixture
	t     *testing.T
	log   *sharedLog
	shelf *shelf
	rng   *rand.Rand
	id    byte
}

func newPair(t *testing.T) *pair {
	f := newFixture(t)
	t.Cleanup(func() { _ = f.log.Close() })
	return &pair{fixture: f, t: t, log: &sharedLog{Log: f.log}, shelf: newShelf(), rng: rand.New(rand.NewPCG(4, 4))}
}

// try opens a node that keeps its state in dir.
func (p *pair) try(dir string, change func(*Options)) (*Node, error) {
	return Open(context.Background(), p.options(func(o *Options) {
		o.Dir, o.Log, o.CheckpointInterval = dir, p.log, time.Hour
		o.Shared = p.shelf.of(o.FS)
		if change != nil {
			change(o)
			if o.Shared != nil {
				o.Shared = p.shelf.of(o.FS)
			}
		}
	}))
}

func (p *pair) open(dir string) *Node {
	p.t.Helper()
	n, err := p.try(dir, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if len(n.Accounts()) == 0 {
		if _, err := n.Command(context.Background(), testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
			p.t.Fatal(err)
		}
	}
	return n
}

// events has the node store some.
func (p *pair) events(n *Node, records int) {
	p.t.Helper()
	for range records {
		p.id++
		env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount, ID: eventlog.RecordID{9, p.id}, StampMs: p.now.UnixMilli()}
		var evs []eventlog.Event
		for range 20 {
			evs = append(evs, fake.RandomEvent(p.rng, 100, p.now.UnixMilli()))
		}
		var out resolver.Outcome
		if err := n.Submit(context.Background(), testAccount, fake.AppendEvents(env.Append(nil), evs), &out); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *pair) stop(n *Node) {
	p.t.Helper()
	if err := n.Close(context.Background()); err != nil {
		p.t.Fatal(err)
	}
}

// state is the state's hash, and the offset behind it.
func (p *pair) state(n *Node) string {
	p.t.Helper()
	q := n.partitions[0].Load()
	q.mu.RLock()
	defer q.mu.RUnlock()
	return fmt.Sprint(q.mu.m.Next(), hashOf(p.t, q.mu.m))
}

// TestR1SharedCheckpointIsTaken: a node without state has the same as the one that
// uploaded, without replaying; of its own checkpoint and the shared one it takes
// the newer.
func TestR1SharedCheckpointIsTaken(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	a := p.open("a")
	p.events(a, 5)
	if err := a.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "uploaded in the background", func() bool { return len(p.shelf.has(0)) > 0 })
	p.events(a, 5)
	want := p.state(a)
	p.stop(a)
	last := slices.Max(p.shelf.has(0))
	if st, err := p.fs.Stat(fmt.Sprintf("a/p0/checkpoints/%020d", last)); err != nil || !st.IsDir() {
		t.Fatalf("the last checkpoint was not uploaded: %v", p.shelf.has(0))
	}

	b := p.open("b")
	if got := p.state(b); got != want {
		t.Errorf("R1: %s, want %s", got, want)
	}
	st := b.Stats()[0]
	if st.Records != 0 || st.SharedOffset != last || !st.Shared {
		t.Errorf("%d records were replayed; the shared checkpoint is %d: %+v", st.Records, last, st)
	}
	p.events(b, 3)
	want = p.state(b)
	p.stop(b)

	// a's own is older than b's, then newer than any.
	a = p.open("a")
	if got, st := p.state(a), a.Stats()[0]; got != want || st.Records != 0 {
		t.Errorf("R1: %s after %d records, want %s", got, st.Records, want)
	}
	p.shelf.mu.Lock()
	p.shelf.beforeUpload = func(context.Context) error { return errors.New("no room") }
	p.shelf.mu.Unlock()
	p.events(a, 2)
	want = p.state(a)
	p.stop(a)
	p.shelf.beforeUpload = nil
	before := len(p.shelf.has(0))
	a = p.open("a")
	if got, st := p.state(a), a.Stats()[0]; got != want || st.Records != 0 {
		t.Errorf("R1: %s after %d records, want %s", got, st.Records, want)
	}
	eventually.Holds(t, "what shared storage lacks is uploaded at the start", func() bool { return len(p.shelf.has(0)) > before })
	p.stop(a)
	if asked := p.shelf.asked; asked[0] != -1 || asked[1] != -1 || asked[2] != last || asked[3] <= asked[2] {
		t.Errorf("the nodes said they had %d", asked)
	}
}

// TestR1FilesOfTheSameNameAreReplaced: what another node's checkpoint names is
// never taken from what lies here under that name.
func TestR1FilesOfTheSameNameAreReplaced(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	a := p.open("a")
	p.events(a, 5)
	want := p.state(a)
	p.stop(a)
	spoiled := 0
	for _, dir := range []string{checkpoint.DirKeys, checkpoint.DirSegments} {
		names, err := p.fs.List("a/p0/" + dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.fs.MkdirAll("b/p0/"+dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			if err := statefiles.Write(p.fs, "b/p0/"+dir+"/"+n, []byte("of another time")); err != nil {
				t.Fatal(err)
			}
			spoiled++
		}
	}
	if spoiled < 2 {
		t.Fatalf("%d files", spoiled)
	}
	b := p.open("b")
	if got := p.state(b); got != want {
		t.Errorf("R1: %s, want %s", got, want)
	}
	p.stop(b)
}

// TestSharedCheckpointBeyondTheLogIsRefused, by name of the remedy, and nothing of
// it stays.
func TestSharedCheckpointBeyondTheLogIsRefused(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	a := p.open("a")
	p.events(a, 5)
	p.stop(a)
	other := newPair(t)
	other.shelf = p.shelf
	other.fs = other.fixture.fs
	if n, err := other.try("b", nil); err == nil || !strings.Contains(err.Error(), "before the shared checkpoint") || !strings.Contains(err.Error(), "--checkpoints") {
		t.Fatalf("%v %v", n, err)
	}
	n, err := other.try("b", func(o *Options) { o.Shared = nil })
	if err != nil {
		t.Fatal(err)
	}
	p.stop(n)
}

// TestSharedStorageAway: a node that has a checkpoint continues with it, one that
// has none does not begin; those of another log are refused in any case.
func TestSharedStorageAway(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	a := p.open("a")
	p.events(a, 2)
	want := p.state(a)
	p.stop(a)
	away := errors.New("away")
	p.shelf.newest = func() error { return away }
	if n, err := p.try("b", nil); !errors.Is(err, away) {
		t.Fatalf("%v %v", n, err)
	}
	a = p.open("a")
	if got := p.state(a); got != want {
		t.Errorf("R1: %s, want %s", got, want)
	}
	p.stop(a)
	// Its own is older than the log.
	p.log.Log = laterLog{p.log.Log}
	if n, err := p.try("a", nil); !errors.Is(err, away) || !strings.Contains(err.Error(), "older than the log") {
		t.Fatalf("%v %v", n, err)
	}
	p.log.Log = p.log.Log.(laterLog).Log
	p.shelf.newest = func() error { return fmt.Errorf("%w: far away", ErrForeignCheckpoints) }
	if n, err := p.try("a", nil); !errors.Is(err, ErrForeignCheckpoints) {
		t.Fatalf("%v %v", n, err)
	}
}

// laterLog begins where it ends.
type laterLog struct{ eventlog.Log }

func (l laterLog) Bounds(ctx context.Context, p int) (start, end int64, err error) {
	_, end, err = l.Log.Bounds(ctx, p)
	return end + 1, end + 1, err
}

// TestUploadStopsNothing: while storage hangs, events are taken, checkpoints
// written and old ones pruned, but for the one being read; then the newest is
// uploaded and none in between. Failures are counted and tried again.
func TestUploadStopsNothing(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	entered, release := make(chan struct{}, 100), make(chan struct{})
	fails := atomic.Int64{}
	p.shelf.beforeUpload = func(ctx context.Context) error {
		entered <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
			return ctx.Err()
		}
		if fails.Add(1) == 1 {
			return errors.New("no room")
		}
		return nil
	}
	a := p.open("a")
	p.events(a, 1)
	if err := a.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	<-entered
	first := a.Stats()[0].LastCheckpoint
	for range 4 {
		p.events(a, 1)
		if err := a.Checkpoint(); err != nil {
			t.Fatal(err)
		}
	}
	list, err := a.partitions[0].Load().ckpt.List()
	if err != nil || len(list) != 3 || list[0] != first {
		t.Errorf("the checkpoints are %d; %d is being uploaded: %v", list, first, err)
	}
	close(release)
	newest := a.Stats()[0].LastCheckpoint
	eventually.Holds(t, "the newest is uploaded", func() bool { return a.Stats()[0].SharedOffset == newest })
	if got := p.shelf.has(0); !slices.Equal(got, []int64{newest}) {
		t.Errorf("uploaded %d; the newest is %d", got, newest)
	}
	if st := a.Stats()[0]; st.SharedFailures != 1 || st.SharedFailing {
		t.Errorf("%+v", st)
	}
	p.events(a, 1)
	if err := a.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if list, _ = a.partitions[0].Load().ckpt.List(); slices.Contains(list, first) {
		t.Errorf("%d was never pruned: %d", first, list)
	}
	p.stop(a)
}

// TestStorageThatHangsIsNotWaitedFor: a node closes within its time, whether
// storage heeds its context or not, and nothing is lost.
func TestStorageThatHangsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for _, heeds := range []bool{true, false} {
		p := newPair(t)
		stuck := make(chan struct{})
		p.shelf.beforeUpload = func(ctx context.Context) error {
			if heeds {
				<-ctx.Done()
			} else {
				<-stuck
			}
			return io.ErrUnexpectedEOF
		}
		a := p.open("a")
		p.events(a, 2)
		if err := a.Checkpoint(); err != nil {
			t.Fatal(err)
		}
		p.events(a, 2)
		want := p.state(a)
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		begun := time.Now()
		err := a.Close(ctx)
		if took := time.Since(begun); err != nil || took > 15*time.Second {
			t.Errorf("closed after %v: %v", took, err)
		}
		cancel()
		close(stuck)
		p.shelf.mu.Lock()
		p.shelf.beforeUpload = nil
		p.shelf.mu.Unlock()
		a = p.open("a")
		if got, st := p.state(a), a.Stats()[0]; got != want || st.Records != 0 {
			t.Errorf("R1: %s after %d records, want %s", got, st.Records, want)
		}
		p.stop(a)
	}
}

// TestR1CrashWhileASharedCheckpointIsAdopted: whichever operation of the disk is
// the last one before the machine ends, the next start has the same state.
func TestR1CrashWhileASharedCheckpointIsAdopted(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	a := p.open("a")
	p.events(a, 4)
	want := p.state(a)
	p.stop(a)
	crash := errors.New("crash")
	crashed := 0
	for step := int64(0); ; step += 3 {
		disk := vfs.NewCrashableMem()
		var count atomic.Int64
		n, err := p.try("b", func(o *Options) {
			o.FS = errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
				// Those of the store have their own tests.
				if strings.Contains(op.Path, checkpoint.DirLive) {
					return nil
				}
				if count.Add(1) > step {
					return crash
				}
				return nil
			}))
		})
		after := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(uint64(step), 1))})
		if err == nil {
			p.stop(n)
			if crashed < 20 {
				t.Errorf("only %d crashes", crashed)
			}
			return
		}
		crashed++
		if n, err = p.try("b", func(o *Options) { o.FS = after }); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		if got := p.state(n); got != want {
			t.Fatalf("R1: step %d: %s, want %s", step, got, want)
		}
		p.stop(n)
	}
}

// TestReleasedPartitionIsForgotten: what shared storage has does not stay on a
// node that has given a partition away; what it lacks does.
func TestReleasedPartitionIsForgotten(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := newPair(t)
	n := p.open("a")
	defer p.stop(n)
	p.events(n, 5)
	want := p.state(n)
	move := func() (left bool) {
		t.Helper()
		if err := n.Release(ctx, 0); err != nil {
			t.Fatal(err)
		}
		_, err := p.fs.Stat("a/p0")
		if err := n.Take(ctx, 0); err != nil {
			t.Fatal(err)
		}
		if got := p.state(n); got != want {
			t.Errorf("R1: %s, want %s", got, want)
		}
		return err == nil
	}
	if move() {
		t.Error("the files of a partition stay that shared storage has")
	}
	p.events(n, 2)
	want = p.state(n)
	p.shelf.mu.Lock()
	p.shelf.beforeUpload = func(context.Context) error { return errors.New("no room") }
	p.shelf.mu.Unlock()
	if !move() {
		t.Error("files are gone that shared storage does not have")
	}
}

// TestFormerOwnerForgets: a node that had the partition when it was stopped removes its
// files once another has shared a newer checkpoint that the log goes on from, and not
// before; nor those of another log.
func TestFormerOwnerForgets(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := newPair(t)
	a := p.open("a")
	p.events(a, 5)
	p.stop(a)
	var start, end int64 // of the log, as a is told; 0 for its own
	member := func(name string) *Node {
		n, err := p.try("a", func(o *Options) {
			o.Owned, o.LogName, o.Log = []int{}, name, boundedLog{p.log, &start, &end}
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	forgets := func(n *Node, want bool, what string) {
		t.Helper()
		err := n.Forget(ctx, 0)
		if _, e := p.fs.Stat("a/p0"); (e != nil) != want {
			t.Errorf("%s: forgotten %v, want %v: %v", what, e != nil, want, err)
		}
	}
	a = member("")
	forgets(a, false, "what is shared is as old")
	b := p.open("b")
	p.events(b, 3)
	want := p.state(b)
	p.stop(b)
	p.shelf.newest = func() error { return errors.New("storage is away") }
	forgets(a, false, "storage is away")
	p.shelf.newest = nil
	end = 1
	forgets(a, false, "the log ends before what is shared")
	end, start = 0, 1
	forgets(a, false, "the log lacks its beginning, and goes on from what is here")
	start = 1000
	forgets(a, false, "the log lacks what is behind what is shared")
	start = 0
	p.stop(a)
	a = member("another log")
	forgets(a, false, "it is of another log")
	p.stop(a)
	a = member("")
	aside := "a/p0/checkpoints/" + checkpoint.ForeignPrefix + "00000000000000000007"
	if err := p.fs.MkdirAll(aside, 0o755); err != nil {
		t.Fatal(err)
	}
	forgets(a, false, "a checkpoint was set aside as another log's")
	if left, err := p.fs.List("a/p0/checkpoints"); err != nil || len(left) != 1 || len(fake.FilesBelow(t, p.fs, "a/p0")) > 0 {
		t.Errorf("%v stays beside it: %v", fake.FilesBelow(t, p.fs, "a/p0"), err)
	}
	if err := p.fs.RemoveAll(aside); err != nil {
		t.Fatal(err)
	}
	forgets(a, true, "what is shared is newer")
	if err := a.Take(ctx, 0); err != nil {
		t.Fatal(err)
	}
	forgets(a, false, "it is served")
	if got := p.state(a); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	p.stop(a)
}

// boundedLog starts and ends where a test says.
type boundedLog struct {
	eventlog.Log
	start, end *int64
}

func (l boundedLog) Bounds(ctx context.Context, partition int) (int64, int64, error) {
	start, end, err := l.Log.Bounds(ctx, partition)
	return max(start, *l.start), cmp.Or(*l.end, end), err
}
