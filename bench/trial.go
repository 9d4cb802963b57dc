package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/musterhq/muster/bench/internal/server"
)

// trial is what all commands have that start servers: where the program is, a
// directory to work in, and what is left in the end.
type trial struct {
	streams streams
	parent  string
	keep    bool
	json    string
	args    string

	without bool   // nothing of muster's is started
	binary  string // of muster; from open on it is there
	dir     string // to work in, from open on
}

// newTrial adds the flags.
func newTrial(f *flag.FlagSet, s streams) *trial {
	t := &trial{streams: s}
	f.StringVar(&t.binary, "binary", "", "the muster binary; empty builds it")
	f.StringVar(&t.args, "server-args", "", "further arguments of muster serve, separated by spaces")
	f.StringVar(&t.parent, "dir", "", "where the directory of data and logs is made; empty is a temporary one")
	f.BoolVar(&t.keep, "keep", false, "keep that directory; after a failure it is always kept")
	f.StringVar(&t.json, "json", "", "file for the report as JSON")
	return t
}

// open makes the directory and sees to the program. A program that cannot be started
// is refused before anything is made.
func (t *trial) open(ctx context.Context) (err error) {
	if t.binary != "" && !t.without {
		if _, err := exec.LookPath(t.binary); err != nil {
			return fmt.Errorf("binary: %w", err)
		}
	}
	if t.dir, err = os.MkdirTemp(t.parent, "muster-bench-"); err == nil {
		t.dir, err = filepath.Abs(t.dir) // what is started works in directories of its own
	}
	if err != nil {
		return fmt.Errorf("making a directory to work in: %w", err)
	}
	if t.binary == "" && !t.without {
		t.streams.logf("building muster")
		if t.binary, err = server.Build(ctx, t.dir); err != nil {
			return errors.Join(err, os.RemoveAll(t.dir))
		}
	}
	return nil
}

// report is what a command measured.
type report[T any] interface {
	*T
	Print(io.Writer) error
}

// measure runs a command that measures: it parses the flags, prepares, which judges
// the options before anything is made or built, runs, prints the report and writes it as
// JSON. Both functions read options that the flags have set by then. The directory is
// removed, unless it is to be kept: then the error says where it is.
func measure[T any, R report[T]](ctx context.Context, f *flag.FlagSet, t *trial, args []string, o *server.Options, prepare func() error, run func() (R, error)) error {
	if err := parse(f, args, 0); err != nil {
		return err
	}
	o.ServerArgs, o.Log = strings.Fields(t.args), t.streams.logf
	if err := prepare(); err != nil {
		return err
	}
	if err := t.open(ctx); err != nil {
		return err
	}
	o.Dir, o.Binary = t.dir, t.binary
	if t.without {
		o.Binary = ""
	}
	r, err := run()
	switch {
	case err != nil:
		err = fmt.Errorf("%w\n(data and logs are in %s)", err, t.dir)
	case !t.keep:
		err = os.RemoveAll(t.dir)
	}
	if r == nil {
		return err
	}
	// What was measured before a fault is worth having.
	if t.json != "" {
		err = errors.Join(err, writeJSON(t.json, r))
	}
	return errors.Join(err, r.Print(t.streams.out))
}

func writeJSON(path string, report any) error {
	text, err := json.MarshalIndent(report, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
