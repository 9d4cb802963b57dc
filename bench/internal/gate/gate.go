// Package gate holds the clients of a bench back while there is no server.
package gate

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Gate is shut until Lift. It is safe for concurrent use.
type Gate struct {
	mu struct {
		sync.Mutex
		open chan struct{} // closed while the gate is open
	}
}

// New returns a gate that is shut.
func New() *Gate {
	g := &Gate{}
	g.Drop()
	return g
}

// Lift opens the gate, which must be shut.
func (g *Gate) Lift() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.mu.open)
}

// Drop shuts the gate.
func (g *Gate) Drop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.open = make(chan struct{})
}

// Wait returns when the gate is open, or ctx's error.
func (g *Gate) Wait(ctx context.Context) error {
	g.mu.Lock()
	open := g.mu.open
	g.mu.Unlock()
	select {
	case <-open:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Until acts again and again until finish is closed. The error is that of an act, or
// ctx's. Between two acts it waits for a random time below think.
func Until(ctx context.Context, finish <-chan struct{}, rng *rand.Rand, think time.Duration, act func(context.Context) error) error {
	for {
		select {
		case <-finish:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		if err := act(ctx); err != nil {
			return err
		}
		if think > 0 {
			time.Sleep(time.Duration(rng.Int64N(int64(think))))
		}
	}
}

// All runs every worker until finish is closed, all at the same time, and returns when the
// last one has ended. The first error ends the others' ctx, and is returned.
func All[W any](ctx context.Context, finish <-chan struct{}, workers []W, run func(w W, ctx context.Context, finish <-chan struct{}) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range workers {
		group.Go(func() error { return run(w, ctx, finish) })
	}
	return group.Wait()
}
