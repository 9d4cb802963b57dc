package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/cmd/muster/internal/cli"
	"github.com/musterhq/muster/cmd/muster/internal/datacheck"
	"github.com/musterhq/muster/cmd/muster/internal/engine"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/dirlock"
)

// Exit codes of check and repair; 1 says that they could not be done.
const (
	exitDamaged = 3 // muster repair mends it
	exitLost    = 4 // only a backup has it
)

// exitError ends the process with a code of its own.
type exitError struct {
	code int
	error
}

func (e exitError) Unwrap() error { return e.error }

// check reports whether a stopped data directory is whole.
func (p *process) check(ctx context.Context) error {
	f := cli.New("muster check", "muster check reads all of a stopped data directory and reports what is damaged. It changes nothing.\nExit status: 0 whole, 1 it could not be checked, 3 damaged, and muster repair mends it, 4 lost: restore a backup.", p.stderr)
	dir := f.String("data", "", "`DIR` to check; no process may have it")
	asJSON := f.Bool("json", false, "print JSON")
	deep := p.addDeepFlags(f, "compare state and history with what it makes")
	if err := p.onlyFlags(f, "check", dir); err != nil {
		return err
	}
	r, err := lockedCheck(ctx, *dir, deep)
	if err != nil {
		return err
	}
	if *asJSON {
		if err := json.NewEncoder(p.stdout).Encode(r); err != nil {
			return err
		}
	} else {
		for _, f := range r.Findings {
			fmt.Fprintln(p.stdout, f)
		}
	}
	return p.verdict(*dir, r)
}

// onlyFlags parses the flags of a command that takes a directory and no arguments.
func (p *process) onlyFlags(f *cli.Flags, command string, dir *string) error {
	rest, err := f.Parse(p.args, p.env)
	switch {
	case err != nil:
		return usageError{err}
	case len(rest) > 0:
		return wrongUsage("%s takes no arguments, have %q", command, rest)
	case *dir == "":
		return wrongUsage("--data is empty; name the data directory")
	}
	return nil
}

// deepFlags say whether the log is replayed.
type deepFlags struct {
	on   *bool
	temp *string
	skip skipRecords
	note func(string)
}

// addDeepFlags adds the flags; what says what is done with what it makes.
func (p *process) addDeepFlags(f *cli.Flags, what string) *deepFlags {
	d := &deepFlags{skip: skipRecords{}, note: func(text string) { fmt.Fprintln(p.stderr, text) }}
	d.on = f.Bool("deep", false, "replay the whole log in another place, and "+what+"; takes as long as a rebuilding")
	d.temp = f.String("temp", "", "`DIR` for files with --deep, as large as state and history; empty: that of the system")
	f.Var(d.skip, "skip-record", "with --deep pass over the record at `PARTITION:OFFSET`, as with a start's flag of the same name (repeatable)")
	return d
}

// lockedCheck checks a directory under its lock; deep is nil for the files
// alone.
func lockedCheck(ctx context.Context, dir string, deep *deepFlags) (*datacheck.Report, error) {
	lock, err := lockData(dir)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	r, err := datacheck.Directory(ctx, dir)
	if err != nil || deep == nil || !*deep.on {
		return r, err
	}
	return r, r.Deep(ctx, dir, datacheck.DeepOptions{Temp: *deep.temp, Skip: deep.skip, Note: deep.note, Now: time.Now})
}

// lockData takes the lock of a data directory that is there.
func lockData(dir string) (io.Closer, error) {
	path := filepath.Join(dir, "LOCK")
	if err := checkDirectory("data", dir, true); err != nil {
		var wrong usageError
		if errors.As(err, &wrong) {
			err = wrong.error // status 1 says that it could not be checked
		}
		return nil, err
	}
	lock, err := dirlock.Lock(vfs.Default, path)
	var held *dirlock.HeldError
	if errors.As(err, &held) {
		return nil, fmt.Errorf("%w; stop it first, or make a backup of it with muster backup and check what muster restore makes of that", err)
	}
	return lock, err
}

// verdict prints the summary and returns what the process ends with.
func (p *process) verdict(dir string, r *datacheck.Report) error {
	counts := map[datacheck.Verdict]int{}
	for _, f := range r.Findings {
		counts[f.Verdict]++
	}
	switch r.Verdict() {
	case datacheck.Repairable:
		if r.Serves() {
			return exitError{exitDamaged, fmt.Errorf("%s is damaged (places: %d), and nothing is lost: its history is in ClickHouse, so a start with --clickhouse mends it", dir, counts[datacheck.Repairable])}
		}
		repair := "muster repair"
		if r.Stale.Any() {
			repair += " --deep"
		}
		return exitError{exitDamaged, fmt.Errorf("%s is damaged (places: %d), and nothing is lost: %s mends it", dir, counts[datacheck.Repairable], repair)}
	case datacheck.Lost:
		return exitError{exitLost, fmt.Errorf("%s lacks what cannot be rebuilt (places: %d): see \"When something is damaged\" in docs/operations/failures.md", dir, counts[datacheck.Lost])}
	}
	fmt.Fprintf(p.stderr, "%s is whole: %d files and checkpoints were checked\n", dir, counts[datacheck.Whole])
	return nil
}

// repair does to a stopped directory what a start does, and serves nothing.
func (p *process) repair(ctx context.Context) error {
	f := cli.New("muster repair", "muster repair rebuilds damaged state and history of a stopped data directory from its log, as a start does.\nExit status: 0 whole now, 1 it could not be repaired, 3 with --dry-run: there is something to repair, 4 lost: restore a backup.", p.stderr)
	dir := f.String("data", "", "`DIR` to repair; no process may have it")
	dry := f.Bool("dry-run", false, "say what would be done, and change nothing")
	level := f.String("log-level", "info", "minimum log `LEVEL`: debug, info, warn or error")
	deep := p.addDeepFlags(f, "rebuild state and history where they are not what it makes")
	if err := p.onlyFlags(f, "repair", dir); err != nil {
		return err
	}
	log, err := logger(p.stderr, *level, "text")
	if err != nil {
		return err
	}
	r, err := lockedCheck(ctx, *dir, deep)
	if err != nil {
		return err
	}
	for _, f := range r.Findings {
		switch {
		case f.Verdict == datacheck.Lost || r.Serves() && f.Verdict == datacheck.Repairable:
			fmt.Fprintln(p.stdout, f)
		case f.Verdict == datacheck.Repairable:
			first := ""
			if f.Aside {
				first = "set aside and "
			}
			fmt.Fprintf(p.stdout, "will %srebuild: %s: %s\n", first, f.Path, f.Text)
		}
	}
	if *dry || !r.Mendable() {
		return p.verdict(*dir, r)
	}
	for pass := 0; r.RepairLog || len(r.Foreign) > 0 || r.Stale.Any(); pass++ {
		if pass == maxRepairs {
			return fmt.Errorf("%s is damaged after a repair as before: restore a backup with muster restore, with --log for what is left of the log, and report this", *dir)
		}
		if err := prepareRepair(*dir, r); err != nil {
			return err
		}
		// What follows from the log, and what from the rest, can only be judged now.
		if r, err = lockedCheck(ctx, *dir, deep); err != nil {
			return err
		}
		if r.Hopeless() {
			return p.verdict(*dir, r)
		}
	}
	if r.Elsewhere {
		if r.Serves() { // as a file, history would be rebuilt in vain
			return fmt.Errorf("the history of %s is in ClickHouse, so a start with --clickhouse mends it, and not muster repair", *dir)
		}
		return p.verdict(*dir, r)
	}
	eng, err := engine.Open(ctx, engine.Options{Dir: *dir, Logger: log, Skip: deep.skip})
	if err != nil {
		return err
	}
	err = eng.Rebuilt(ctx)
	closing, cancel := context.WithTimeout(context.Background(), repairClose)
	defer cancel()
	if e := eng.Close(closing); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if r, err = lockedCheck(ctx, *dir, nil); err != nil {
		return err
	}
	return p.verdict(*dir, r)
}

// maxRepairs bounds how often what a start does not do by itself is done: each kind of it
// can show another.
const maxRepairs = 4

// repairClose bounds how long the last checkpoint and history may take.
const repairClose = time.Hour

// prepareRepair does what a start does not do by itself: it makes small files of the log
// again, or sets aside what is of another log or not what the log makes.
func prepareRepair(dir string, r *datacheck.Report) error {
	lock, err := lockData(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if r.RepairLog {
		return file.Repair(vfs.Default, filepath.Join(dir, "log"))
	}
	return r.SetAside(dir, time.Now())
}
