package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/musterhq/muster/api/internal/evaluation"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
)

func (a *API) exportOperations() handler.Group {
	lines := func(about, example string) shape.Ordered {
		return shape.Pairs("200", operation.Plain(about+" One JSON object a line. A fault in the middle breaks the answer off.", "application/x-ndjson", example, nil))
	}
	person := "{\"profile_id\":\"prf_cdc5eaeb89bc0ed9f653e1d1d46aa533\",…}\n"
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: exports", Title: "Exports", About: "All that the account holds, as JSON lines. `muster export` does the same."}, Routes: []handler.Route{
		{Handle: a.exportProfiles, Operation: operation.Operation{Method: "GET", Path: "/export/profiles", Permission: "contacts:read", ID: "exportProfiles", Summary: "Export all profiles", Other: lines("Profiles, as `GET /profiles/{id}` has them.", person)}},
		{Handle: a.exportSegment, Operation: operation.Operation{Method: "GET", Path: "/export/segments/{id}", Permission: "contacts:read", ID: "exportSegment", Summary: "Export the members of a segment", Other: lines("Profiles, as `GET /profiles/{id}` has them.", person), Also: []int{409}}},
		{Handle: a.exportConsents, Operation: operation.Operation{Method: "GET", Path: "/export/consents", Permission: "contacts:read", ID: "exportConsents", Summary: "Export the log of consents",
			Other: lines("What each person said of channels and topics, with the evidence, as `GET /profiles/{id}/consents` has it, and the person's `profile_id`.", "{\"profile_id\":\"prf_cdc5eaeb89bc0ed9f653e1d1d46aa533\",\"at\":\"2026-01-31T09:00:00.000Z\",\"channel\":\"email\",\"status\":\"unsubscribed\",\"source\":\"preferences\",…}\n")}},
		{Handle: a.exportEvents, Operation: operation.Operation{Method: "GET", Path: "/export/events", Permission: "events:read", ID: "exportEvents", Summary: "Export all events", Query: []operation.Parameter{operation.Query("event_type", shape.Text("item_purchased", "Those of a type alone."))},
			Other: lines("Events, type by type. `idempotency_key` is null where there was none.", "{\"profile_id\":\"prf_cdc5eaeb89bc0ed9f653e1d1d46aa533\",\"event_type\":\"item_purchased\",\"timestamp\":\"2026-01-31T09:00:00.000Z\",\"properties\":{\"value\":79.9},\"idempotency_key\":\"order-1001\"}\n")}},
	}}
}

// exportPage is how many profiles are read from the state at once.
const exportPage = 200

// ErrNotLive reports that a segment is being built, so that its members are not
// known to the engine.
var ErrNotLive = errors.New("the segment is still being built; try again when it is live")

// Exporter writes what an account holds as JSON lines. Memory is bounded
// whatever the size: it reads pages of profiles and blocks of events. Profiles
// are as of when their page is read, events as of the beginning.
type Exporter struct {
	Node    *node.Node
	History query.History
}

// Profiles writes one line for each profile, as GET /profiles/{id} has it, in
// the order in which they were made.
func (e *Exporter) Profiles(ctx context.Context, account uint64, w io.Writer) error {
	return e.profiles(ctx, account, w, func(v *resolver.View, from uint32, _ int64) ([]uint32, error) {
		return v.Profiles().Page(from, exportPage), nil
	})
}

// Segment writes the members of a segment likewise.
func (e *Exporter) Segment(ctx context.Context, account uint64, id string, w io.Writer) error {
	return e.profiles(ctx, account, w, func(v *resolver.View, from uint32, atMs int64) ([]uint32, error) {
		list, live := v.Segments().Page(id, from, exportPage, atMs)
		if !live {
			return nil, ErrNotLive
		}
		return list, nil
	})
}

func (e *Exporter) profiles(ctx context.Context, account uint64, w io.Writer, page func(v *resolver.View, from uint32, atMs int64) ([]uint32, error)) error {
	enc := newLines(w)
	for from, atMs := uint32(0), int64(0); ; {
		var list []record.Profile
		more := false
		err := e.Node.Read(ctx, account, func(v *resolver.View) error {
			// All pages of a segment are as of one instant, as far as that goes.
			if atMs == 0 {
				atMs = v.LogTimeMs()
			}
			ordinals, err := page(v, from, atMs)
			if err != nil {
				return err
			}
			more = len(ordinals) == exportPage
			saved := v.Segments().All()
			var room paging.Room
			for _, o := range ordinals {
				x, err := evaluation.RecordOf(v, saved, o, atMs)
				if err != nil {
					return err
				}
				if !room.Take(&x) {
					more = true
					return nil
				}
				list = append(list, x)
				from = o + 1
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i := range list {
			if err := enc.Encode(&list[i]); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

// Events writes one line for each event, type by type, and within a type in no
// order. Without types all are written.
func (e *Exporter) Events(ctx context.Context, account uint64, types []string, w io.Writer) error {
	var cut query.Cut
	err := e.Node.Read(ctx, account, func(v *resolver.View) error {
		cut = v.Cut()
		if len(types) == 0 {
			for _, t := range v.EventTypes().List() {
				types = append(types, t.Key)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := e.Node.WaitHistory(ctx, cut); err != nil {
		return err
	}
	enc := newLines(w)
	type event struct {
		ProfileID  string          `json:"profile_id"`
		EventType  string          `json:"event_type"`
		Timestamp  string          `json:"timestamp"`
		Properties json.RawMessage `json:"properties"`
		Key        *string         `json:"idempotency_key"`
	}
	type id struct {
		resolver.ProfileID
		ok bool
	}
	var ids []id
	for _, typ := range types {
		err := e.History.Replay(ctx, query.ReplayQuery{Cut: cut, Account: account, EventType: typ, Properties: true, Keys: true}, func(b *query.ReplayBlock) error {
			ids = ids[:0]
			if err := e.Node.Read(ctx, account, func(v *resolver.View) error {
				for _, o := range b.Ordinal {
					x, ok, err := v.Profiles().HistoryID(o)
					if err != nil {
						return err
					}
					ids = append(ids, id{x, ok})
				}
				return nil
			}); err != nil {
				return err
			}
			for i := range b.Ordinal {
				if !ids[i].ok {
					continue
				}
				x := event{ids[i].String(), typ, record.Time(b.TimeMs[i]), record.Object(b.Properties.At(i)), nil}
				if key, _ := query.SentKey(typ, string(b.IdempotencyKey.At(i))); key != "" {
					x.Key = &key
				}
				if err := enc.Encode(x); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func newLines(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

// exportStream is an answer that is written as it is made. Its reader pulls; when
// the reader is gone the making ends.
type exportStream struct {
	*io.PipeReader
	conn   net.Conn
	cancel context.CancelFunc
	done   chan struct{}
}

// Read implements [io.Reader].
func (s *exportStream) Read(p []byte) (int, error) {
	n, err := s.PipeReader.Read(p)
	if n == 0 {
		return n, err
	}
	return n, errors.Join(err, s.conn.SetWriteDeadline(time.Now().Add(handler.StreamWriteTimeout)))
}

// Close implements [io.Closer]. It waits for the making to end.
func (s *exportStream) Close() error {
	s.cancel()
	err := s.PipeReader.Close()
	<-s.done
	return err
}

// export answers with the lines that write makes. A fault in the middle breaks
// the answer off, so that no client takes it for whole.
func (a *API) export(c *handler.Call, write func(ctx context.Context, e *Exporter, w io.Writer) error) (any, error) {
	release, err := a.exports.Acquire(c.Ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	stop := c.Stopping()
	r, w := io.Pipe()
	s := &exportStream{PipeReader: r, conn: c.Conn(), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer release()
		defer func() {
			if r := recover(); r != nil {
				w.CloseWithError(panics.Report(a.opts.Metrics, a.opts.Logger, "an export", r)) // never fails
			}
		}()
		ended := make(chan struct{})
		defer close(ended)
		go func() { // the service stops
			select {
			case <-stop:
				cancel()
			case <-ended:
			}
		}()
		buf := bufio.NewWriterSize(w, 64<<10)
		err := write(ctx, &Exporter{a.opts.Node, a.opts.History}, buf)
		if err == nil {
			err = buf.Flush()
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, io.ErrClosedPipe) {
			a.opts.Logger.Error("an export broke off", "error", err)
		}
		w.CloseWithError(err) // never fails
	}()
	c.SetStatusCode(http.StatusOK)
	c.SetContentType("application/x-ndjson")
	c.Response.Header.Set("Cache-Control", "no-store")
	c.Response.SetBodyStream(ingest.GuardStream(a.opts.Metrics, a.opts.Logger, "the answer of an export", s), -1)
	return handler.Streaming, nil
}

func (a *API) exportProfiles(c *handler.Call) (any, error) {
	account := c.Account
	return a.export(c, func(ctx context.Context, e *Exporter, w io.Writer) error { return e.Profiles(ctx, account, w) })
}

// exportSegment answers GET /export/segments/{id}.
func (a *API) exportSegment(c *handler.Call) (any, error) {
	account, id := c.Account, c.PathID()
	err := c.Read(func(v *resolver.View) error {
		if _, ok := v.Segments().Get(id); !ok {
			return handler.ErrNoSegment
		}
		if _, live := v.Segments().Progress(id); !live {
			return &handler.Problem{Status: http.StatusConflict, Message: ErrNotLive.Error()}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return a.export(c, func(ctx context.Context, e *Exporter, w io.Writer) error { return e.Segment(ctx, account, id, w) })
}

// exportEvents answers GET /export/events, of all types or of event_type.
func (a *API) exportEvents(c *handler.Call) (any, error) {
	account := c.Account
	var types []string
	if t := string(c.QueryArgs().Peek("event_type")); t != "" {
		types = []string{t}
	}
	// A history that cannot answer is found before the answer begins.
	var cut query.Cut
	if err := c.Read(func(v *resolver.View) error { cut = v.Cut(); return nil }); err != nil {
		return nil, err
	}
	if err := a.opts.Node.WaitHistory(c.Ctx, cut); err != nil {
		return nil, err
	}
	return a.export(c, func(ctx context.Context, e *Exporter, w io.Writer) error { return e.Events(ctx, account, types, w) })
}

// SplitExport reads what to export: profiles, consents, events, or segments/<id>.
func SplitExport(what string) (kind, id string, err error) {
	switch {
	case what == "profiles", what == "consents", what == "events":
		return what, "", nil
	case len(what) > len("segments/") && what[:len("segments/")] == "segments/":
		return "segments", what[len("segments/"):], nil
	}
	return "", "", fmt.Errorf("%q cannot be exported; it is one of profiles, consents, events and segments/<id>", what)
}
