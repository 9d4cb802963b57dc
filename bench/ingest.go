package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/musterhq/muster/bench/internal/contest"
	"github.com/musterhq/muster/bench/internal/server"
)

// Connections when the flag is not given.
const (
	singleConnections = 64
	batchConnections  = 16
)

func ingest(ctx context.Context, s streams, args []string) error {
	var o contest.Options
	f := newFlags("ingest", s)
	modes := f.String("modes", "single,batch", "what to send: single, batch or both, separated by a comma")
	batch := f.Int("batch", 100, "events per batch")
	connections := f.Int("connections", 0, fmt.Sprintf("connections; 0 is %d for single events and %d for batches", singleConnections, batchConnections))
	f.DurationVar(&o.Duration, "duration", 15*time.Second, "length of each phase on muster")
	f.DurationVar(&o.BaselineDuration, "baseline-duration", 5*time.Second, "length of the phase on each baseline server")
	f.IntVar(&o.Rounds, "rounds", 2, "how often everything is measured")
	f.Float64Var(&o.RatePerSecond, "rate", 0, "events/s of the open loop; 0 is half of the measured maximum")
	f.IntVar(&o.Profiles, "profiles", 100_000, "known profiles")
	f.Float64Var(&o.NewRatio, "new-ratio", 0.05, "share of events on new profiles, 0 to 1")
	f.IntVar(&o.EventBytes, "event-bytes", 320, "bytes of one event's JSON")
	f.IntVar(&o.Segments, "segments", 20, "segments that are live meanwhile, 0 to 20")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the generator")
	f.StringVar(&o.Binary, "binary", "", "the muster binary; empty builds it")
	baselineOnly := f.Bool("baseline-only", false, "measure the baseline servers alone")
	serverArgs := f.String("server-args", "", "further arguments of muster serve, separated by spaces")
	f.StringVar(&o.Dir, "dir", "", "where data directories are made; empty is a temporary one")
	f.BoolVar(&o.Keep, "keep", false, "keep the data directories")
	jsonFile := f.String("json", "", "file for the report as JSON")
	if err := parse(f, args, 0); err != nil {
		return err
	}
	var err error
	if o.Modes, err = modesOf(*modes, *batch, *connections); err != nil {
		return err
	}
	o.ServerArgs = strings.Fields(*serverArgs)
	o.Log = s.logf
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o.Baseline = []string{self, baselineCommand}
	if err := errors.Join(o.Validate(), checkBinary(o.Binary)); err != nil {
		return err
	}
	dir, cleanUp, err := workDir(o.Dir)
	if err != nil {
		return err
	}
	o.Dir = dir
	if !*baselineOnly {
		if o.Binary, err = orBuild(ctx, s, o.Binary, dir); err != nil {
			return errors.Join(err, cleanUp())
		}
	} else {
		o.Binary = ""
	}
	report, err := contest.Run(ctx, o)
	if err == nil && !o.Keep {
		err = cleanUp()
	}
	if report != nil {
		err = errors.Join(err, report.Print(s.out), writeJSON(*jsonFile, report))
	}
	return err
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// checkBinary refuses a binary that cannot be started, before anything is made.
func checkBinary(path string) error {
	if path == "" {
		return nil
	}
	if _, err := exec.LookPath(path); err != nil {
		return fmt.Errorf("binary: %w", err)
	}
	return nil
}

// orBuild is the binary, built when none is given.
func orBuild(ctx context.Context, s streams, binary, dir string) (string, error) {
	if binary != "" {
		return binary, nil
	}
	s.logf("building muster")
	return server.Build(ctx, dir)
}

// workDir makes a directory to work in, below the given one or the system's
// temporary one, and returns how to remove it.
func workDir(parent string) (dir string, cleanUp func() error, err error) {
	dir, err = os.MkdirTemp(parent, "muster-bench-")
	if err != nil {
		return "", nil, fmt.Errorf("making a directory to work in: %w", err)
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}

// writeJSON writes a report; an empty path writes nothing.
func writeJSON(path string, report any) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
