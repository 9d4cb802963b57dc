package peer

import (
	"bytes"
	"io"
	"net"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/panics"
)

const eventStream = "text/event-stream"

// live is a stream of server-sent events that another node sends, on its way to
// the client. It has no end of its own, and the next piece may take long: it ends
// when this node stops, as one of its own does.
type live struct {
	from     *passing
	conn     net.Conn // the client's
	pieces   chan piece
	gone     chan struct{} // closed when the reader is gone
	close    sync.Once
	draining <-chan struct{}
	left     []byte // of the newest piece
	err      error  // behind it
	whole    bool   // what was read ends with a message
}

// piece is the result of one read.
type piece struct {
	bytes []byte
	err   error
}

// newLive reads from the answer; the caller must close it.
func (r *Router) newLive(from *passing, to net.Conn) *live {
	l := &live{from: from, conn: to, pieces: make(chan piece), gone: make(chan struct{}), draining: r.draining, whole: true}
	go func() {
		defer from.Close() // a connection that cannot be kept is closed
		defer func() {
			if v := recover(); v != nil {
				l.give(piece{err: panics.Report(r.peers.opts.Metrics, r.peers.opts.Logger, "another node's stream", v)})
			}
		}()
		l.pump()
	}()
	return l
}

// pump reads until there is no more, or the reader is gone.
func (l *live) pump() {
	for {
		b := make([]byte, 4096)
		n, err := l.from.Read(b)
		if !l.give(piece{bytes: b[:n], err: err}) || err != nil {
			return
		}
	}
}

// give hands a piece to the reader; false means that the reader is gone.
func (l *live) give(p piece) bool {
	select {
	case l.pieces <- p:
		return true
	case <-l.gone:
		return false
	}
}

var (
	endOfMessage = []byte("\n\n")
	// lastMessage is what a stream of this node's own ends with.
	lastMessage = []byte("event: end\ndata: {}\n\n")
)

// Read implements [io.Reader].
func (l *live) Read(to []byte) (int, error) {
	for len(l.left) == 0 {
		if l.err != nil {
			return 0, l.err
		}
		select {
		case p := <-l.pieces:
			l.left, l.err = p.bytes, p.err
			if len(p.bytes) > 0 {
				l.whole = bytes.HasSuffix(p.bytes, endOfMessage)
			}
		case <-l.draining:
			if l.err = io.EOF; l.whole {
				l.left = lastMessage
			}
		}
	}
	n := copy(to, l.left)
	l.left = l.left[n:]
	return n, l.conn.SetWriteDeadline(time.Now().Add(passWriteTime))
}

// Close implements [io.Closer].
func (l *live) Close() error {
	l.close.Do(func() { close(l.gone) })
	return nil
}
