package segments

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node/live"
)

// transition is an entry or exit as a watcher sees it.
type transition struct {
	// ProfileID is the profile's id at the time; it stays valid when the profile
	// is merged into another.
	ProfileID string `json:"profile_id"`
	SegmentID string `json:"segment_id"`
	Cause     string `json:"cause"` // event, expiry, profile, merge, definition
	At        string `json:"at"`    // when membership changed
	Position  string `json:"position"`
}

// transitions answers GET /segments/{id}/transitions: server-sent events named
// "entered" and "left" in the order in which they were made, each once. The id
// of a message is its position: a watcher that comes back with it, in the header
// Last-Event-ID or else as after, continues behind it. Without a position the
// stream begins with what happens from now on, and says at once which position
// that is. It also ends when the segment is deleted.
func (a *API) transitions(c *handler.Call) (any, error) {
	after, field, err := peekPosition(c)
	if err != nil {
		return nil, err
	}
	t := &transitionSource{api: a, account: c.Account, segment: c.PathID()}
	err = c.Read(func(v *resolver.View) error {
		if _, ok := v.Segments().Get(t.segment); !ok {
			return handler.ErrNoSegment
		}
		t.partition = v.Cut().Partition
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.watch = func() (Watch, bool) { return a.opts.Watch(t.account, t.segment) }
	var free bool
	if t.w, free = t.watch(); !free {
		return nil, handler.Busy("too many people are watching transitions")
	}
	now := query.TransitionKey{Offset: t.w.From}
	if after == nil {
		after = &now
	}
	if beyond(*after, now) {
		t.w.Close()
		return nil, handler.BadField(field, "%s is a position that has not been reached; send one that this call answered", field)
	}
	t.last, t.behind = *after, after.Offset < t.w.From
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return c.Stream(t, fmt.Sprintf(": watching\nid: %s\n\n", positionText(*after))), nil
}

// Watch is a watcher of transitions: of those from the offset From on. The channel is
// closed when the watcher did not receive in time.
type Watch struct {
	Events <-chan live.Transition
	From   int64
	Close  func()
}

const (
	// transitionPage is how many transitions are read of history at once.
	transitionPage = 1000
	// transitionBatch is how many are sent at once at most.
	transitionBatch = 100
)

// transitionSource is a stream of transitions. It watches first and then reads
// of history what was before, so that nothing is between; the watcher that is
// dropped meanwhile is replaced in the same way.
type transitionSource struct {
	api       *API
	account   uint64
	partition int
	segment   string
	watch     func() (Watch, bool)
	w         Watch
	// last is the position up to which everything was sent; behind says that
	// history has to be read up to where the watcher begins.
	last   query.TransitionKey
	behind bool

	// page is where the page arrives that is being read, nil when none is; after
	// a failure nothing is read until the next beat.
	page   chan pastTransitions
	failed bool
	ctx    context.Context // ends with the stream
	cancel context.CancelFunc
	done   sync.WaitGroup
}

type pastTransitions struct {
	list []live.Transition
	err  error
}

func (t *transitionSource) Next(s *handler.Stream) bool {
	for len(s.Pending) == 0 {
		events := t.w.Events
		if t.behind {
			events = nil
			if t.page == nil && !t.failed {
				t.readPage()
			}
		}
		select {
		case p := <-t.page:
			t.page = nil
			t.takePage(s, p)
		case e, open := <-events:
			if !open {
				if !t.watchAgain() {
					return s.End()
				}
				continue
			}
			t.send(s, e)
			t.sendMore(s)
		case <-s.Beat.C:
			t.failed = false
			if !t.exists() {
				return s.End()
			}
			return s.Alive()
		case <-s.Stopping():
			return s.End()
		}
	}
	return true
}

// readPage begins to read the next page of history.
func (t *transitionSource) readPage() {
	page := make(chan pastTransitions, 1)
	t.page = page
	q := query.TransitionsQuery{
		Cut: query.Cut{Partition: t.partition, UpTo: t.w.From}, Account: t.account, Segment: t.segment, After: t.last, Limit: transitionPage,
	}
	t.done.Go(func() {
		list, err := t.api.opts.Evaluation.PastTransitions(t.ctx, q)
		page <- pastTransitions{list, err}
	})
}

func (t *transitionSource) takePage(s *handler.Stream, p pastTransitions) {
	if p.err != nil {
		t.failed = true
		if _, ours := handler.Classify(p.err); ours {
			t.api.opts.Logger.Error("past transitions could not be read; trying again", "segment", t.segment, "error", p.err)
		}
		return
	}
	for i := range p.list {
		t.send(s, p.list[i])
	}
	if len(p.list) < transitionPage {
		t.behind = false
	}
}

// watchAgain replaces the watcher that was dropped. What it received last was
// sent, what it missed is in history by now or about to be.
func (t *transitionSource) watchAgain() bool {
	t.w.Close()
	w, ok := t.watch()
	if !ok {
		t.w.Close = func() {}
		return false
	}
	t.w, t.behind = w, true
	return true
}

// sendMore sends what else has happened already.
func (t *transitionSource) sendMore(s *handler.Stream) {
	for range transitionBatch - 1 {
		select {
		case e, open := <-t.w.Events:
			if !open {
				return // the next wait sees it again
			}
			t.send(s, e)
		default:
			return
		}
	}
}

func (t *transitionSource) send(s *handler.Stream, e live.Transition) {
	t.last = e.Key
	at := positionText(e.Key)
	event := "left"
	if e.Entered {
		event = "entered"
	}
	data, err := json.Marshal(transition{
		ProfileID: e.Profile.String(), SegmentID: e.Segment, Cause: e.Cause.String(), At: record.Time(e.AtMs), Position: at,
	})
	if err != nil {
		panic(err) // strings can be written
	}
	s.Pending = fmt.Appendf(s.Pending, "id: %s\n", at)
	s.Message(event, data)
}

// exists reports whether the segment is still there, as far as is known.
func (t *transitionSource) exists() bool {
	ctx, cancel := context.WithTimeout(t.ctx, t.api.opts.ReadTimeout)
	defer cancel()
	found := true
	err := t.api.opts.Node.Read(ctx, t.account, func(v *resolver.View) error {
		_, found = v.Segments().Get(t.segment)
		return nil
	})
	return err != nil || found
}

func (t *transitionSource) Close() {
	t.cancel()
	t.done.Wait()
	t.w.Close()
}

// beyond reports whether a comes after b.
func beyond(a, b query.TransitionKey) bool {
	return a.Offset > b.Offset || a.Offset == b.Offset && a.Seq > b.Seq
}

func positionText(k query.TransitionKey) string { return fmt.Sprintf("%d-%d", k.Offset, k.Seq) }

// peekPosition reads the position to continue behind, nil when none is given, and
// the name of the field it was in.
func peekPosition(c *handler.Call) (after *query.TransitionKey, field string, err error) {
	field = "Last-Event-ID"
	text := string(c.Request.Header.Peek(field))
	if text == "" {
		field = "after"
		if text = string(c.QueryArgs().Peek(field)); text == "" {
			return nil, "", nil
		}
	}
	offset, seq, ok := strings.Cut(text, "-")
	o, err1 := strconv.ParseUint(offset, 10, 63)
	n, err2 := strconv.ParseUint(seq, 10, 32)
	if !ok || err1 != nil || err2 != nil {
		return nil, "", handler.BadField(field, "%s must be a position such as 1042-3: send the id of a message of this call, or 0-0 for the beginning", field)
	}
	return &query.TransitionKey{Offset: int64(o), Seq: uint32(n)}, field, nil
}
