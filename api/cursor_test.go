package api

import (
	"bytes"
	"testing"

	"github.com/musterhq/muster/messaging/capture"
)

// noneCaptured is an empty store of captured messages.
type noneCaptured struct{}

func (noneCaptured) List(capture.Filter, int, uint64) ([]capture.Message, uint64, error) {
	return nil, 0, nil
}

// TestCursorKinds: each call takes cursors of its own kind, and refuses those of
// all others, also when they have the right length.
func TestCursorKinds(t *testing.T) {
	s := newService(t, &memHistory{}, func(o *Options) { o.Captured = noneCaptured{} })
	profile := s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
	seg := s.segment("Buyers", buyers)
	var list, hook struct {
		ID string `json:"_id"`
	}
	s.want("POST", "/lists", `{"name":"l","description":""}`, &list)
	s.want("POST", "/webhooks", `{"url":"https://hooks.example.com/in","events":["*"]}`, &hook)
	// The right kind may still name a place that there is not: what is refused
	// then is not the cursor's form.
	const other = "cursor is not one that this call answered; leave it out to start at the beginning"
	seen := map[byte]bool{}
	for _, x := range []struct {
		kind   byte
		path   string
		length int
	}{
		{cursorTimeline, "/profiles/" + profile + "/events", timelineCursorBytes},
		{cursorMembers, "/segments/" + seg.ID + "/members", memberCursorBytes},
		{cursorSegments, "/segments", 1 + 8},
		{cursorAge, "/users", 1 + 8},
		{cursorAge, "/lists", 1 + 8},
		{cursorAccount, "/companies", 1 + 8},
		{cursorDead, "/webhooks/" + hook.ID + "/dead-letters", 1 + 8},
		{cursorOutbox, "/outbox", 1 + 8},
		{cursorOrdinal, "/lists/" + list.ID + "/members", 1 + 4},
	} {
		seen[x.kind] = true
		for kind := byte(0); kind <= cursorEnd; kind++ {
			cursor := cursorText.EncodeToString(append([]byte{kind}, bytes.Repeat([]byte{0}, x.length-1)...))
			status, a := s.get(x.path + "?cursor=" + cursor)
			if refused := status == 400 && a.Message == other; refused != (kind != x.kind) {
				t.Errorf("GET %s with a cursor of kind %d: %d %s", x.path, kind, status, a.Message)
			}
		}
	}
	if len(seen) != cursorEnd-1 {
		t.Errorf("%d kinds are tested, there are %d", len(seen), cursorEnd-1)
	}
}
