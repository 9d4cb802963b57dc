package node

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
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/resolver/internal/wake"
	"github.com/musterhq/muster/resolver/node/live"
	"github.com/musterhq/muster/resolver/sources"
)

// FeedOptions bound the way from Apply to history.
type FeedOptions = feed.Options

// Options configure a [Node].
type Options struct {
	// FS and Dir are where state and checkpoints are kept.
	FS  vfs.FS
	Dir string
	// Log is the event log, History the store of resolved events. Both are
	// the caller's to close, after the node.
	Log     eventlog.Log
	History query.History
	// LogName names Log wherever its files are. It is written into checkpoints, and
	// one of a log with another name is not used.
	LogName string
	// TrimLog lets the log drop records that the kept checkpoints are beyond. Without
	// it the log keeps everything, and state and history can be rebuilt from it.
	TrimLog bool
	// Trimming is held while the log is trimmed, which happens only when history says that it
	// has its rows; nil for a lock of the node's own. Whoever replaces history's files holds it
	// from the look at where the log begins on.
	Trimming sync.Locker
	// Now is the wall clock that stamps records, Rand the source of ids.
	Now    func() time.Time
	Rand   io.Reader
	Logger *slog.Logger // nil is silent

	// CheckpointInterval is the longest time between checkpoints while records
	// arrive (default 30 s).
	CheckpointInterval time.Duration
	// CheckpointLogBytes is how much log may come after a checkpoint before the next one
	// is due, in bytes of records: a start after a crash replays it (default 40 MiB).
	// Other nodes get the checkpoints of CheckpointInterval only.
	CheckpointLogBytes int64
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
	// Feed bounds the way to history (defaults: 122,880 rows, 10 s, 64 MiB,
	// 8 GiB, 5 s).
	Feed FeedOptions
	// Skip lists records to pass over, by partition.
	Skip map[int][]int64

	// End ends the process with one line, at once and without closing anything, when
	// the store below the state cannot continue; nil panics. It must not return.
	End func(why string)

	Cluster
}

// Cluster says how a [Node] shares its log with others; a zero value is a node that is alone.
type Cluster struct {
	// NodeID names this node among those that reach the log, Advertise is where the
	// others reach it. Without an id the node is alone: no epochs, no claims.
	NodeID, Advertise string
	// Shared is where checkpoints are left for other nodes and fetched from; nil
	// keeps them here only.
	Shared SharedCheckpoints
	// Owned are the partitions that Open takes, nil for all. Others can be taken
	// later, see [Node.Take].
	Owned []int
	// RemoteLog says that other nodes append to the log as well: reads then ask
	// it for its end and wait until that is applied.
	RemoteLog bool
	// Remote carries out commands of partitions that are not here; without it
	// they are refused with [resolver.ErrNotOwner].
	Remote Remote
}

func (o *Options) withDefaults() (Options, error) {
	c := *o
	if c.FS == nil || c.Dir == "" || c.Log == nil || c.History == nil || c.Now == nil || c.Rand == nil {
		return c, errors.New("node: FS, Dir, Log, History, Now and Rand must be set")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	def := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	if c.Trimming == nil {
		c.Trimming = new(sync.Mutex)
	}
	if c.CheckpointInterval == 0 {
		c.CheckpointInterval = 30 * time.Second
	}
	if c.MaxStampAhead == 0 {
		c.MaxStampAhead = 5 * time.Second
	}
	def(&c.CheckpointLogBytes, 40<<20)
	def(&c.GenerationBytes, 256<<20)
	def(&c.CacheBytes, 256<<20)
	def(&c.MaxBacklog, 50_000)
	if c.Feed.Rows == 0 {
		c.Feed.Rows = 122_880
	}
	if c.Feed.Delay == 0 {
		c.Feed.Delay = 30 * time.Second
	}
	if c.Feed.RetryMax == 0 {
		c.Feed.RetryMax = 5 * time.Second
	}
	def(&c.Feed.MemoryBytes, 64<<20)
	def(&c.Feed.SpoolBytes, 8<<30)
	def(&c.Feed.LateBytes, 640<<20)
	return c, c.Validate()
}

// Validate refuses limits that no node can work with.
func (c *Options) Validate() error {
	if c.CheckpointInterval < 0 || c.CheckpointLogBytes < 0 || c.GenerationBytes < 0 || c.CacheBytes < 0 || c.MaxBacklog < 0 || c.MaxStampAhead < 0 ||
		c.Feed.Rows < 0 || c.Feed.Delay < 0 || c.Feed.RetryMax < 0 || c.Feed.MemoryBytes < 0 || c.Feed.SpoolBytes < 0 || c.Feed.LateBytes < 0 {
		return errors.New("node: limits must not be negative")
	}
	return nil
}

// Node runs the machines of all partitions: it appends records, applies them
// in order, answers the requests that wait, feeds history and writes checkpoints.
type Node struct {
	opts Options // never changed after Open

	// partitions are those served here, nil for the others. Requests read them without a
	// lock, so that one that is being taken holds up none; the holder of the slot's
	// turn writes.
	partitions []atomic.Pointer[partition]
	slots      []slot
	changed    *wake.Broadcast // a partition was taken or released, or another node took its lease
	ownership  ownership

	// The end. Close ends life, so that nothing long is begun or waited for any more, and
	// waits for leaving: releases whose caller went away still close files.
	life     context.Context
	endLife  context.CancelFunc
	leaving  sync.WaitGroup
	closes   sync.Once
	closeErr error

	// A failure is the whole node's: a partition that cannot continue would otherwise go
	// unnoticed.
	failed *fatal

	// Watchers of events and transitions, over all partitions. The goroutine that applies
	// sends to them, and never waits for them.
	live        live.Events
	transitions live.Transitions

	// The sender of messages sleeps until one of these wakes it.
	queued    *wake.Broadcast // something was put into an outbox
	campaigns *wake.Broadcast // a campaign was started
	inboxes   *wake.Broadcast // an inbox of in-app messages has changed

	// directory is the client of the directory of e-mails, which the first partition has and
	// another node may serve; nil where one partition knows all e-mails.
	directory *directoryClient
}

// Failed is closed when the node cannot continue; Err says why.
func (n *Node) Failed() <-chan struct{} { return n.failed.Done() }

// Err is the reason for which the node failed, nil while it runs.
func (n *Node) Err() error { return n.failed.Err() }

// Fail stops the node as a failure of its own would: nothing more is applied,
// answered or appended, and no checkpoint is written. Err returns err.
func (n *Node) Fail(err error) {
	n.failed.set(err)
	for i := range n.slots {
		if p := n.slots[i].partition(); p != nil {
			p.fail(err)
		}
	}
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

// App finds an account by its App ID, among those of the partitions served here:
// ok is false for others, so ask Owns after it, not before.
func (n *Node) App(appID []byte) (resolver.App, bool) {
	number, ok := resolver.ParseAppID(appID)
	if !ok {
		return resolver.App{}, false
	}
	p := n.partitions[number%uint64(len(n.partitions))].Load()
	if p == nil {
		return resolver.App{}, false
	}
	return p.published.app(number)
}

// WriteKey finds the source of an account's write key by the SHA-256 of the key. It takes no
// barrier. A key that was revoked is not found.
func (n *Node) WriteKey(account uint64, hash [32]byte) (sources.Access, bool) {
	p := n.partitions[account%uint64(len(n.partitions))].Load()
	if p == nil {
		return sources.Access{}, false
	}
	return p.published.writeKey(account, hash)
}

// Accounts lists the numbers of the accounts of all partitions served here.
func (n *Node) Accounts() []uint64 {
	var out []uint64
	for p := range n.here() {
		out = append(out, p.published.accounts()...)
	}
	return out
}

// Checkpoint writes a checkpoint of every partition served here now.
func (n *Node) Checkpoint() error {
	for p := range n.here() {
		err := p.writeCheckpoint()
		for errors.Is(err, resolver.ErrLagging) {
			time.Sleep(time.Millisecond)
			err = p.writeCheckpoint()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
