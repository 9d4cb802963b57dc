package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/cmd/muster/internal/backup"
	"github.com/musterhq/muster/cmd/muster/internal/cli"
	"github.com/musterhq/muster/cmd/muster/internal/control"
	"github.com/musterhq/muster/cmd/muster/internal/datacheck"
	"github.com/musterhq/muster/internal/blobtree"
)

// backup copies a data directory to storage: by itself, or by the server that has it.
func (p *process) backup(ctx context.Context) error {
	f := cli.New("muster backup", "muster backup copies a data directory to storage. A server that has it makes the backup while it serves.", p.stderr)
	dir := f.String("data", "", "`DIR` to back up")
	to := f.String("to", "", "`URL` of the storage: file:///DIRECTORY or s3://BUCKET/PREFIX?region=REGION. What an earlier backup there has is not sent again")
	rest, err := f.Parse(p.args, p.env)
	switch {
	case err != nil:
		return usageError{err}
	case len(rest) > 0:
		return wrongUsage("backup takes no arguments, have %q", rest)
	case *dir == "":
		return wrongUsage("--data is empty; name the directory to back up")
	case *to == "":
		return wrongUsage("--to is empty; name the storage that backups go to")
	}
	if err := checkDirectory("data", *dir, true); err != nil {
		return err
	}
	if err := checkPlace(*dir, *to); err != nil {
		return usageError{fmt.Errorf("--to: %w", err)}
	}
	o, closeBucket, err := backupOptions(ctx, *dir, "to", *to)
	if err != nil {
		return err
	}
	defer closeBucket()
	o.History = datacheck.LostHistory
	done, err := backup.Make(ctx, o)
	if errors.Is(err, backup.ErrInUse) {
		return p.backupRunning(ctx, *dir, *to, err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, backupLine(done))
	if done.Unnoted != nil {
		fmt.Fprintf(p.stderr, "muster: %s: %v\n", unnoted, done.Unnoted)
	}
	return nil
}

// backupRunning has the server make the backup. inUse says that there is one.
func (p *process) backupRunning(ctx context.Context, dir, to string, inUse error) error {
	done, err := control.Call(ctx, dir, control.Request{Backup: to}, func(note string) { fmt.Fprintln(p.stderr, note) })
	if errors.Is(err, control.ErrNoServer) {
		return fmt.Errorf("%w. If it is a server that starts, try again when it is ready (%w)", inUse, err)
	}
	if err == nil {
		fmt.Fprintln(p.stdout, done)
	}
	return err
}

// restore copies a backup to a new data directory.
func (p *process) restore(ctx context.Context) error {
	f := cli.New("muster restore", "muster restore copies a backup to a new data directory.", p.stderr)
	dir := f.String("data", "", "`DIR` that is empty or not there")
	from := f.String("from", "", "`URL` that was given to muster backup --to")
	name := f.String("backup", "", "`NAME` of the backup; the newest when empty")
	log := f.String("log", "", "`DIR` with what is left of the log that was backed up, such as OLD-DIR/log: its records behind the backup are restored as well")
	list := f.Bool("list", false, "list the backups and restore nothing")
	rest, err := f.Parse(p.args, p.env)
	switch {
	case err != nil:
		return usageError{err}
	case len(rest) > 0:
		return wrongUsage("restore takes no arguments, have %q", rest)
	case *from == "":
		return wrongUsage("--from is empty; name the storage with the backups")
	case *dir == "" && !*list:
		return wrongUsage("--data is empty; name the directory to restore to")
	}
	o, closeBucket, err := backupOptions(ctx, *dir, "from", *from)
	if err != nil {
		return err
	}
	defer closeBucket()
	if *list {
		return p.listBackups(ctx, o)
	}
	o.Log = *log
	done, err := backup.Restore(ctx, o, *name)
	if err != nil {
		return err
	}
	if err := os.Chmod(*dir, 0o700); err != nil { // it may have been there
		return fmt.Errorf("--data: everything is restored, but others may look into it: %w", err)
	}
	if done.Trimmed {
		if err := p.restoredWhole(ctx, *dir, done.Name); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.stdout, "restored backup %s to %s: %d files of %d bytes\n", done.Name, *dir, done.Files, done.Bytes)
	if *log != "" {
		fmt.Fprintf(p.stdout, "the log in %s had %d records behind the backup, which are restored as well\n", *log, done.Records)
	}
	return nil
}

// restoredWhole reads the state and history of a restored directory whose log lacks its
// beginning: nothing makes them from the log if they were damaged when they were backed up.
func (p *process) restoredWhole(ctx context.Context, dir, name string) error {
	r, err := lockedCheck(ctx, dir, nil)
	if err != nil {
		return fmt.Errorf("backup %s was restored to %s, but whether its state and history are whole is not known: %w", name, dir, err)
	}
	var lost []string
	for _, f := range r.Findings {
		switch f.Verdict {
		case datacheck.Lost:
			lost = append(lost, fmt.Sprintf("%s: %s", f.Path, f.Text))
		case datacheck.Repairable:
			fmt.Fprintln(p.stderr, f)
		}
	}
	if len(lost) > 0 {
		return fmt.Errorf("backup %s was restored to %s, but it is of a directory that was damaged already (places: %d): %s. To restore an older backup to another directory, see --list, and --log for what is left of the log", name, dir, len(lost), strings.Join(lost, "; "))
	}
	return nil
}

func (p *process) listBackups(ctx context.Context, o backup.Options) error {
	all, err := backup.List(ctx, o)
	if err != nil {
		return err
	}
	for _, b := range all {
		if b.Err != nil {
			fmt.Fprintf(p.stdout, "%s\tcannot be read: %v\n", b.Name, b.Err)
		} else {
			fmt.Fprintf(p.stdout, "%s\t%d files\t%d bytes\n", b.Name, b.Files, b.Bytes)
		}
	}
	return nil
}

func backupOptions(ctx context.Context, dir, flag, url string) (o backup.Options, closeBucket func(), err error) {
	bucket, err := blobtree.OpenBucket(ctx, url)
	if err != nil {
		return o, nil, usageError{fmt.Errorf("--%s: %w", flag, err)}
	}
	return backup.Options{FS: vfs.Default, Dir: dir, Bucket: bucket, URL: url, Rand: rand.Reader, Now: time.Now}, func() { _ = bucket.Close() }, nil
}
