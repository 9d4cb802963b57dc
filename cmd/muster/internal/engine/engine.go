package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/cluster"
	"github.com/musterhq/muster/cluster/checkpoint"
	"github.com/musterhq/muster/cluster/peer"
	"github.com/musterhq/muster/cmd/muster/internal/backup"
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/eventlog/kafka"
	"github.com/musterhq/muster/query/cache"
	"github.com/musterhq/muster/query/clickhouse"
	"github.com/musterhq/muster/query/duckdb"
	"github.com/musterhq/muster/resolver/node"
)

// Options configure an engine. Zero values of limits mean the defaults of the
// packages they belong to.
type Options struct {
	Dir string
	// Mine are paths of files that may be in Dir before there is a log.
	Mine           []string
	Logger         *slog.Logger
	MaxRecordBytes int
	HistoryLimits
	StateLimits
	// Skip are offsets of records that are not applied, by partition, see
	// [node.Options].
	Skip map[int][]int64
	// TrimLog lets a log in Dir drop records that the checkpoints are beyond.
	TrimLog bool

	// LockUntil is until when Open waits for another process to leave Dir; zero is
	// not to wait.
	LockUntil time.Time

	// Kafka says where the log is when it is not in Dir, ClickHouse the same of
	// history. A log in Kafka needs its history in ClickHouse.
	Kafka      *kafka.Options
	ClickHouse *clickhouse.Options
	// Checkpoints is the URL of storage that checkpoints are shared in, empty for
	// none.
	Checkpoints string
	// Address is the address that this node gives other nodes to reach it,
	// HOST:PORT.
	Address string
	// Self is a URL that this process alone answers, see [cluster.Options].
	Self string
	// Peer configures the calls to other nodes; its Table and Self are the
	// engine's. Without it the node owns all partitions or none.
	Peer *peer.Options
	// End ends the process with one line when the state's store cannot continue, see
	// [node.Options].
	End func(why string)
	// SessionTimeout is after how long of silence another node may take over;
	// the default is package cluster's.
	SessionTimeout time.Duration
}

// HistoryLimits bound what history may use of this machine.
type HistoryLimits struct {
	HistoryMemory  int64 // bytes, of a history in Dir
	HistoryThreads int   // likewise
	// QueryCacheBytes bounds what is kept of history's answers; 0 keeps nothing.
	QueryCacheBytes int64
}

// StateLimits bound the memory of the state, how far it may be ahead of its checkpoints
// and of history, and how far requests may be ahead of it: see [node.Options].
type StateLimits struct {
	CheckpointInterval time.Duration
	CheckpointLogBytes int64
	GenerationBytes    int64
	CacheBytes         int64
	MaxBacklog         int64 // records
	SpoolBytes         int64
	// InFlightBytes is how many bytes of requests may be under way when SpoolBytes is reached;
	// 0 is a default.
	InFlightBytes int64
}

// feed is what may wait for history. Requests under way when SpoolBytes is reached may have rows
// of twice their size, beside those that wait in memory.
func (o StateLimits) feed() (f node.FeedOptions) {
	f.SpoolBytes = o.SpoolBytes
	if o.InFlightBytes > 0 {
		f.LateBytes = 2*o.InFlightBytes + 128<<20
	}
	return f
}

// ErrInUse means that another process has the data directory, or owns the log.
var ErrInUse = errors.New("already in use")

// Engine is an open data directory.
type Engine struct {
	Log eventlog.Log
	// History is the back end behind its cache.
	History *cache.History
	Node    *node.Node

	lock    io.Closer
	dir     string
	backups backups
	scrub   *scrubber // nil unless the log is looked at, see Scrub
	// stopLeft ends what removeLeftHistory has begun; nil for nothing.
	stopLeft func()
	// file or topic is behind Log, by its kind.
	file  *file.Log
	topic *kafka.Log
	// trimming is held while the log is trimmed, and while the file of history is replaced.
	trimming sync.Mutex
	// linking is held while the files of a backup are linked, and shared while the log is
	// trimmed.
	linking sync.RWMutex
	// embedded is History's back end where that is in a file; nil otherwise.
	embedded *duckdb.Resilient
	// of a log in Kafka; peers are nil where the node is alone.
	member *cluster.Member
	keeper *keeper
	peers  *peer.Peers
	self   cluster.Node
	// checkpoints are shared with other nodes; nil when they are not.
	checkpoints *checkpoint.Store
	// identity names the log, whatever directory it is opened from.
	identity string
}

// Open opens a data directory and makes it if there is none. A log in files is
// replayed when it returns; partitions of one in Kafka are being taken, see
// [Engine.Loaded]. The error wraps [ErrInUse] when another process has it.
func Open(ctx context.Context, o Options) (e *Engine, err error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	e = &Engine{dir: o.Dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close(context.Background()))
			e = nil
		}
	}()
	fs := vfs.Default
	check := func() error {
		if err := backup.CheckWhole(fs, o.Dir); err != nil {
			return err
		}
		if err := checkKind(o.Dir, o.Kafka != nil); err != nil {
			return err
		}
		return checkWhose(o.Dir, o.Mine)
	}
	if err := check(); errors.Is(err, ErrNotOurs) {
		return e, err // no lock file is left in a directory of another program
	}
	if e.lock, err = lockDir(ctx, fs, o); err != nil {
		return e, err
	}
	if err := check(); err != nil {
		return e, err
	}
	options := node.Options{
		FS: fs, Dir: filepath.Join(o.Dir, "state"),
		Now: time.Now, Rand: rand.Reader, Logger: o.Logger, End: o.End,
		CheckpointInterval: o.CheckpointInterval, CheckpointLogBytes: o.CheckpointLogBytes, GenerationBytes: o.GenerationBytes, CacheBytes: o.CacheBytes,
		MaxBacklog: o.MaxBacklog, Feed: o.feed(), Skip: o.Skip, TrimLog: o.TrimLog, Trimming: &e.trimming,
	}
	if err := options.Validate(); err != nil {
		return e, err
	}
	bucket, err := openBucket(ctx, o)
	if err != nil {
		return e, err
	}
	if o.Kafka != nil {
		err = e.openTopic(ctx, o)
	} else {
		err = e.openFiles(ctx, fs, o)
	}
	if err != nil {
		return e, errors.Join(err, closeBucket(bucket))
	}
	shared, err := e.openCheckpoints(bucket, fs, o)
	if err != nil {
		return e, err
	}
	if err := e.openHistory(ctx, o); err != nil {
		return e, historyError(o, err)
	}
	options.Log, options.LogName, options.History, options.Shared = e.Log, e.identity, e.History, shared
	if o.ClickHouse != nil {
		options.Feed.Delay = insertEvery
	}
	if err := makePrivate(o.Dir, o.Logger); err != nil {
		return e, err
	}
	e.inCluster(&options, o)
	if e.Node, err = node.Open(ctx, options); err != nil {
		if e.embedded != nil && ctx.Err() == nil {
			// It was opened meanwhile: this is the cause, if it has failed.
			if refused := e.embedded.Opened(ctx); refused != nil {
				return e, historyError(o, refused)
			}
		}
		return e, fmt.Errorf("open the state: %w", err)
	}
	if e.embedded != nil {
		e.embedded.Scrub() // not before: it would take a processor from the start
	}
	if err := os.RemoveAll(filepath.Join(o.Dir, BackupDir)); err != nil {
		return e, fmt.Errorf("remove what a backup left: %w", err)
	}
	if e.file != nil {
		if err := noteHistory(o.Dir, o.ClickHouse != nil); err != nil {
			return e, err
		}
		if o.ClickHouse != nil {
			if e.stopLeft, err = e.removeLeftHistory(o); err != nil {
				return e, err
			}
		}
	}
	e.join(o.Logger)
	return e, nil
}

// insertEvery is how long rows wait for others on their way to ClickHouse, unless a
// reader waits for them. What an insert costs there hardly depends on its rows: as
// much as 20,000 of them.
const insertEvery = 5 * time.Second

func (e *Engine) openFiles(ctx context.Context, fs vfs.FS, o Options) (err error) {
	var refused error
	e.file, err = file.Open(filepath.Join(o.Dir, "log"), file.Options{FS: fs, MaxRecordBytes: o.MaxRecordBytes, Logger: o.Logger,
		Check: func(id uint64, log []file.Bounds) error {
			if refused = check(ctx, fs, o, fileIdentity(id), log); refused == nil {
				refused = checkClickHouse(ctx, o, id)
			}
			return refused
		}})
	if refused != nil {
		return refused
	}
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	e.Log, e.identity = keptLog{e.file, &e.linking}, fileIdentity(e.file.ID())
	return nil
}

// LogName names a log in files of that identity, as its checkpoints and its history do.
func LogName(id uint64) string { return fileIdentity(id) }

// fileIdentity names a log in files, whatever directory it is in.
func fileIdentity(id uint64) string {
	return fmt.Sprintf("the log %016x in a data directory", id)
}

func historyError(o Options, err error) error {
	if o.ClickHouse != nil {
		return fmt.Errorf("open history, --clickhouse: %w", err)
	}
	return fmt.Errorf("open history: %w", err)
}

// openHistory opens history. One in a file may still be opening when it returns, beside the
// loading of the state: the first question for its position waits until it is open.
func (e *Engine) openHistory(ctx context.Context, o Options) error {
	store, err := e.openBackend(ctx, o)
	if err != nil {
		return err
	}
	e.History, err = cache.New(store, cache.Options{Bytes: o.QueryCacheBytes, Now: time.Now, Logger: o.Logger})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	return nil
}

func (e *Engine) openBackend(ctx context.Context, o Options) (cache.Backend, error) {
	if o.ClickHouse == nil {
		options := o.duckdb()
		options.Columns = true
		e.embedded = duckdb.OpenResilient(duckdb.ResilientOptions{
			Options: options, Path: o.historyFile(), Log: e.identity, Now: time.Now, Logger: o.Logger,
			Rebuildable: e.logIsWhole, Trimming: &e.trimming,
		})
		return e.embedded, nil
	}
	return o.openClickHouse(ctx, e.identity)
}

// logIsWhole reports whether the log still has its first records.
func (e *Engine) logIsWhole(ctx context.Context) (bool, error) {
	for i := range e.Log.Partitions() {
		if start, _, err := e.Log.Bounds(ctx, i); err != nil || start > 0 {
			return false, err
		}
	}
	return true, nil
}

// NoteLogEnds makes durable how far the log goes, see [file.Log.NoteEnds]. One in Kafka is
// Kafka's to look after.
func (e *Engine) NoteLogEnds() error {
	if e.file == nil {
		return nil
	}
	return e.file.NoteEnds()
}

// LogFailed reports whether the log has failed for good. One in Kafka never does:
// it continues when Kafka is back.
func (e *Engine) LogFailed() bool { return e.file != nil && e.file.Stats().Failed }

// Close writes a last checkpoint and closes everything in the reverse order of
// opening. ctx bounds how long history may take to catch up.
func (e *Engine) Close(ctx context.Context) error {
	var err error
	if e.scrub != nil {
		e.scrub.stop()
	}
	if e.stopLeft != nil {
		e.stopLeft()
	}
	if e.keeper != nil {
		e.keeper.close()
	}
	if e.Node != nil {
		err = errors.Join(err, e.Node.Close(ctx))
	}
	if e.checkpoints != nil {
		err = errors.Join(err, e.checkpoints.Close())
	}
	if e.History != nil {
		err = errors.Join(err, e.History.Close())
	}
	if e.member != nil {
		err = errors.Join(err, e.member.Close())
	}
	if e.peers != nil {
		e.peers.Close()
	}
	if e.Log != nil {
		err = errors.Join(err, e.Log.Close())
	}
	if e.lock != nil {
		err = errors.Join(err, e.lock.Close())
	}
	return err
}
