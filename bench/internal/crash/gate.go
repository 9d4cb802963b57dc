package crash

import (
	"context"
	"sync"
)

// gate holds workers back while there is no server.
type gate struct {
	mu struct {
		sync.Mutex
		open chan struct{} // closed while the gate is open
	}
}

func newGate() *gate {
	g := &gate{}
	g.mu.open = make(chan struct{})
	return g
}

func (g *gate) lift() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.mu.open)
}

func (g *gate) drop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.open = make(chan struct{})
}

// wait returns when the gate is open, or ctx's error.
func (g *gate) wait(ctx context.Context) error {
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
