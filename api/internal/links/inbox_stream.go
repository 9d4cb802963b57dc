package links

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/persontoken"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/inapp"
)

const (
	// How many pages watch inboxes at once: of this process, of an account, and of a person.
	// In a cluster each may come over a connection of another node, which has 4,096 to this
	// one for all that it forwards.
	maxWatchers, maxAccountWatchers, maxPersonWatchers = 2000, 1000, 20
	// inboxBeat is the pause between signs of life; a token that does not hold any more ends
	// its stream then.
	inboxBeat = 15 * time.Second
	// inboxThrottle is the least pause between two looks at an inbox: a campaign changes many.
	inboxThrottle = 250 * time.Millisecond
)

// inboxWatchers counts the pages that watch inboxes.
type inboxWatchers struct {
	mu    sync.Mutex // guards all of it
	stop  chan struct{}
	ended bool
	all   int
	by    map[string]int // by account, and by account and person
}

func newInboxWatchers() *inboxWatchers {
	return &inboxWatchers{stop: make(chan struct{}), by: map[string]int{}}
}

func watcherNames(p *persontoken.Person) (account, person string) {
	account = resolver.AccountID(p.Account)
	return account, account + "\x00" + p.Kind + "\x00" + p.Subject
}

func (w *inboxWatchers) enter(p *persontoken.Person) bool {
	account, person := watcherNames(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.all >= maxWatchers || w.by[account] >= maxAccountWatchers || w.by[person] >= maxPersonWatchers {
		return false
	}
	w.all++
	w.by[account]++
	w.by[person]++
	return true
}

func (w *inboxWatchers) leave(p *persontoken.Person) {
	account, person := watcherNames(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all--
	for _, name := range []string{account, person} {
		if w.by[name]--; w.by[name] == 0 {
			delete(w.by, name)
		}
	}
}

// close ends all streams.
func (w *inboxWatchers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended = true
		close(w.stop)
	}
}

// inboxStream is an answer of server-sent events: "message" for each new message, "unseen" with
// the number of those that were not seen, first and whenever it changes, and "end" before it
// ends. Comments are signs of life.
type inboxStream struct {
	a       *API
	conn    net.Conn
	token   string
	caller  inboxCaller
	beat    *time.Ticker
	pending []byte
	ended   bool
	begun   bool
	known   map[string]bool // ids of messages
	unseen  int
	// stored names what the inbox was at the last look, and endsMs is when its next message
	// ends (Unix ms, 0 for none): until either changes there is nothing new.
	stored      uint64
	endsMs      int64
	unreachable bool // no message was shown at the last look, see unreachableInApp
	close       sync.Once
}

// streamInbox answers GET /in-app/stream.
func (a *API) streamInbox(rc *fasthttp.RequestCtx, c inboxCaller) error {
	if !a.watchers.enter(&c.person) {
		return handler.Busy("too many pages are watching")
	}
	token, _ := handler.Bearer(rc.Request.Header.Peek(fasthttp.HeaderAuthorization))
	rc.SetStatusCode(http.StatusOK)
	rc.SetContentType("text/event-stream")
	rc.Response.Header.Set("X-Accel-Buffering", "no")
	rc.Response.ImmediateHeaderFlush = true
	rc.Response.SetBodyStream(ingest.GuardStream(a.opts.Metrics, a.opts.Logger, "a stream of an inbox", &inboxStream{
		a: a, conn: rc.Conn(), token: string(append([]byte(nil), token...)), caller: c, beat: time.NewTicker(inboxBeat), pending: []byte(": watching\n\n"),
	}), -1)
	return nil
}

// Read implements [io.Reader].
func (s *inboxStream) Read(p []byte) (int, error) {
	if len(s.pending) == 0 {
		s.pending = s.pending[:0]
		if s.ended {
			return 0, io.EOF
		}
		s.next()
	}
	n := copy(p, s.pending)
	s.pending = s.pending[n:]
	// The deadline of a whole answer does not fit a stream. The write that follows reports a
	// broken connection.
	return n, s.conn.SetWriteDeadline(time.Now().Add(handler.StreamWriteTimeout))
}

// next waits until there is something to send.
func (s *inboxStream) next() {
	for {
		// Taken before the look: what changes after it wakes.
		changed := s.a.opts.Node.InboxChanged()
		begun := s.begun
		if !s.look() {
			s.end()
			return
		}
		// What is new may come after the end of the token, or of its secret.
		if begun && len(s.pending) > 0 && !s.holds() {
			s.pending = s.pending[:0]
			s.end()
			return
		}
		if len(s.pending) > 0 {
			return
		}
		select {
		case <-changed:
			select { // many change at once
			case <-time.After(inboxThrottle):
			case <-s.a.watchers.stop:
			}
		case <-s.beat.C:
			if !s.holds() {
				s.end()
				return
			}
			s.pending = append(s.pending, ": alive\n\n"...)
			return
		case <-s.a.watchers.stop:
			s.end()
			return
		}
	}
}

// holds reports whether the token still does, and finds the person again.
func (s *inboxStream) holds() bool {
	now := s.a.opts.Now()
	err := s.a.readInApp(s.caller.person.Account, func(v *resolver.View) error {
		settings := v.InApp().Settings()
		p, err := persontoken.Verify(s.token, settings.Valid(now.UnixMilli()), now)
		if err != nil || !v.Active() {
			return errNoToken
		}
		s.caller.person = p
		return s.caller.find(v)
	})
	return err == nil
}

// look appends what is new of the inbox; false when it cannot be read.
func (s *inboxStream) look() bool {
	if s.begun && !s.caller.found && !s.holds() { // the person may be on file by now
		return false
	}
	list, changed, err := s.read()
	if err != nil {
		return false
	}
	if s.begun && !changed {
		return true
	}
	list = shown(list)
	known := make(map[string]bool, len(list))
	slices.Reverse(list) // the newest of a priority last
	for i := range list {
		m := &list[i]
		known[m.ID] = true
		if s.begun && !s.known[m.ID] {
			s.pending = fmt.Appendf(s.pending, "event: message\nid: %s\ndata: %s\n\n", m.ID, must.PlainJSON(record.NewInAppMessage(m)))
		}
	}
	n := unseen(list)
	if !s.begun || n != s.unseen {
		s.pending = fmt.Appendf(s.pending, "event: unseen\ndata: {\"unseen\":%d}\n\n", n)
	}
	s.begun, s.known, s.unseen = true, known, n
	return true
}

// read reads the inbox if it is not as it was at the last look. A record that is applied wakes
// the stream, so that the state as it is applied suffices.
func (s *inboxStream) read() (list []inapp.Message, changed bool, err error) {
	if !s.caller.found {
		s.stored, s.endsMs = 0, 0
		return nil, true, nil
	}
	err = s.a.opts.Node.Look(s.caller.person.Account, func(v *resolver.View) error {
		o, now := v.Profiles().Root(s.caller.ordinal), s.a.inAppTime(v)
		stored, err := v.InApp().Fingerprint(o)
		if err != nil {
			return err
		}
		unreachable, err := unreachableInApp(v, o)
		if err != nil || stored == s.stored && unreachable == s.unreachable && (s.endsMs == 0 || now < s.endsMs) {
			return err
		}
		changed, s.stored, s.unreachable, s.endsMs = true, stored, unreachable, 0
		if unreachable {
			return nil
		}
		list, err = v.InApp().Inbox(o, now)
		for i := range list {
			if s.endsMs == 0 || list[i].ExpiresMs < s.endsMs {
				s.endsMs = list[i].ExpiresMs
			}
		}
		return err
	})
	return list, changed, err
}

func (s *inboxStream) end() {
	s.ended = true
	s.pending = append(s.pending, "event: end\ndata: {}\n\n"...)
}

// Close implements [io.Closer].
func (s *inboxStream) Close() error {
	s.close.Do(func() {
		s.beat.Stop()
		s.a.watchers.leave(&s.caller.person)
	})
	return nil
}
