package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/musterhq/muster/cmd/muster/internal/cli"
	"github.com/musterhq/muster/cmd/muster/internal/control"
)

// history has the running server copy its history.
func (p *process) history(ctx context.Context) error {
	f := cli.New("muster history", "muster history has the running server copy its history to a DuckDB file, to be asked in SQL: docs/sql.md says what is in it.", p.stderr)
	dir := f.String("data", "", "`DIR` of the running server")
	to := f.String("to", "", "`FILE` that is made, such as events.duckdb")
	rest, err := f.Parse(p.args, p.env)
	switch {
	case err != nil:
		return usageError{err}
	case len(rest) > 0:
		return wrongUsage("history takes no arguments, have %q", rest)
	case *dir == "":
		return wrongUsage("--data is empty; name the directory of the running server")
	case *to == "":
		return wrongUsage("--to is empty; name the file to make")
	}
	if err := checkDirectory("data", *dir, true); err != nil {
		return err
	}
	path, err := filepath.Abs(*to)
	if err != nil {
		return err
	}
	if err := checkDirectory("to", filepath.Dir(path), true); err != nil {
		return err
	}
	done, err := control.Call(ctx, *dir, control.Request{History: path}, nil)
	if errors.Is(err, control.ErrNoServer) {
		return fmt.Errorf("%w. If it starts, try again when it is ready; if it is stopped, copy %s and, if it is there, the .wal file beside it", err, filepath.Join(*dir, "history.duckdb"))
	}
	if err == nil {
		fmt.Fprintln(p.stdout, done)
	}
	return err
}

// copyHistory copies history for the command.
func (b *backupService) copyHistory(ctx context.Context, path string) (string, error) {
	if isAbove(b.c.engine.Dir, path) {
		return "", fmt.Errorf("%s is in the data directory; name a file elsewhere", path)
	}
	bytes, err := b.eng.CopyHistory(ctx, path)
	if err != nil {
		b.c.log.Error("a copy of history failed", "to", path, "error", err)
		return "", errors.New(explain(err))
	}
	b.c.log.Info("copied history", "to", path, "bytes", bytes)
	return fmt.Sprintf("copied the history of all events until now to %s: %d bytes", path, bytes), nil
}
