package api

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/musterhq/muster/ingest"
)

// streamWriteTimeout is how long a watcher may take to read what is sent.
const streamWriteTimeout = 15 * time.Second

// streamSource is where a stream's messages come from.
type streamSource interface {
	// next waits until there is something to send and appends it to s.pending, or
	// to the end, for which it answers false. It minds s.beat and the service's
	// stop as well.
	next(s *stream) bool
	close()
}

// stream is an answer of server-sent events. The server reads it and writes
// what it read, in one goroutine; each read gives whole messages or waits for
// one. It ends when the watcher goes, signs out or loses the key, or the service stops, which
// the message "end" says; comments are signs of life.
type stream struct {
	chain   *chain
	conn    net.Conn
	beat    *time.Ticker
	pending []byte
	ended   bool
	source  streamSource
	// holds reports whether the watcher may still watch.
	holds func(ctx context.Context) (bool, error)
}

// stream answers with the messages of a source, which it closes at the end.
func (c *call) stream(source streamSource, hello string) any {
	c.SetStatusCode(http.StatusOK)
	c.SetContentType("text/event-stream")
	c.Response.Header.Set("Cache-Control", "no-store")
	c.Response.Header.Set("X-Accel-Buffering", "no")
	c.Response.ImmediateHeaderFlush = true
	// The request is gone when the stream asks.
	chain, account, tokenHash, shared := c.chain, c.account, c.tokenHash, c.shared
	c.Response.SetBodyStream(ingest.GuardStream(c.chain.opts.Metrics, c.chain.opts.Logger, "a live stream", &stream{
		chain: c.chain, conn: c.Conn(), source: source, beat: time.NewTicker(c.chain.opts.Heartbeat), pending: []byte(hello),
		holds: func(ctx context.Context) (bool, error) {
			return (&call{chain: chain, ctx: ctx, account: account, tokenHash: tokenHash, shared: shared}).holds()
		},
	}), -1)
	return streaming
}

// stopping is closed when the service stops.
func (s *stream) stopping() <-chan struct{} { return s.chain.stop }

// Read implements [io.Reader].
func (s *stream) Read(p []byte) (int, error) {
	if len(s.pending) == 0 {
		s.pending = s.pending[:0]
		if s.ended || !s.source.next(s) {
			return 0, io.EOF
		}
	}
	n := copy(p, s.pending)
	s.pending = s.pending[n:]
	// The deadline of a whole answer does not fit a stream. The write that
	// follows reports a broken connection.
	return n, s.conn.SetWriteDeadline(time.Now().Add(streamWriteTimeout))
}

// message appends a message without an id.
func (s *stream) message(event string, data []byte) {
	s.pending = fmt.Appendf(s.pending, "event: %s\ndata: %s\n\n", event, data)
}

// alive appends a sign of life; false when the session has ended. Where that cannot
// be told, as when the account is another node's by now, the stream ends with the
// message that says so.
func (s *stream) alive() bool {
	switch may, err := s.mayWatch(); {
	case err != nil:
		return s.end()
	case !may:
		return false
	}
	s.pending = append(s.pending, ": alive\n\n"...)
	return true
}

// end appends the last message.
func (s *stream) end() bool {
	s.ended = true
	s.message("end", []byte("{}"))
	return true
}

// Close implements [io.Closer].
func (s *stream) Close() error {
	s.beat.Stop()
	s.source.close()
	return nil
}

// mayWatch reports whether the session, or the permission of the key, still stands.
func (s *stream) mayWatch() (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.chain.opts.ReadTimeout)
	defer cancel()
	return s.holds(ctx)
}
