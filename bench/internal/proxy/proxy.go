package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/musterhq/muster/bench/internal/gate"
)

// Proxy listens on loopback for one server. Its methods may be called from
// several goroutines.
type Proxy struct {
	target   string
	listener net.Listener
	gate     *gate.Gate // shut while stalled
	done     sync.WaitGroup

	mu struct {
		sync.Mutex
		state state
		links map[*link]struct{}
	}
}

type state uint8

const (
	passing state = iota
	stalled
	cut
	closed
)

// link is one connection: the client's and the server's.
type link struct {
	ctx  context.Context
	end  context.CancelFunc
	near net.Conn
	far  net.Conn // nil until the server has taken it
}

// Listen makes a proxy of the server at target, HOST:PORT, which may start later.
func Listen(target string) (*Proxy, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy of %s: %w", target, err)
	}
	p := &Proxy{target: target, listener: ln, gate: gate.New()}
	p.gate.Lift()
	p.mu.links = map[*link]struct{}{}
	p.done.Go(p.accept)
	return p, nil
}

// Addr is where it listens, HOST:PORT.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut ends all connections, and every new one at once, until Mend.
func (p *Proxy) Cut() { p.turn(cut) }

// Stall lets nothing pass either way until Mend: connections stay, and new ones
// are taken.
func (p *Proxy) Stall() { p.turn(stalled) }

// Mend ends Cut and Stall. What was sent to a stalled connection arrives.
func (p *Proxy) Mend() { p.turn(passing) }

// Close ends everything.
func (p *Proxy) Close() error {
	p.turn(closed)
	err := p.listener.Close()
	p.done.Wait()
	return err
}

func (p *Proxy) turn(to state) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.state == closed || p.mu.state == to {
		return
	}
	switch {
	case to == stalled:
		p.gate.Drop()
	case p.mu.state == stalled:
		p.gate.Lift()
	}
	p.mu.state = to
	if to == cut || to == closed {
		for l := range p.mu.links {
			l.close()
		}
	}
}

// close ends both connections with a reset, which a server that was killed
// sends as well.
func (l *link) close() {
	l.end()
	for _, c := range []net.Conn{l.near, l.far} {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // else it ends in the usual way
			_ = t.Close()
		}
	}
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return // Close
		}
		l := &link{near: c}
		l.ctx, l.end = context.WithCancel(context.Background())
		p.mu.Lock()
		if p.mu.state == cut || p.mu.state == closed {
			l.close()
		} else {
			p.mu.links[l] = struct{}{}
			p.done.Go(func() { p.serve(l) })
		}
		p.mu.Unlock()
	}
}

func (p *Proxy) serve(l *link) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.mu.links, l)
		l.close()
	}()
	far, err := (&net.Dialer{}).DialContext(l.ctx, "tcp", p.target)
	if err != nil {
		return
	}
	p.mu.Lock()
	l.far = far
	if l.ctx.Err() != nil {
		l.close()
	}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.pass(l, far, l.near) })
	both.Go(func() { p.pass(l, l.near, far) })
	both.Wait()
}

// pass copies one way, and says at the end that no more comes.
func (p *Proxy) pass(l *link, to, from net.Conn) {
	defer func() {
		if t, ok := to.(*net.TCPConn); ok {
			_ = t.CloseWrite() // the other way may be over already
		}
	}()
	for b := make([]byte, 32<<10); ; {
		n, err := from.Read(b)
		if p.gate.Wait(l.ctx) != nil {
			return
		}
		if n > 0 {
			if _, werr := to.Write(b[:n]); werr != nil {
				l.end()
				return
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			l.close()
			return
		}
	}
}
