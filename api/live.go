package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/musterhq/muster/resolver"
)

// liveWriteTimeout is how long a watcher may take to read what is sent.
const liveWriteTimeout = 15 * time.Second

// liveEvent is an event as a watcher sees it.
type liveEvent struct {
	ProfileID  string          `json:"profile_id"`
	EventType  string          `json:"event_type"`
	Timestamp  string          `json:"timestamp"`
	Properties json.RawMessage `json:"properties"`
}

// live answers GET /events/live: server-sent events named "event", one for each
// event as it is applied, "dropped" with the number missed so far when the
// watcher was too slow, and comments as signs of life. It ends when the watcher
// goes, signs out, or the service stops.
func (a *API) live(c *call) (any, error) {
	w, ok := a.opts.Node.Watch(c.account)
	if !ok {
		return nil, busy("too many people are watching live events")
	}
	c.SetStatusCode(http.StatusOK)
	c.SetContentType("text/event-stream")
	c.Response.Header.Set("Cache-Control", "no-store")
	c.Response.Header.Set("X-Accel-Buffering", "no")
	c.Response.ImmediateHeaderFlush = true
	c.Response.SetBodyStream(&liveStream{
		api: a, watcher: w, account: c.account, tokenHash: c.tokenHash, conn: c.Conn(),
		beat: time.NewTicker(a.opts.Heartbeat), pending: []byte(": watching\n\n"),
	}, -1)
	return streaming, nil
}

// liveStream is the body of the answer. The server reads it and writes what it
// read, in one goroutine; each read gives whole messages or waits for one.
type liveStream struct {
	api       *API
	watcher   *resolver.Watcher
	account   uint64
	tokenHash string
	conn      net.Conn
	beat      *time.Ticker
	pending   []byte
	dropped   uint64
	ended     bool
}

// Read implements [io.Reader].
func (s *liveStream) Read(p []byte) (int, error) {
	if len(s.pending) == 0 {
		if s.ended || !s.wait() {
			return 0, io.EOF
		}
		if d := s.watcher.Dropped(); d != s.dropped {
			s.dropped = d
			s.pending = fmt.Appendf(s.pending, "event: dropped\ndata: {\"count\":%d}\n\n", d)
		}
	}
	n := copy(p, s.pending)
	s.pending = s.pending[n:]
	// The deadline of a whole answer does not fit a stream. The write that
	// follows reports a broken connection.
	return n, s.conn.SetWriteDeadline(time.Now().Add(liveWriteTimeout))
}

// wait fills pending with the next message; false is the end.
func (s *liveStream) wait() bool {
	s.pending = s.pending[:0]
	select {
	case e := <-s.watcher.Events:
		b, err := json.Marshal(newLiveEvent(e))
		if err != nil {
			return false
		}
		s.pending = fmt.Appendf(s.pending, "event: event\ndata: %s\n\n", b)
	case <-s.beat.C:
		if !s.signedIn() {
			return false
		}
		s.pending = append(s.pending, ": alive\n\n"...)
	case <-s.api.stop:
		s.ended = true
		s.pending = append(s.pending, "event: end\ndata: {}\n\n"...)
	}
	return true
}

// Close implements [io.Closer].
func (s *liveStream) Close() error {
	s.beat.Stop()
	s.watcher.Close()
	return nil
}

// signedIn tells whether the session still stands.
func (s *liveStream) signedIn() bool {
	ctx, cancel := context.WithTimeout(context.Background(), s.api.opts.ReadTimeout)
	defer cancel()
	found, err := s.api.findSession(&call{ctx: ctx, account: s.account, tokenHash: s.tokenHash})
	return err == nil && found
}

func newLiveEvent(e resolver.LiveEvent) liveEvent {
	return liveEvent{
		ProfileID:  e.Profile.String(),
		EventType:  e.EventType,
		Timestamp:  timeText(e.TimeMs),
		Properties: objectOr(e.Properties),
	}
}

// objectOr is stored JSON text, or an empty object where there is none.
func objectOr[T string | []byte | json.RawMessage](text T) json.RawMessage {
	if len(text) == 0 {
		return json.RawMessage("{}")
	}
	return json.RawMessage(text)
}
