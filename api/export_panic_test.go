package api

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/query"
)

// brokenHistory panics when it is replayed.
type brokenHistory struct{ *memHistory }

func (brokenHistory) Replay(context.Context, query.ReplayQuery, func(*query.ReplayBlock) error) error {
	panic("history is broken")
}

// TestExportThatPanics: an export runs beside its request; if it panics the answer
// breaks off, and the service continues.
func TestExportThatPanics(t *testing.T) {
	t.Parallel()
	s := newService(t, brokenHistory{&memHistory{}}, nil)
	s.event(`{"event_type":"a","user":{"email":"a@x.io"}}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://muster.test"+Prefix+"/export/events", nil)
	ok(t, err)
	req.Header.Set("Authorization", "Bearer "+s.token)
	if res, err := s.client.Do(req); err == nil { // else it broke off before its first line
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err == nil {
			t.Errorf("the answer is whole: %d %q", res.StatusCode, b)
		}
	}
	if n := s.api.opts.Metrics.GetOrCreateCounter(panics.Metric).Get(); n == 0 { // clients may try again
		t.Error("no panic is counted")
	}
	s.want("GET", "/session", "", nil)
}
