package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/cluster/checkpoint"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/eventlog/kafka"
	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/internal/dirlock"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/clickhouse"
	"github.com/musterhq/muster/query/duckdb"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
)

// MigrateOptions say what [Migrate] moves and where.
type MigrateOptions struct {
	// Options are those of the directory, Dir among them. Kafka and ClickHouse name
	// where it is moved to, Checkpoints where shared checkpoints are left, if
	// anywhere.
	Options
	// To is the data directory of a node to be made there, empty for none.
	To string
	// Partitions is how many a topic that is made has.
	Partitions int
	// Report is called with what was done; nil is silent.
	Report func(format string, args ...any)
	// Check refuses a directory that is not whole. It is called under the directory's
	// lock, before anything is written.
	Check func(ctx context.Context) error
}

// Migrated is the result of a migration.
type Migrated struct {
	plan
	// Before reports that it had been moved by an earlier call.
	Before   bool
	Counts   query.Counts
	Accounts int64
	Profiles int64
}

// Flags names the flags that what was moved is started with.
func (m Migrated) Flags() string { return m.flags() }

// migration is one under way.
type migration struct {
	o        MigrateOptions
	log      *file.Log
	history  *duckdb.Store
	topic    *kafka.Log
	target   *clickhouse.Store
	plan     plan
	resumed  bool // an earlier call has begun
	scratch  string
	identity logName
}

// Migrate moves a data directory with all that is in it to a topic in Kafka and a
// database in ClickHouse. It writes, in this order:
//
//  1. migration.json in the directory: where its log ends, and where it goes.
//  2. History, in ClickHouse.
//  3. The state, as a checkpoint for each partition, in To or a directory of its
//     own.
//  4. moved.json in the directory: from here on serve refuses it.
//  5. The base records in the topic, from which on it is a log.
//  6. Shared checkpoints, and log.json in To, from which on serve takes it.
//  7. That it is done, in moved.json.
//
// Cut off anywhere it can be called again, and continues or does a step again. Up to
// 4 the directory can be served as before; then it has another end, and what was
// written elsewhere is of no use.
func Migrate(ctx context.Context, o MigrateOptions) (res Migrated, err error) {
	if o.Report == nil {
		o.Report = func(string, ...any) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	m := &migration{o: o}
	if _, err := os.Stat(filepath.Join(o.Dir, "log")); err != nil {
		return res, fmt.Errorf("%s is no data directory with a log of its own: %w", o.Dir, err)
	}
	lock, err := dirlock.Lock(vfs.Default, filepath.Join(o.Dir, "LOCK"))
	if err != nil {
		return res, fmt.Errorf("%w: %w; stop it first", ErrInUse, err)
	}
	defer func() { err = errors.Join(err, m.close(), lock.Close()) }()
	done, err := m.begun()
	if err != nil || done != nil {
		if done != nil {
			res = Migrated{plan: *done, Before: true}
		}
		return res, err
	}
	// The numbers of rows are compared with what the directory's history has. That says
	// nothing of a history that lacks rows, or is another directory's.
	if err := o.Check(ctx); err != nil {
		return res, err
	}
	if err := makePrivate(o.Dir, o.Logger); err != nil {
		return res, err
	}
	if err := m.openSource(); err != nil {
		return res, err
	}
	if err := m.openTarget(ctx); err != nil {
		return res, err
	}
	if err := m.catchUp(ctx); err != nil {
		return res, err
	}
	res.plan = m.plan
	if res.Counts, err = m.copyHistory(ctx); err != nil {
		return res, err
	}
	split, err := m.splitState(ctx)
	if err != nil {
		return res, err
	}
	res.Accounts, res.Profiles = split.Accounts, split.Profiles
	return res, m.handOver(ctx, split)
}

// begun reads what an earlier call has left. done is not nil when there is nothing
// left to do.
func (m *migration) begun() (done *plan, err error) {
	dir := m.o.Dir
	last, found, err := readMoved(dir)
	switch {
	case err != nil:
		return nil, err
	case found && last.Done && last.Topic == m.o.Kafka.Topic:
		return &last.plan, nil
	case found && last.Done:
		return nil, checkMoved(dir)
	case found && last.Topic != m.o.Kafka.Topic:
		return nil, fmt.Errorf("%w: it continues as %s, the flags name topic %s", ErrMoved, last.log(), m.o.Kafka.Topic)
	}
	name, named, err := readLogName(dir)
	if err != nil {
		return nil, err
	}
	if named {
		return nil, fmt.Errorf("%w: %s has the state of %s; only a directory with a log of its own can be moved", ErrOtherLog, dir, name)
	}
	m.plan, m.resumed, err = readPlan(dir)
	return nil, err
}

// openSource opens the directory's log, which must be whole, and its history.
func (m *migration) openSource() (err error) {
	o := &m.o
	if m.log, err = file.Open(filepath.Join(o.Dir, "log"), file.Options{MaxRecordBytes: o.MaxRecordBytes, Logger: o.Logger}); err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	if n := m.log.Partitions(); n != 1 {
		return fmt.Errorf("the log in %s has %d partitions, one with 1 can be moved", o.Dir, n)
	}
	m.history, err = duckdb.Open(o.historyFile(), duckdb.Options{MemoryLimitBytes: o.HistoryMemory, Threads: o.HistoryThreads})
	if err != nil {
		return fmt.Errorf("open history: %w", err)
	}
	return nil
}

// openTarget opens the topic and the database, which must be new, or what an
// earlier call has made of them.
func (m *migration) openTarget(ctx context.Context) (err error) {
	k := *m.o.Kafka
	k.MaxRecordBytes, k.Logger, k.NewPartitions = m.o.MaxRecordBytes, m.o.Logger, m.o.Partitions
	if m.topic, err = kafka.Open(ctx, k); err != nil {
		return err
	}
	id, err := m.topic.ClusterID(ctx)
	if err != nil {
		return fmt.Errorf("the log in Kafka: %w", err)
	}
	m.identity = logName{Kind: kindKafka, Cluster: id, Topic: m.topic.Topic()}
	to := m.o.To
	if to != "" {
		if to, err = filepath.Abs(to); err != nil {
			return fmt.Errorf("--to: %w", err)
		}
	}
	here := plan{
		Log: fmt.Sprintf("%016x", m.log.ID()), Base: m.plan.Base, Cluster: id, Topic: m.topic.Topic(), Partitions: m.topic.Partitions(),
		To: to, Checkpoints: m.o.Checkpoints,
	}
	base := int64(-1)
	if m.resumed {
		base = m.plan.Base
		if here != m.plan {
			return fmt.Errorf("%s was being moved elsewhere: to %s with %d partitions, --to %q and --checkpoints %q. Continue with these flags, or remove %s to start again with another topic and database",
				m.o.Dir, m.plan.log(), m.plan.Partitions, m.plan.To, m.plan.Checkpoints, filepath.Join(m.o.Dir, planFile))
		}
	}
	if err := m.topic.CanBegin(ctx, base); err != nil {
		return fmt.Errorf("%w. A log can be moved to a new topic only: name another one with --kafka-topic; it is made when there is none", err)
	}
	m.plan = here
	c := *m.o.ClickHouse
	c.Owner, c.Logger, c.TTLDays = m.identity.String(), m.o.Logger, 0
	if m.target, err = clickhouse.Open(ctx, c); err != nil {
		return fmt.Errorf("open history in ClickHouse: %w", err)
	}
	if m.resumed {
		return nil
	}
	for i := range m.plan.Partitions {
		at, err := m.target.Position(ctx, i)
		if err != nil {
			return err
		}
		if at > 0 {
			return fmt.Errorf("%w: it has rows of %s already: name another database with --clickhouse; it is made when there is none", clickhouse.ErrOtherOwner, m.identity)
		}
	}
	return m.checkTo()
}

// checkTo refuses a directory that has something in it.
func (m *migration) checkTo() error {
	if m.plan.To == "" {
		return nil
	}
	entries, err := os.ReadDir(m.plan.To)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("--to: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("--to: %s is not empty; name another directory, it is made when there is none", m.plan.To)
	}
	return nil
}

// maxCatchUps is how often the directory is opened to get a checkpoint at the end
// of its log: what a node has begun when it closes comes behind.
const maxCatchUps = 10

// catchUp finds the end of the log, and sees to it that state and history are at
// it. Then the plan is written, if there was none.
func (m *migration) catchUp(ctx context.Context) error {
	start, end, err := m.log.Bounds(ctx, 0)
	if err != nil {
		return err
	}
	if m.resumed && end != m.plan.Base {
		return fmt.Errorf("%s was served since an earlier muster migrate: its log ended at %d then and ends at %d now. What was copied is of no use any more: remove %s, and name another topic and another database (or drop them)",
			m.o.Dir, m.plan.Base, end, filepath.Join(m.o.Dir, planFile))
	}
	if err := m.readAll(ctx, start, end); err != nil {
		return fmt.Errorf("the log is damaged, so it is not moved: %w", err)
	}
	for n := 0; ; n++ {
		ready, err := m.ready(ctx, end)
		if err != nil {
			return err
		}
		if ready {
			break
		}
		if m.resumed || n == maxCatchUps {
			return fmt.Errorf("state and history of %s do not reach the end of its log, %d. Serve it once more and stop it, then try again", m.o.Dir, end)
		}
		m.o.Report("state: bringing it up to the end of the log, record %d", end)
		if err := m.serveOnce(ctx); err != nil {
			return err
		}
		if _, end, err = m.log.Bounds(ctx, 0); err != nil {
			return err
		}
	}
	m.plan.Base = end
	if m.resumed {
		return nil
	}
	return writeJSON(m.o.Dir, planFile, m.plan)
}

// readAll reads what the log holds.
func (m *migration) readAll(ctx context.Context, from, to int64) error {
	r, err := m.log.Read(0, from)
	if err != nil {
		return err
	}
	defer r.Close()
	for at := from; at < to; at++ {
		if _, err := r.Next(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (m *migration) state() string { return filepath.Join(m.o.Dir, "state") }

// ready reports whether the newest checkpoint and history are at the end.
func (m *migration) ready(ctx context.Context, end int64) (bool, error) {
	at, err := resolver.NewestCheckpoint(vfs.Default, m.state(), 0)
	if err != nil || at != end {
		return false, err
	}
	stored, err := m.history.Position(ctx, 0)
	if err == nil && stored > end {
		err = fmt.Errorf("history has stored records up to %d, but the log ends at %d: it is the history of another log, or records are missing from this one", stored, end)
	}
	return stored == end, err
}

// serveOnce opens the state and closes it again, which replays the log, has
// history store all and writes a checkpoint.
func (m *migration) serveOnce(ctx context.Context) error {
	o := &m.o
	node, err := node.Open(ctx, node.Options{
		FS: vfs.Default, Dir: m.state(), Log: m.log, LogName: fileIdentity(m.log.ID()), History: m.history, Now: time.Now, Rand: rand.Reader, Logger: o.Logger, End: o.End,
		GenerationBytes: o.GenerationBytes, CacheBytes: o.CacheBytes, MaxBacklog: o.MaxBacklog,
		Feed: o.feed(), Skip: o.Skip,
	})
	if err != nil {
		return fmt.Errorf("open the state: %w", err)
	}
	if err := node.Close(ctx); err != nil {
		return fmt.Errorf("close the state: %w", err)
	}
	return nil
}

func (m *migration) copyHistory(ctx context.Context) (query.Counts, error) {
	reported := time.Now()
	n, err := query.Copy(ctx, m.history, m.target, query.CopyOptions{UpTo: m.plan.Base, Partitions: m.plan.Partitions, Progress: func(at int64) {
		if time.Since(reported) > 10*time.Second {
			reported = time.Now()
			m.o.Report("history: records up to %d of %d", at, m.plan.Base)
		}
	}})
	if err != nil {
		return n, fmt.Errorf("copy history: %w", err)
	}
	m.o.Report("history: %d events, %d merges, %d entries and exits of segments; counts compared", n.Events, n.Aliases, n.Transitions)
	return n, nil
}

// splitState makes the checkpoints of the partitions.
func (m *migration) splitState(ctx context.Context) (resolver.SplitResult, error) {
	dir := m.plan.To
	if dir == "" {
		m.scratch = filepath.Join(m.o.Dir, "migration")
		dir = m.scratch
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return resolver.SplitResult{}, fmt.Errorf("--to: %w", err)
	}
	res, err := resolver.Split(ctx, resolver.SplitOptions{
		FS: vfs.Default, From: m.state(), To: filepath.Join(dir, "state"), Partitions: m.plan.Partitions, Offset: m.plan.Base, Logger: m.o.Logger, End: m.o.End,
		FromLog: fileIdentity(m.log.ID()), ToLog: m.identity.String(),
	})
	if err != nil {
		return res, fmt.Errorf("split the state: %w", err)
	}
	m.o.Report("state: %d accounts with %d profiles in %d partitions; their states compared", res.Accounts, res.Profiles, m.plan.Partitions)
	if m.plan.To == "" {
		return res, nil
	}
	// What is captured instead of sent is each node's own.
	captured := filepath.Join(m.o.Dir, "outbox")
	if _, err := os.Stat(captured); err == nil {
		if err := os.RemoveAll(filepath.Join(dir, "outbox")); err != nil {
			return res, err
		}
		if _, err := vfs.Clone(vfs.Default, vfs.Default, captured, filepath.Join(dir, "outbox"), vfs.CloneSync); err != nil {
			return res, fmt.Errorf("copy captured messages: %w", err)
		}
	}
	return res, nil
}

// handOver ends the log in files and begins the one in Kafka.
func (m *migration) handOver(ctx context.Context, split resolver.SplitResult) error {
	mark := moved{plan: m.plan}
	if err := writeJSON(m.o.Dir, movedFile, mark); err != nil {
		return err
	}
	m.o.Report("handing over: %s is closed", m.o.Dir)
	if err := m.topic.Begin(ctx, m.plan.Base); err != nil {
		return err
	}
	m.o.Report("log: %s begins at record %d", m.identity, m.plan.Base)
	if err := m.upload(ctx, split.Checkpoints); err != nil {
		return err
	}
	if m.plan.To != "" {
		name := m.identity
		name.Base = m.plan.Base
		if _, err := claimDir(m.plan.To, name, rand.Reader); err != nil {
			return err
		}
	}
	mark.Done = true
	if err := writeJSON(m.o.Dir, movedFile, mark); err != nil {
		return err
	}
	if m.scratch != "" {
		if err := os.RemoveAll(m.scratch); err != nil {
			return err
		}
	}
	return removeJSON(m.o.Dir, planFile)
}

// upload leaves the checkpoints for other nodes.
func (m *migration) upload(ctx context.Context, dirs []string) (err error) {
	if m.plan.Checkpoints == "" {
		return nil
	}
	bucket, err := blobtree.OpenBucket(ctx, m.plan.Checkpoints)
	if err != nil {
		return fmt.Errorf("--checkpoints: %w", err)
	}
	store, err := checkpoint.New(checkpoint.Options{
		Bucket: bucket, Place: m.plan.Checkpoints, Log: m.identity.String(), FS: vfs.Default, Rand: rand.Reader, Now: time.Now, Logger: m.o.Logger,
	})
	if err != nil {
		return errors.Join(err, bucket.Close())
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for i, dir := range dirs {
		if err := store.Upload(ctx, i, dir, m.plan.Base, 0); err != nil {
			return err
		}
	}
	m.o.Report("checkpoints: %d are in %s", len(dirs), m.plan.Checkpoints)
	return nil
}

func (m *migration) close() error {
	var err error
	if m.target != nil {
		err = errors.Join(err, m.target.Close())
	}
	if m.topic != nil {
		err = errors.Join(err, m.topic.Close())
	}
	if m.history != nil {
		err = errors.Join(err, m.history.Close())
	}
	if m.log != nil {
		err = errors.Join(err, m.log.Close())
	}
	return err
}
