package api

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver"
)

// track stores an event as the tracking API does, and returns its profile.
func (s *service) track(e eventlog.Event) string {
	s.t.Helper()
	env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: s.account(), StampMs: s.clock.Now().UnixMilli()}
	_, err := rand.Read(env.ID[:])
	ok(s.t, err)
	var out resolver.Outcome
	ok(s.t, s.node.Submit(context.Background(), env.Account, eventlog.AppendEvent(eventlog.AppendEventCount(env.Append(nil), 1), &e), &out))
	if len(out.Events) != 1 || out.Events[0].Status != resolver.EventAccepted {
		s.t.Fatalf("%+v", out)
	}
	return out.Events[0].Profile.String()
}

// TestI6AnonymousIDsAreOnThePersonsPageAlone: and an anonymous profile is in no list, search or
// preview that does not ask for it.
func TestI6AnonymousIDsAreOnThePersonsPageAlone(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	nobody := s.track(eventlog.Event{Type: []byte("page_viewed"), AnonymousID: []byte("device-1"), FirstName: []byte("Zoe")})
	person := s.track(eventlog.Event{Type: []byte("page_viewed"), AnonymousID: []byte("device-2"), ExternalID: []byte("u1")})
	s.track(eventlog.Event{Type: []byte("page_viewed"), AnonymousID: []byte("device-3"), ExternalID: []byte("u1")})
	type page struct {
		Identities   map[string][]string
		AnonymousIDs []string `json:"anonymous_ids"`
		Segments     []string
	}
	var p page
	s.want("GET", "/profiles/"+person, "", &p)
	if !slices.Equal(p.AnonymousIDs, []string{"device-3", "device-2"}) || len(p.Identities) != 3 || len(p.Identities["external_id"]) != 1 {
		t.Errorf("the person's page: %+v", p)
	}
	everybody := s.segment("Everybody", `{"kind":"activity","event":"page_viewed","include_anonymous":true}`)
	known := s.segment("Known", `{"kind":"activity","event":"page_viewed"}`)
	p = page{}
	s.want("GET", "/profiles/"+nobody, "", &p)
	if !slices.Equal(p.AnonymousIDs, []string{"device-1"}) || len(p.Identities["external_id"]) != 0 || !slices.Equal(p.Segments, []string{everybody.ID}) {
		t.Errorf("the anonymous page: %+v, segments are %s and %s", p, everybody.ID, known.ID)
	}
	// The share is of those who may be members.
	for definition, want := range map[string]uint64{`{"kind":"activity","event":"page_viewed"}`: 1, `{"kind":"activity","event":"page_viewed","include_anonymous":true}`: 2} {
		var preview struct{ Count, Profiles uint64 }
		s.want("POST", "/segments/preview", `{"definition":`+definition+`}`, &preview)
		if preview.Profiles != want || preview.Count != want {
			t.Errorf("the preview of %s: %+v, want %d of %d", definition, preview, want, want)
		}
	}
	for path, want := range map[string]int{
		"/profiles/search?sort=newest": 1, "/profiles/search?q=zoe": 0, "/profiles/search?q=device-1": 0, "/profiles/search?q=u1": 1,
		"/profiles/search?sort=newest&segment_id=" + everybody.ID: 2, "/profiles/search?sort=newest&segment_id=" + known.ID: 1,
	} {
		var rows []map[string]any
		s.want("GET", path, "", &rows)
		if len(rows) != want {
			t.Errorf("%s finds %d, want %d", path, len(rows), want)
		}
		for _, row := range rows {
			if _, shown := row["anonymous_ids"]; shown {
				t.Errorf("%s shows anonymous ids: %v", path, row)
			}
		}
	}
	for definition, want := range map[string]int{
		`{"kind":"activity","event":"page_viewed"}`:                                                 1,
		`{"kind":"activity","event":"page_viewed","include_anonymous":true}`:                        2,
		`{"kind":"attribute","field":"email","op":"not_exists"}`:                                    1,
		`{"kind":"attribute","field":"email","op":"not_exists","include_anonymous":true}`:           2,
		`{"kind":"attribute","field":"first_name","op":"=","value":"Zoe"}`:                          0,
		`{"kind":"attribute","field":"first_name","op":"=","value":"Zoe","include_anonymous":true}`: 1,
	} {
		var preview struct{ Count int }
		s.want("POST", "/segments/preview", `{"definition":`+definition+`}`, &preview)
		if preview.Count != want {
			t.Errorf("%s: %d, want %d", definition, preview.Count, want)
		}
	}
	var why struct {
		Member     bool
		Definition struct{ Holds, Anonymous bool }
	}
	s.want("GET", "/segments/"+known.ID+"/explain?profile_id="+nobody, "", &why)
	if why.Member || why.Definition.Holds || !why.Definition.Anonymous {
		t.Errorf("an anonymous profile is out because of that: %+v", why)
	}
}
