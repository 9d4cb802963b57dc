package handler

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/musterhq/muster/ingest"
)

// StreamWriteTimeout is how long a watcher may take to read what is sent.
const StreamWriteTimeout = 15 * time.Second

// StreamSource is where a stream's messages come from.
type StreamSource interface {
	// Next waits until there is something to send and appends it to s.pending, or
	// to the end, for which it answers false. It minds s.beat and the service's
	// stop as well.
	Next(s *Stream) bool
	Close()
}

// Stream is an answer of server-sent events. The server reads it and writes
// what it read, in one goroutine; each read gives whole messages or waits for
// one. It ends when the watcher goes, signs out or loses the key, or the service stops, which
// the message "end" says; comments are signs of life.
type Stream struct {
	chain   *Chain
	conn    net.Conn
	Beat    *time.Ticker
	Pending []byte
	ended   bool
	source  StreamSource
	// holds reports whether the watcher may still watch.
	holds func(ctx context.Context) (bool, error)
}

// Stream answers with the messages of a source, which it closes at the end.
func (c *Call) Stream(source StreamSource, hello string) any {
	c.SetStatusCode(http.StatusOK)
	c.SetContentType("text/event-stream")
	c.Response.Header.Set("Cache-Control", "no-store")
	c.Response.Header.Set("X-Accel-Buffering", "no")
	c.Response.ImmediateHeaderFlush = true
	// The request is gone when the stream asks.
	chain, account, tokenHash, shared := c.chain, c.Account, c.TokenHash, c.shared
	c.Response.SetBodyStream(ingest.GuardStream(c.chain.opts.Metrics, c.chain.opts.Logger, "a live stream", &Stream{
		chain: c.chain, conn: c.Conn(), source: source, Beat: time.NewTicker(c.chain.opts.Heartbeat), Pending: []byte(hello),
		holds: func(ctx context.Context) (bool, error) {
			return (&Call{chain: chain, Ctx: ctx, Account: account, TokenHash: tokenHash, shared: shared}).holds()
		},
	}), -1)
	return Streaming
}

// Stopping is closed when the service stops.
func (s *Stream) Stopping() <-chan struct{} { return s.chain.stop }

// Read implements [io.Reader].
func (s *Stream) Read(p []byte) (int, error) {
	if len(s.Pending) == 0 {
		s.Pending = s.Pending[:0]
		if s.ended || !s.source.Next(s) {
			return 0, io.EOF
		}
	}
	n := copy(p, s.Pending)
	s.Pending = s.Pending[n:]
	// The deadline of a whole answer does not fit a stream. The write that
	// follows reports a broken connection.
	return n, s.conn.SetWriteDeadline(time.Now().Add(StreamWriteTimeout))
}

// Message appends a message without an id.
func (s *Stream) Message(event string, data []byte) {
	s.Pending = fmt.Appendf(s.Pending, "event: %s\ndata: %s\n\n", event, data)
}

// Alive appends a sign of life; false when the session has ended. Where that cannot
// be told, as when the account is another node's by now, the stream ends with the
// message that says so.
func (s *Stream) Alive() bool {
	switch may, err := s.mayWatch(); {
	case err != nil:
		return s.End()
	case !may:
		return false
	}
	s.Pending = append(s.Pending, ": alive\n\n"...)
	return true
}

// End appends the last message.
func (s *Stream) End() bool {
	s.ended = true
	s.Message("end", []byte("{}"))
	return true
}

// Close implements [io.Closer].
func (s *Stream) Close() error {
	s.Beat.Stop()
	s.source.Close()
	return nil
}

// mayWatch reports whether the session, or the permission of the key, still stands.
func (s *Stream) mayWatch() (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.chain.opts.ReadTimeout)
	defer cancel()
	return s.holds(ctx)
}
