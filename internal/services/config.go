package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// limits of a server. Those that serve one test are smaller than the shared
// ones, which also carry benchmarks.
type limits struct {
	// heap is Java's, in MiB.
	heap int
	// quickStart has Java compile fast rather than well.
	quickStart bool
	// saveClasses is where Java writes the classes it loaded, if anywhere.
	saveClasses string
	// memory is what ClickHouse may use before it refuses queries, in MiB.
	memory int
}

var (
	sharedLimits = limits{heap: 768, memory: 2048}
	ownLimits    = limits{heap: 256, quickStart: true, memory: 1024}
)

const (
	// readyTimeout is generous: the machine may be compiling meanwhile.
	readyTimeout = 2 * time.Minute
	// stopGrace is how long a server may take to end by itself.
	stopGrace = 15 * time.Second
	pollEvery = 50 * time.Millisecond
)

// waitReady calls probe until it succeeds or the process has ended. A process
// that could not listen is started again: a connection of another process may have
// had its port for a moment.
func waitReady(ctx context.Context, p *process, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	ended := p.ended()
	var last error
	for {
		// One try that hangs, as with a frozen server, must not take all the time.
		try, cancelTry := context.WithTimeout(ctx, 3*time.Second)
		err := probe(try)
		cancelTry()
		if err == nil {
			return nil
		}
		last = err
		select {
		case <-ended:
			if !p.portTaken() {
				return p.failure(errors.New("ended while it started"))
			}
			if err := p.start(); err != nil {
				return err
			}
			ended = p.ended()
		case <-ctx.Done():
			return p.failure(fmt.Errorf("is not ready (%w): %w", ctx.Err(), last))
		case <-time.After(pollEvery):
		}
	}
}

// writeIn creates dir and a file in it.
func writeIn(dir, name, text string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, []byte(text), 0o644)
}
