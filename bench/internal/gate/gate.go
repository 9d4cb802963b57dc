// Package gate holds the clients of a bench back while there is no server.
package gate

import (
	"context"
	"sync"
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
