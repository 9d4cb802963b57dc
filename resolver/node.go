package resolver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
)

// Options configure a [Node].
type Options struct {
	// FS and Dir are where state and checkpoints are kept.
	FS  vfs.FS
	Dir string
	// Log is the event log, History the store of resolved events. Both are
	// the caller's to close, after the node.
	Log     eventlog.Log
	History query.History
	// Now is the wall clock that stamps records, Rand the source of ids.
	Now    func() time.Time
	Rand   io.Reader
	Logger *slog.Logger // nil is silent

	// CheckpointInterval is the longest time between checkpoints while records
	// arrive (default 30 s).
	CheckpointInterval time.Duration
	// GenerationBytes is how much may change in memory before a checkpoint is
	// written; at twice as much Apply waits (default 256 MiB).
	GenerationBytes int64
	// CacheBytes bounds the cache of profile documents (default 256 MiB).
	CacheBytes int64
	// MaxBacklog is how many records may be durable but not applied before
	// requests are refused (default 50,000).
	MaxBacklog int64
	// MaxStampAhead is how far a record's stamp may be ahead of this node's
	// clock (default 5 s).
	MaxStampAhead time.Duration
	// Feed bounds the way to history (defaults: 122,880 rows, 2 s, 64 MiB,
	// 8 GiB, 5 s).
	Feed FeedOptions
	// Skip lists records to pass over, by partition.
	Skip map[int][]int64
}

func (o *Options) withDefaults() (Options, error) {
	c := *o
	if c.FS == nil || c.Dir == "" || c.Log == nil || c.History == nil || c.Now == nil || c.Rand == nil {
		return c, errors.New("resolver: FS, Dir, Log, History, Now and Rand must be set")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	def := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	if c.CheckpointInterval == 0 {
		c.CheckpointInterval = 30 * time.Second
	}
	if c.MaxStampAhead == 0 {
		c.MaxStampAhead = 5 * time.Second
	}
	def(&c.GenerationBytes, 256<<20)
	def(&c.CacheBytes, 256<<20)
	def(&c.MaxBacklog, 50_000)
	if c.Feed.Rows == 0 {
		c.Feed.Rows = 122_880
	}
	if c.Feed.Delay == 0 {
		c.Feed.Delay = 2 * time.Second
	}
	if c.Feed.RetryMax == 0 {
		c.Feed.RetryMax = 5 * time.Second
	}
	def(&c.Feed.MemoryBytes, 64<<20)
	def(&c.Feed.SpoolBytes, 8<<30)
	if c.CheckpointInterval < 0 || c.GenerationBytes < 0 || c.CacheBytes < 0 || c.MaxBacklog < 0 || c.MaxStampAhead < 0 ||
		c.Feed.Rows < 0 || c.Feed.Delay < 0 || c.Feed.RetryMax < 0 || c.Feed.MemoryBytes < 0 || c.Feed.SpoolBytes < 0 {
		return c, errors.New("resolver: limits must not be negative")
	}
	return c, nil
}

// Node runs the machines of all partitions: it appends records, applies them
// in order, answers those who wait, feeds history and writes checkpoints.
type Node struct {
	opts       Options
	partitions []*partition
	live       liveEvents
	// transitions hands entries and exits to those who watch.
	transitions liveTransitions
	queued      *broadcast // something was put into an outbox
	apps        atomic.Pointer[map[uint64]App]
	appsMu      sync.Mutex
	failed      chan struct{}
	failOnce    sync.Once
	failure     error
}

// Open brings the state up to the end of the log and starts. It returns once
// everything acknowledged before is applied.
func Open(ctx context.Context, opts Options) (*Node, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	n := &Node{opts: o, failed: make(chan struct{}), queued: newBroadcast()}
	n.apps.Store(&map[uint64]App{})
	for i := range o.Log.Partitions() {
		p := newPartition(n, i)
		n.partitions = append(n.partitions, p)
		if err := p.open(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("partition %d: %w", i, err), n.Close(ctx))
		}
	}
	return n, nil
}

// Close stops the node and writes a last checkpoint. ctx bounds how long
// history may take to catch up.
func (n *Node) Close(ctx context.Context) error {
	var err error
	for _, p := range n.partitions {
		err = errors.Join(err, p.close(ctx))
	}
	return err
}

// Failed is closed when the node cannot go on; Err says why.
func (n *Node) Failed() <-chan struct{} { return n.failed }

// Err is the reason for which the node failed, nil while it runs.
func (n *Node) Err() error {
	select {
	case <-n.failed:
		return n.failure
	default:
		return nil
	}
}

// Fail stops the node as a failure of its own would: nothing more is applied,
// answered or appended, and no checkpoint is written. Err returns err.
func (n *Node) Fail(err error) {
	for _, p := range n.partitions {
		p.fail(err)
	}
}

func (n *Node) fail(err error) {
	n.failOnce.Do(func() {
		n.failure = err
		close(n.failed)
	})
}

func (n *Node) partitionOf(account uint64) *partition {
	return n.partitions[account%uint64(len(n.partitions))]
}

func (n *Node) skipped(partition int, offset int64) bool {
	for _, o := range n.opts.Skip[partition] {
		if o == offset {
			return true
		}
	}
	return false
}

// stamp gives a record its random id and its time.
func (n *Node) stamp(env *eventlog.Envelope) error {
	env.StampMs = n.opts.Now().UnixMilli()
	if _, err := io.ReadFull(n.opts.Rand, env.ID[:]); err != nil {
		return fmt.Errorf("random source: %w", err)
	}
	return nil
}

// Submit appends the record to the partition of the account and waits until it
// is durable and applied; out then holds the answer. rec starts with an
// envelope. Errors wrap [ErrOverloaded] (nothing was stored) or
// [ErrUnavailable] (it may have been stored), or say that rec is malformed.
func (n *Node) Submit(ctx context.Context, account uint64, rec []byte, out *Outcome) error {
	env, _, err := eventlog.DecodeEnvelope(rec)
	if err != nil {
		return err
	}
	if env.Account != account {
		return fmt.Errorf("record is of account %016x, not of %016x", env.Account, account)
	}
	if ahead := env.StampMs - n.opts.Now().UnixMilli(); ahead > n.opts.MaxStampAhead.Milliseconds() {
		return fmt.Errorf("%w: the record's clock is %d ms ahead; set the clock right", ErrUnavailable, ahead)
	}
	return n.partitionOf(account).submit(ctx, env, rec, out)
}

// Command submits a command and returns its reply. A refusal by the state
// machine is returned as a *[Refusal].
func (n *Node) Command(ctx context.Context, account uint64, name string, args any) ([]byte, error) {
	env := eventlog.Envelope{Kind: eventlog.KindCommand, Account: account}
	if err := n.stamp(&env); err != nil {
		return nil, err
	}
	var out Outcome
	if err := n.Submit(ctx, account, eventlog.AppendCommand(env.Append(nil), name, mustJSON(args)), &out); err != nil {
		return nil, err
	}
	if out.Refusal != nil {
		return nil, out.Refusal
	}
	return out.Reply, nil
}

// App finds an account by its App ID.
func (n *Node) App(appID []byte) (App, bool) {
	number, ok := ParseAppID(appID)
	if !ok {
		return App{}, false
	}
	a, ok := (*n.apps.Load())[number]
	return a, ok
}

// Accounts lists the numbers of all accounts.
func (n *Node) Accounts() []uint64 {
	apps := *n.apps.Load()
	out := make([]uint64, 0, len(apps))
	for a := range apps {
		out = append(out, a)
	}
	return out
}

// publishApps makes the accounts of a partition known to requests.
func (n *Node) publishApps(p *partition) {
	n.appsMu.Lock()
	defer n.appsMu.Unlock()
	apps := map[uint64]App{}
	for k, v := range *n.apps.Load() {
		apps[k] = v
	}
	p.mu.RLock()
	for _, a := range p.mu.m.byIndex {
		apps[a.number] = App{Account: a.number, SecretHash: a.secretHash, Active: !a.Deactivated}
	}
	p.mu.RUnlock()
	n.apps.Store(&apps)
}

// Checkpoint writes a checkpoint of every partition now.
func (n *Node) Checkpoint() error {
	for _, p := range n.partitions {
		err := p.writeCheckpoint()
		for errors.Is(err, errLagging) {
			time.Sleep(time.Millisecond)
			err = p.writeCheckpoint()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pebbleLogger hands Pebble's messages on: errors as such, the rest for
// debugging only. On a full disk Pebble tries again without a pause and says so
// each time; one message a second is enough.
type pebbleLogger struct {
	log  *slog.Logger
	last *atomic.Int64 // when the last error was handed on, in Unix seconds
}

func newPebbleLogger(log *slog.Logger) pebbleLogger { return pebbleLogger{log, new(atomic.Int64)} }

func (l pebbleLogger) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("pebble", "message", fmt.Sprintf(format, args...))
	}
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	if now := time.Now().Unix(); l.last.Swap(now) != now {
		l.log.Error("pebble", "message", fmt.Sprintf(format, args...))
	}
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	panic("pebble: " + fmt.Sprintf(format, args...))
}
