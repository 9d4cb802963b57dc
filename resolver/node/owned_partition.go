package node

import (
	"context"
	"fmt"
	"sync"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/sources"
)

// openFiles counts who uses a partition's files: the partition itself and
// snapshots that outlive a view. The last one closes them, so that nothing reads
// a store that was closed.
type openFiles struct {
	mu     sync.Mutex
	users  int
	close  func() error
	err    error
	closed chan struct{} // nil before the files were opened
}

// open says what closes the files; the caller is the first user.
func (f *openFiles) open(closeFiles func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users, f.close, f.closed = 1, closeFiles, make(chan struct{})
}

// use adds a user. The caller knows that there is one, because it holds the
// partition's lock and the partition has its machine.
func (f *openFiles) use() {
	f.mu.Lock()
	f.users++
	f.mu.Unlock()
}

// done ends a use.
func (f *openFiles) done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users--; f.users == 0 {
		f.err = f.close()
		close(f.closed)
	}
}

// wait waits until the files are closed.
func (f *openFiles) wait() {
	if f.closed != nil {
		<-f.closed
	}
}

// leave makes the partition refuse what is not under way, and stops what it
// does by itself.
func (p *partition) leave() {
	p.life.release() // first: what it does is not to find itself refused
	p.requests.refuse()
	p.life.leave()
}

// drain waits until no request waits for a record, or ctx ends.
func (p *partition) drain(ctx context.Context) {
	idle := p.requests.drained()
	select {
	case <-idle:
	case <-ctx.Done():
	case <-p.failed.Done():
	}
}

// These are the partition as a [view.Host].
func (p *partition) Partition() int        { return p.id }
func (p *partition) Left() <-chan struct{} { return p.life.left }

func (p *partition) Epoch() uint64 {
	epoch, _ := p.lease.active()
	return epoch
}

func (p *partition) HoldFiles() (release func()) {
	p.files.use()
	return p.files.done
}

// StopErr says why the partition does not answer: it was released, or the node
// stops. Nothing was stored.
func (p *partition) StopErr() error {
	if p.life.released.Load() {
		return notOwner(p.id)
	}
	return fmt.Errorf("%w: the service stops", resolver.ErrUnavailable)
}

// readable returns why the machine may not be read, nil if it may. The caller holds mu.
func (p *partition) readable() error {
	if err := p.failed.unavailable(); err != nil || p.mu.m != nil {
		return err
	}
	return p.StopErr()
}

// with calls fn with the machine, unless the partition is closed. Apply waits meanwhile.
func (p *partition) with(fn func(m *resolver.Machine)) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.mu.m != nil {
		fn(p.mu.m)
	}
}

// stopped is StopErr for a record that may have been stored.
func (p *partition) stopped(what string) error {
	if p.life.released.Load() {
		return fmt.Errorf("%w: %s: this node no longer serves partition %d", resolver.ErrUnavailable, what, p.id)
	}
	return fmt.Errorf("%w: %s: the service stops", resolver.ErrUnavailable, what)
}

// publishApps makes the partition's accounts and write keys known to requests.
func (p *partition) publishApps() {
	var apps map[uint64]resolver.App
	var keys map[[32]byte]sources.Access
	p.with(func(m *resolver.Machine) { apps, keys = m.Apps(), m.WriteKeys() })
	p.published.setApps(apps, keys)
}
