package api

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestRecentEvents: all that was acknowledged in the last seconds is listed, the newest
// first, and what is left out is counted.
func TestRecentEvents(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	now := s.clock.Now()
	at := func(d time.Duration) string { return now.Add(-d).UTC().Format(time.RFC3339Nano) }
	for i, e := range []struct {
		typ string
		ago time.Duration
	}{{"old", time.Hour}, {"bought", 50 * time.Second}, {"seen", 40 * time.Second}, {"bought", 30 * time.Second}, {"bought", time.Hour}} {
		s.event(fmt.Sprintf(`{"event_type":%q,"user":{"external_id":"p%d","email":"p%d@x.io"},"properties":{"n":%d},"timestamp":%q}`, e.typ, i, i, i, at(e.ago)))
	}
	type events struct {
		Events []struct {
			ProfileID  string `json:"profile_id"`
			EventType  string `json:"event_type"`
			Timestamp  string
			Properties struct{ N int }
			Identity   struct{ Email string }
		}
		Total int
	}
	read := func(query string) (out events, text string) {
		s.want("GET", "/events/recent"+query, "", &out)
		for _, e := range out.Events {
			text += fmt.Sprintf(" %s %d", e.EventType, e.Properties.N)
			if e.Identity.Email != fmt.Sprintf("p%d@x.io", e.Properties.N) || !strings.HasPrefix(e.ProfileID, "prf_") {
				t.Errorf("%+v", e)
			}
		}
		return out, text
	}
	for query, want := range map[string]struct {
		text  string
		total int
	}{
		"":                                       {" bought 3 seen 2 bought 1", 3},
		"?last_seconds=35":                       {" bought 3", 1},
		"?limit=2":                               {" bought 3 seen 2", 3},
		"?event_type=bought":                     {" bought 3 bought 1", 2},
		"?event_type=unknown":                    {"", 0},
		"?event_type=seen,old&last_seconds=7200": {" seen 2 old 0", 2},
	} {
		if out, text := read(query); text != want.text || out.Total != want.total {
			t.Errorf("%q: %q of %d, want %q of %d", query, text, out.Total, want.text, want.total)
		}
	}
	for query, says := range map[string]string{
		"?last_seconds=0": "last_seconds must be a whole number from 1 to 86400", "?last_seconds=x": "last_seconds must be", "?limit=1001": "limit must be a whole number from 1 to 1000",
		"?event_type=" + strings.Repeat("a,", 20): "event_type names 21 types",
	} {
		if code, a := s.get("/events/recent" + query); code < 400 || !strings.Contains(a.Message, says) {
			t.Errorf("%s: %d %s", query, code, a.Message)
		}
	}
}
