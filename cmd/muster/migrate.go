package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/musterhq/muster/cmd/muster/internal/cli"
	"github.com/musterhq/muster/cmd/muster/internal/datacheck"
	"github.com/musterhq/muster/cmd/muster/internal/engine"
)

const migrateAbout = `muster migrate moves a data directory to Apache Kafka and ClickHouse.

  muster migrate --data DIR --kafka BROKERS --kafka-topic NAME --clickhouse DSN --to DIR

Nothing is lost and no id changes. No server may have the directory open. It can
be repeated when it was cut off; up to its end the directory stays usable. See
"From files to Kafka and ClickHouse" in docs/operations/cluster.md.`

// migrate moves a data directory.
func (p *process) migrate(ctx context.Context) error {
	f := cli.New("muster migrate", migrateAbout, p.stderr)
	e := addEngineFlags(f, "")
	to := f.String("to", "", "`DIR` to make the data directory of a node in; none is made without, then --checkpoints is needed")
	args, err := f.Parse(p.args, p.env)
	switch {
	case err != nil:
		return usageError{err}
	case len(args) > 0:
		return wrongUsage("migrate takes no arguments, have %q", args)
	case *e.dir == "":
		return wrongUsage("say what to move: --data DIR, a directory that no server has open")
	case *e.remote.brokers == "":
		return wrongUsage("say where to: --kafka BROKERS, --kafka-topic NAME and --clickhouse DSN")
	case *e.remote.ttlDays != 0:
		return wrongUsage("--clickhouse-ttl-days is for serve: all events are moved")
	case *to == "" && *e.checkpoints == "":
		return wrongUsage("the state needs a place: --to DIR, which a node is then started with, or --checkpoints URL, where all nodes find it")
	}
	if same, err := sameDir(*e.dir, *to); err != nil || same {
		return errors.Join(err, wrongUsage("--to must be another directory than --data"))
	}
	log, err := logger(p.stderr, *e.logLevel, *e.logFormat)
	if err != nil {
		return err
	}
	options, err := p.engineOptions(e, log, 0)
	if err != nil {
		return err
	}
	res, err := engine.Migrate(ctx, engine.MigrateOptions{
		Options: options, To: *to, Partitions: newPartitions,
		Report: func(format string, args ...any) { fmt.Fprintf(p.stdout, format+"\n", args...) },
		Check:  func(ctx context.Context) error { return checkMovable(ctx, *e.dir) },
	})
	switch {
	case err != nil:
		return err
	case res.Before:
		fmt.Fprintf(p.stdout, "%s was moved before. Start with %s.\n", *e.dir, res.Flags())
	default:
		fmt.Fprintf(p.stdout, "moved. Start with %s. %s can be removed once you are sure.\n", res.Flags(), *e.dir)
	}
	return nil
}

// checkMovable refuses a directory in which muster check, under the caller's lock, finds
// something that is damaged: what is moved would lack it for good.
func checkMovable(ctx context.Context, dir string) error {
	r, err := datacheck.Directory(ctx, dir)
	if err != nil {
		return err
	}
	if r.Elsewhere {
		return fmt.Errorf("%s is not moved: its history is in ClickHouse already. Serve it without --clickhouse until history is rebuilt in the directory, and stop it; then run muster migrate again, with a new database", dir)
	}
	for _, f := range r.Findings {
		switch {
		case f.Verdict == datacheck.Lost && !f.Beside:
			return fmt.Errorf("%s is not moved: %s", dir, f.Told())
		case f.Verdict == datacheck.Repairable && !r.Hopeless():
			return fmt.Errorf("%s is not moved: %s: %s. Run muster repair --data %s, then muster migrate again", dir, f.Path, f.Text, dir)
		}
	}
	return nil
}

func sameDir(a, b string) (bool, error) {
	if b == "" {
		return false, nil
	}
	x, err := filepath.Abs(a)
	if err != nil {
		return false, err
	}
	y, err := filepath.Abs(b)
	return x == y, err
}
