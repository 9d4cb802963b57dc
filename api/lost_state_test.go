package api

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/logbuffer"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
)

// TestHistoryOfAnotherState: rows of profiles that the state does not have, as when
// a directory lost its state, are told as an error wherever they would be looked up;
// the service continues.
func TestHistoryOfAnotherState(t *testing.T) {
	t.Parallel()
	h, log := &memHistory{}, &logbuffer.Buffer{}
	s := newService(t, h, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	s.event(`{"event_type":"seen","user":{"email":"a@x.io"},"idempotency_key":"k-1"}`)
	s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
	events := func() (string, error) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://muster.test"+Prefix+"/export/events", nil)
		ok(t, err)
		req.Header.Set("Authorization", "Bearer "+s.token)
		res, err := s.client.Do(req)
		if err != nil {
			return "", err // it broke off before anything was sent
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		return string(b), err
	}
	got, err := events()
	if err != nil || strings.Count(got, "\n") != 2 || strings.Count(got, `,"idempotency_key":"k-1"}`) != 1 || strings.Count(got, `,"idempotency_key":null}`) != 1 {
		t.Errorf("%v\n%s", err, got)
	}

	h.mu.Lock()
	stray := h.rows[0]
	stray.ordinal = 1 << 20
	h.rows = append(h.rows, stray)
	h.moves = append(h.moves, query.Transition{Account: stray.account, Segment: "seg_x", Ordinal: stray.ordinal, Key: query.TransitionKey{Offset: 1}})
	h.mu.Unlock()
	if got, err := events(); err == nil {
		t.Errorf("the export ended in order:\n%s", got)
	}
	if !strings.Contains(log.String(), "an export broke off") || !strings.Contains(log.String(), "not of this state") {
		t.Errorf("the log has no word of it:\n%s", log.String())
	}
	// What is counted are profiles that there are.
	var preview struct{ Count int }
	if s.want("POST", "/segments/preview", `{"definition":{"kind":"activity","event":"seen"}}`, &preview); preview.Count != 1 {
		t.Errorf("preview: %d", preview.Count)
	}
	if _, err := s.api.evaluation.PastTransitions(t.Context(), query.TransitionsQuery{Account: stray.account, Segment: "seg_x", Limit: 10, Cut: query.Cut{UpTo: 2}}); !errors.Is(err, resolver.ErrOtherHistory) {
		t.Errorf("past transitions: %v", err)
	}

	// A segment on these events cannot be built. Nothing of it is applied, which
	// could not be undone.
	release := h.holdReplays()
	seg := s.segment("Seen", `{"kind":"activity","event":"seen"}`)
	until := func(tries int) {
		t.Helper()
		eventually.Holds(t, fmt.Sprintf("the segment is tried %d times", tries), func() bool { return h.waiting() >= tries })
	}
	until(1)
	var members struct{ Members []string }
	if s.want("GET", "/segments/"+seg.ID+"/members", "", &members); len(members.Members) != 1 {
		t.Errorf("members: %v", members)
	}
	release()
	release = h.holdReplays()
	defer func() { release() }()
	until(2) // so the first ended
	if s.event(`{"event_type":"seen","user":{"email":"b@x.io"}}`); s.node.Err() != nil {
		t.Error(s.node.Err())
	}
}
