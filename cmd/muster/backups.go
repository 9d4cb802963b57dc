package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
	b.c.log.Info("made a backup", "to", r.Backup, "name", done.Name, "files", done.Files, "bytes", done.Bytes, "sent_bytes", done.SentBytes)
	return backupLine(done), nil
}

// backupLine is the log line of a backup that was made.
func backupLine(done backup.Done) string {
	return fmt.Sprintf("backup %s: %d files of %d bytes; %d bytes were sent", done.Name, done.Files, done.Bytes, done.SentBytes)
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
	var place *backup.Place
	closeBucket := func() {}
	if b.c.backup.to != "" {
		if place, closeBucket, _, err = b.place(ctx, b.c.backup.to); err != nil {
			return nil, usageError{fmt.Errorf("--backup-to: %w", err)}
		}
	}
	// What came in before the stop is not served longer for a backup.
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	server, err := control.Listen(b.c.engine.Dir, b.handle, b.c.log)
	if err != nil {
		end()
		closeBucket()
		return nil, err
	}
	var running sync.WaitGroup
	if place != nil {
		running.Go(func() { b.schedule(ctx, place) })
	}
	return func() error {
		end()
		running.Wait()
		closeBucket()
		return server.Close()
	}, nil
}

// reachable refuses a place that is not there any more, such as a directory on a disk
// that was unmounted: it would be rebuilt on the disk below.
func (b *backupService) reachable(ctx context.Context) error {
	bucket, err := blobtree.OpenBucket(ctx, b.c.backup.to)
	if err != nil {
		return err
	}
	return bucket.Close()
}

// schedule makes backups until ctx ends: the first once the newest one there is as old
// as the interval.
func (b *backupService) schedule(ctx context.Context, place *backup.Place) {
	log := b.c.log.With("to", b.c.backup.to)
	due := time.Time{} // not known yet
	retry := backupNotes
	for {
		err := error(nil)
		if due.IsZero() {
			var newest time.Time
			if newest, err = place.Newest(ctx); err == nil {
				b.eng.NoteBackup(newest)
				due = newest.Add(b.c.backup.interval)
			}
		}
		if err == nil {
			if pause.For(ctx, time.Until(due)) != nil {
				return
			}
			begun := time.Now()
			var done backup.Done
			if err = b.reachable(ctx); err == nil {
				done, err = b.eng.Backup(ctx, place, nil)
			}
			if err == nil {
				log.Info("made a backup", "name", done.Name, "files", done.Files, "bytes", done.Bytes, "sent_bytes", done.SentBytes, "took", time.Since(begun))
				b.eng.NoteBackup(begun)
				due, retry = begun.Add(b.c.backup.interval), backupNotes
				continue
			}
		}
		if ctx.Err() != nil {
			return
		}
		log.Error("a backup by schedule failed; trying again", "retry_in", retry, "error", err)
		if pause.For(ctx, retry) != nil {
			return
		}
		retry = min(2*retry, backupRetry, b.c.backup.interval)
	}
}
