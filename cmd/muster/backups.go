package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/cmd/muster/internal/backup"
	"github.com/musterhq/muster/cmd/muster/internal/control"
	"github.com/musterhq/muster/cmd/muster/internal/engine"
	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/internal/pause"
)

const (
	// backupRetry is the longest pause after a backup that failed.
	backupRetry = 5 * time.Minute
	// backupNotes is the pause between two lines about how far a backup is.
	backupNotes = time.Second
	// backupParallel is how many files are read at once: the service needs the disk.
	backupParallel = 2
)

// backupService makes backups of the running service, on request and by schedule.
type backupService struct {
	c   *serveConfig
	eng *engine.Engine
}

// handle carries out what a command asks for.
func (b *backupService) handle(ctx context.Context, r control.Request, note func(string)) (string, error) {
	if r.History != "" {
		return b.copyHistory(ctx, r.History)
	}
	if r.Backup == "" {
		return "", fmt.Errorf("the server knows no such request; it is %s", version())
	}
	place, closeBucket, read, err := b.place(ctx, r.Backup)
	if err != nil {
		return "", err
	}
	defer closeBucket()
	reporting, end := context.WithCancel(ctx)
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		for pause.For(reporting, backupNotes) == nil {
			note(fmt.Sprintf("%d MiB were read, to compare and to copy", read.Load()>>20))
		}
	}()
	done, err := b.eng.Backup(ctx, place, func(bytes int64) { note(fmt.Sprintf("the running service has %d MiB to back up", bytes>>20)) })
	end()
	<-reported
	if err != nil {
		b.c.log.Error("a backup failed", "to", r.Backup, "error", err)
		return "", errors.New(explain(err)) // the command has only the text, and not which disk is full
	}
	lines, mended := b.reread(ctx, b.c.log.With("to", r.Backup), done)
	logMade(b.c.log.With("to", r.Backup), done)
	if !mended {
		return "", fmt.Errorf("backup %s was made, and has a damaged object: %s", done.Name, strings.Join(lines, "; "))
	}
	for _, line := range lines {
		note(line)
	}
	return backupLine(done), nil
}

// reread reports what was read again when a backup was made.
func (b *backupService) reread(ctx context.Context, log *slog.Logger, done backup.Done) (lines []string, mended bool) {
	lines, mended = done.Damage()
	for _, line := range lines {
		log.Error("an object of the backups is damaged", "error", line)
	}
	if done.RereadErr != nil && ctx.Err() == nil {
		log.Warn("objects of the backups could not be read again to compare their content; the next backup tries again", "name", done.Name, "error", done.RereadErr)
	}
	return lines, mended
}

// backupLine is the log line of a backup that was made.
func backupLine(done backup.Done) string {
	return fmt.Sprintf("backup %s: %d files of %d bytes; %d bytes were sent", done.Name, done.Files, done.Bytes, done.SentBytes)
}

// unnoted is said of a backup that the data directory could not note.
const unnoted = "the backup is made, but the data directory could not note it, and does not notice if the disk with its backups is not mounted"

func logMade(log *slog.Logger, done backup.Done) {
	log.Info("made a backup", "name", done.Name, "files", done.Files, "bytes", done.Bytes, "sent_bytes", done.SentBytes)
	if done.Unnoted != nil {
		log.Warn(unnoted, "error", done.Unnoted)
	}
}

// place opens a place for backups; read counts the bytes that are read for them.
func (b *backupService) place(ctx context.Context, url string) (p *backup.Place, closeBucket func(), read *atomic.Int64, err error) {
	if err := checkPlace(b.c.engine.Dir, url); err != nil {
		return nil, nil, nil, err
	}
	bucket, err := blobtree.OpenBucket(ctx, url)
	if err != nil {
		return nil, nil, nil, err
	}
	read = &atomic.Int64{}
	p, err = backup.OpenPlace(backup.Options{
		FS: vfs.Default, Bucket: bucket, URL: url, Rand: rand.Reader, Now: time.Now, Parallel: backupParallel,
		Throttle: engine.Throttle(b.c.backup.rate, time.Now, func(n int) { read.Add(int64(n)) }),
	})
	return p, func() { _ = bucket.Close() }, read, err
}

// start listens for commands and begins the schedule; stop ends both.
func (b *backupService) start(ctx context.Context) (stop func() error, err error) {
	b.eng.BackupInterval(b.c.backup.interval, b.c.backup.to != "")
	s := &schedule{backupService: b, closeBucket: func() {}}
	if b.c.backup.to != "" {
		before := backup.MadeBefore(vfs.Default, b.c.engine.Dir, b.c.backup.to)
		if at := backup.TimeOf(before); !s.toCome(at) {
			b.eng.NoteBackup(at)
		}
		if err := s.open(ctx); err != nil && before == "" {
			return nil, usageError{fmt.Errorf("--backup-to: %w", err)}
		}
	}
	// What came in before the stop is not served longer for a backup.
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	server, err := control.Listen(b.c.engine.Dir, b.handle, b.c.log)
	if err != nil {
		end()
		s.closeBucket()
		return nil, err
	}
	var running sync.WaitGroup
	if b.c.backup.to != "" {
		running.Go(func() { s.run(ctx) })
	}
	return func() error {
		end()
		running.Wait()
		s.closeBucket()
		return server.Close()
	}, nil
}

// schedule makes backups at the place of --backup-to.
type schedule struct {
	*backupService
	place       *backup.Place // nil while it could not be opened
	closeBucket func()
	due         time.Time // of the next backup; zero where it is not known
}

// run makes backups until ctx ends: the first once the newest one there is as old as the
// interval.
func (s *schedule) run(ctx context.Context) {
	log := s.c.log.With("to", s.c.backup.to)
	retry := backupNotes
	for {
		err := s.next(ctx, log)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			retry = backupNotes
			continue
		}
		log.Error("a backup by schedule failed; trying again", "retry_in", retry, "error", err)
		if pause.For(ctx, retry) != nil {
			return
		}
		retry = min(2*retry, backupRetry, s.c.backup.interval)
	}
}

// next makes a backup when it is due.
func (s *schedule) next(ctx context.Context, log *slog.Logger) error {
	if err := s.look(ctx); err != nil {
		s.eng.BackupFailed()
		return err
	}
	if err := pause.For(ctx, time.Until(s.due)); err != nil {
		return err
	}
	begun := time.Now()
	if err := s.reachable(ctx); err != nil {
		s.eng.BackupFailed()
		return err
	}
	done, err := s.eng.Backup(ctx, s.place, nil)
	if err != nil {
		return err
	}
	logMade(log.With("took", time.Since(begun)), done)
	s.eng.NoteBackup(begun)
	s.reread(ctx, log, done)
	s.due = begun.Add(s.c.backup.interval)
	return nil
}

// look opens the place and asks it for its newest backup, unless that was done.
func (s *schedule) look(ctx context.Context) error {
	if s.place == nil {
		if err := s.open(ctx); err != nil {
			return err
		}
	}
	if !s.due.IsZero() {
		return nil
	}
	newest, err := s.place.Newest(ctx)
	if err != nil || newest.IsZero() || s.toCome(newest) {
		// Where there is none, it is looked for again after a failure: a disk may be mounted.
		// One of a time to come would be waited for; to make another fails, and says what to do.
		return err
	}
	s.eng.NoteBackup(newest)
	s.due = newest.Add(s.c.backup.interval)
	return nil
}

// toCome reports whether a backup is of a clock that was wrong when it was made: of a later
// time than any small correction of it explains.
func (s *schedule) toCome(at time.Time) bool { return time.Until(at) > s.c.backup.interval }

func (s *schedule) open(ctx context.Context) error {
	place, closeBucket, _, err := s.backupService.place(ctx, s.c.backup.to)
	if err != nil {
		return s.unmounted(err)
	}
	s.place, s.closeBucket = place, closeBucket
	return nil
}

// reachable refuses a place that is not there any more, such as a directory on a disk
// that was unmounted: it would be rebuilt on the disk below.
func (s *schedule) reachable(ctx context.Context) error {
	bucket, err := blobtree.OpenBucket(ctx, s.c.backup.to)
	if err != nil {
		return s.unmounted(err)
	}
	return bucket.Close()
}

// unmounted says of a place that cannot be opened which backups it had: to make the
// directory is no remedy then.
func (s *schedule) unmounted(err error) error {
	if newest := backup.MadeBefore(vfs.Default, s.c.engine.Dir, s.c.backup.to); newest != "" {
		return fmt.Errorf("the backups that were made at %s before, the newest %s, cannot be reached (%w): mount the disk that has them", s.c.backup.to, newest, cause(err))
	}
	return err
}
