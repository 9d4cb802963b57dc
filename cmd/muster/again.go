package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/musterhq/muster/resolver/node"
)

// againVariable tells a process that it was started in place of one which found its
// state damaged, and when that was, in Unix seconds.
const againVariable = "MUSTER_STARTED_AGAIN_AT"

// againPause is the least time between two such starts: what a start does not repair
// is not tried for ever.
const againPause = time.Minute

// serveWhole serves. Where files of the state turn out to be damaged the process is
// replaced by a new one, whose start rebuilds them. It keeps its number, so that
// its supervisor sees nothing but a pause.
func (p *process) serveWhole(ctx context.Context) error {
	err := p.serve(ctx)
	if !errors.Is(err, node.ErrStateDamaged) || p.replace == nil {
		return err
	}
	now := time.Now()
	if text, ok := p.env(againVariable); ok {
		if at, e := strconv.ParseInt(text, 10, 64); e == nil && now.Sub(time.Unix(at, 0)) < againPause {
			return fmt.Errorf("%w. A start a moment ago has not repaired it: see \"When something is damaged\" in docs/operations/failures.md", err)
		}
	}
	slog.Error("starting again to rebuild damaged files of the state", "error", err) // set by logThrough
	return errors.Join(err, p.replace(fmt.Sprintf("%s=%d", againVariable, now.Unix())))
}

// replaceProcess runs the program again in place of this process, with one variable
// more. It returns only if that fails. The directory's lock and the listener go with
// the old program.
func replaceProcess(variable string) error {
	path, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start again: %w", err)
	}
	name, _, _ := strings.Cut(variable, "=")
	env := []string{variable}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, name+"=") {
			env = append(env, v)
		}
	}
	if err := syscall.Exec(path, os.Args, env); err != nil {
		return fmt.Errorf("start again: %w", err)
	}
	return nil
}
