package api

import (
	"testing"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/messaging/capture"
)

// noneCaptured is an empty store of captured messages.
type noneCaptured struct{}

func (noneCaptured) List(capture.Filter, int, uint64) ([]capture.Message, uint64, error) {
	return nil, 0, nil
}

// noImports has no uploaded files.
type noImports struct{ Imports }

func (noImports) List(uint64) ([]Import, error) { return []Import{}, nil }

// TestCursorKinds: each call takes cursors of its own kind, and refuses those of
// all others, also when they have the right length.
func TestCursorKinds(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, func(o *Options) { o.Captured.Messages, o.Imports = noneCaptured{}, noImports{} })
	profile := s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
	seg := s.segment("Buyers", buyers)
	var list, hook, flow struct {
		ID string `json:"_id"`
	}
	s.want("POST", "/lists", `{"name":"l","description":""}`, &list)
	s.want("POST", "/webhooks", `{"url":"https://hooks.example.com/in","events":["*"]}`, &hook)
	s.want("POST", "/flows", `{"name":"f"}`, &flow)
	// The right kind may still name a place that there is not: what is refused
	// then is not the cursor's form.
	other := paging.ErrCursor.Error()
	seen := map[paging.Kind]bool{}
	for _, x := range []struct {
		kind   paging.Kind
		path   string
		length int
	}{
		{paging.Timeline, "/profiles/" + profile + "/events", 8 + 8 + 4},
		{paging.History, "/profiles/" + profile + "/timeline", 8 + 1 + 8 + 4 + 4},
		{paging.Members, "/segments/" + seg.ID + "/members", 4 + 8},
		{paging.Segments, "/segments", 8},
		{paging.ByAge, "/users", 8},
		{paging.ByAge, "/lists", 8},
		{paging.Accounts, "/companies", 8},
		{paging.DeadLetters, "/webhooks/" + hook.ID + "/dead-letters", 8},
		{paging.Outbox, "/outbox", 8},
		{paging.ByOrdinal, "/lists/" + list.ID + "/members", 4},
		{paging.Enrolments, "/flows/" + flow.ID + "/enrolments", 4 + 4},
		{paging.Profiles, "/profiles/search", 8 + 1 + 8 + 4},
		{paging.Deliveries, "/webhooks/" + hook.ID + "/deliveries", 8},
		{paging.Audit, "/audit", 8},
		{paging.Imports, "/imports", 8},
		{paging.Audit, "/segments/" + seg.ID + "/versions", 8},
		{paging.Orders, "/profiles/" + profile + "/orders", 8 + 16},
	} {
		seen[x.kind] = true
		for kind := paging.Kind(0); kind <= paging.End; kind++ {
			cursor := paging.Encode(kind, make([]byte, x.length))
			status, a := s.get(x.path + "?cursor=" + cursor)
			if refused := status == 400 && a.Message == other; refused != (kind != x.kind) {
				t.Errorf("GET %s with a cursor of kind %d: %d %s", x.path, kind, status, a.Message)
			}
		}
	}
	if len(seen) != int(paging.End)-1 {
		t.Errorf("%d kinds are tested, there are %d", len(seen), int(paging.End)-1)
	}
}
