package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/cmd/muster/internal/backup"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/query/duckdb"
)

// BackupDir is where the files of a backup under way are, as hard links, below the
// data directory. What a process that was killed left there is removed by the next.
const BackupDir = "backup.tmp"

// ErrBackupRunning means that a backup is being made already.
var ErrBackupRunning = errors.New("a backup is being made already; wait until it is done")

// ErrNoBackup means that a running service cannot be backed up, whatever is tried.
var ErrNoBackup = errors.New("the running service cannot be backed up")

// backups are the backups of the running service, which are made one at a time.
type backups struct {
	sync.Mutex
	running                 atomic.Bool
	made, failed, sentBytes atomic.Int64
	reread, damaged         atomic.Int64 // objects
	newest                  atomic.Int64 // of the schedule, Unix ms; 0 for none
	intervalNs              atomic.Int64 // 0 without a schedule
}

// NoteBackup says when the newest backup was made in the place of the schedule.
func (e *Engine) NoteBackup(at time.Time) {
	if !at.IsZero() {
		e.backups.newest.Store(at.UnixMilli())
	}
}

// BackupInterval says how often backups are to be made, for the metrics.
func (e *Engine) BackupInterval(d time.Duration, scheduled bool) {
	if scheduled {
		e.backups.intervalNs.Store(int64(d))
	}
}

// BackupFailed counts a backup of the schedule that failed before Backup was called.
func (e *Engine) BackupFailed() { e.backups.failed.Add(1) }

func (b *backups) write(w io.Writer) {
	metrics.WriteCounterUint64(w, `muster_backups_total{result="made"}`, uint64(b.made.Load()))
	metrics.WriteCounterUint64(w, `muster_backups_total{result="failed"}`, uint64(b.failed.Load()))
	metrics.WriteCounterUint64(w, "muster_backup_sent_bytes_total", uint64(b.sentBytes.Load()))
	metrics.WriteCounterUint64(w, "muster_backup_reread_objects_total", uint64(b.reread.Load()))
	metrics.WriteCounterUint64(w, "muster_backup_damaged_objects_total", uint64(b.damaged.Load()))
	metrics.WriteGaugeFloat64(w, "muster_backup_running", flag(b.running.Load()))
	metrics.WriteGaugeFloat64(w, "muster_backup_interval_seconds", time.Duration(b.intervalNs.Load()).Seconds())
	metrics.WriteGaugeFloat64(w, "muster_backup_newest_timestamp_seconds", float64(b.newest.Load())/1000)
}

// Backup stores the directory in place as it is at the instant of the call: the kept
// checkpoints and every record that is durable. The service continues meanwhile. report
// is called once the files are known, with how many bytes there are; nil is silent.
//
// History is left out while the log has its beginning: a start makes it from the log.
func (e *Engine) Backup(ctx context.Context, place *backup.Place, report func(bytes int64)) (done backup.Done, err error) {
	if e.file == nil {
		return done, fmt.Errorf("%w: its log is in Kafka, and its history in ClickHouse: back those up. Its state is made from the log, and kept for other nodes with --checkpoints", ErrNoBackup)
	}
	if !e.backups.TryLock() {
		return done, ErrBackupRunning
	}
	e.backups.running.Store(true)
	defer func() {
		e.backups.running.Store(false)
		if err != nil {
			e.backups.failed.Add(1)
		} else {
			e.backups.made.Add(1)
			e.backups.sentBytes.Add(done.SentBytes)
			e.backups.reread.Add(int64(done.Reread.Objects + len(done.Reread.Damaged)))
			e.backups.damaged.Add(int64(len(done.Reread.Damaged)))
		}
		e.backups.Unlock()
	}()
	// Before history is copied, which holds its writer up.
	if err := place.Check(ctx, e.dir, e.file.ID()); err != nil {
		return done, err
	}
	dir := filepath.Join(e.dir, BackupDir)
	if err := os.RemoveAll(dir); err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r, err := e.link(ctx, dir)
	if err != nil {
		return done, err
	}
	if err := e.checkHistoryCopy(ctx, dir); err != nil {
		return done, err
	}
	if report != nil {
		total, err := size(r.Sources)
		if err != nil {
			return done, err
		}
		report(total)
	}
	return place.Make(ctx, r)
}

// link makes dir the directory as it is now, of hard links.
func (e *Engine) link(ctx context.Context, dir string) (r backup.Running, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return r, err
	}
	add := func(path string, size int64) {
		r.Sources = append(r.Sources, blobtree.Source{Path: path, From: filepath.Join(dir, filepath.FromSlash(path)), Size: size})
	}
	// In this order: neither a checkpoint nor history is ahead of the log, and history
	// is not behind the checkpoints. The log still has what is behind them: see keptLog.
	e.linking.Lock()
	defer e.linking.Unlock()
	whole := true
	for i := range e.file.Partitions() {
		files, err := e.Node.LinkCheckpoints(i, filepath.Join(dir, "state"))
		if err != nil {
			return r, err
		}
		for _, path := range files {
			add("state/"+path, -1)
		}
		start, _, err := e.file.Bounds(ctx, i)
		if err != nil {
			return r, err
		}
		whole = whole && start == 0
	}
	if elsewhere, err := HistoryElsewhere(e.dir); err != nil {
		return r, err
	} else if elsewhere {
		if err := os.Link(filepath.Join(e.dir, HistoryMark), filepath.Join(dir, HistoryMark)); err != nil {
			return r, err
		}
		add(HistoryMark, -1)
	}
	if history, here := e.History.Backend.(copier); here && !whole {
		if err := history.CopyTo(ctx, filepath.Join(dir, HistoryFile)); err != nil {
			return r, err
		}
		add(HistoryFile, -1)
	}
	logDir := filepath.Join(dir, "log")
	links, err := e.file.Link(logDir)
	if err != nil {
		return r, err
	}
	for _, f := range links.Files {
		add("log/"+f.Path, f.Size)
	}
	r.Dir, r.Trimmed, r.Log, r.Ends = e.dir, !whole, e.file.ID(), links.Ends
	r.Check = func(ctx context.Context, throttle func(ctx context.Context, bytes int) error, reused func(path string) bool) error {
		return e.file.CheckLinked(ctx, logDir, links, throttle, func(f file.Linked) bool { return reused("log/" + f.Path) })
	}
	r.Last = func() (last []blobtree.Source, err error) {
		more, err := e.file.LinkSidecars(logDir, links)
		for _, f := range more {
			last = append(last, blobtree.Source{Path: "log/" + f.Path, From: filepath.Join(logDir, filepath.FromSlash(f.Path)), Size: f.Size})
		}
		return last, err
	}
	return r, nil
}

// keptLog is a log in files that is not trimmed while the files of a backup are linked: while
// history is copied, checkpoints may be written, and a log that is trimmed to those begins
// behind the ones that the backup has.
type keptLog struct {
	*file.Log
	linking *sync.RWMutex
}

// Trim does nothing then. It must not wait, since the caller holds the lock that checkpoints
// need; the next checkpoint calls it again.
func (l keptLog) Trim(partition int, before int64) error {
	if !l.linking.TryRLock() {
		return nil
	}
	defer l.linking.RUnlock()
	return l.Log.Trim(partition, before)
}

// checkHistoryCopy reads the copy of history whole that [Engine.link] made in dir, if it made
// one, as muster check does: the log cannot make its rows again, so that a backup with a
// damaged one would be none.
func (e *Engine) checkHistoryCopy(ctx context.Context, dir string) error {
	path := filepath.Join(dir, HistoryFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_, err := duckdb.Inspect(ctx, path, LogName(e.file.ID()), duckdb.Options{MemoryLimitBytes: duckdb.LeastMemoryBytes, Threads: 1})
	switch {
	case err == nil:
		return nil
	case !duckdb.Damaged(err):
		return fmt.Errorf("the copy of history could not be read whole: %w", err)
	}
	return backup.NotMade(fmt.Errorf("%s is damaged: its copy: %w. The log was trimmed, so only a backup has its rows: stop the service, and if muster check names it as lost, restore the newest backup with what is left of the log", filepath.Join(e.dir, HistoryFile), err))
}

// copier is a history that is in the data directory.
type copier interface {
	CopyTo(ctx context.Context, path string) error
}

func size(sources []blobtree.Source) (total int64, err error) {
	for _, s := range sources {
		n := s.Size
		if n < 0 {
			info, err := os.Stat(s.From)
			if err != nil {
				return 0, err
			}
			n = info.Size()
		}
		total += n
	}
	return total, nil
}

// Throttle returns a function that lets bytesPerSecond pass for all its callers
// together, and calls count with the bytes unless it is nil. Zero is without bound.
func Throttle(bytesPerSecond int64, now func() time.Time, count func(bytes int)) func(ctx context.Context, bytes int) error {
	var mu sync.Mutex
	var free time.Time // when what was let pass is used up
	return func(ctx context.Context, bytes int) error {
		if count != nil {
			count(bytes)
		}
		if bytesPerSecond == 0 {
			return ctx.Err()
		}
		mu.Lock()
		t := now()
		if free.Before(t) {
			free = t
		}
		wait := free.Sub(t)
		free = free.Add(time.Duration(float64(bytes) / float64(bytesPerSecond) * float64(time.Second)))
		mu.Unlock()
		return pause.For(ctx, wait)
	}
}
