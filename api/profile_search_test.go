package api

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"
)

type foundProfile struct {
	ProfileID  string `json:"profile_id"`
	Identities map[string][]string
	FirstName  string  `json:"first_name"`
	LastName   string  `json:"last_name"`
	FirstSeen  string  `json:"first_seen_at"`
	LastEvent  *string `json:"last_event_at"`
	Statuses   map[string]string
}

// search lists what a search finds, page by page.
func (s *service) search(query string, limit int) (out []string) {
	s.t.Helper()
	cursor := ""
	for range 1000 {
		var list []foundProfile
		a := s.want("GET", fmt.Sprintf("/profiles/search?limit=%d&%s&cursor=%s", limit, query, cursor), "", &list)
		for _, p := range list {
			out = append(out, p.FirstName)
		}
		if a.Next == nil {
			return out
		}
		cursor = *a.Next
	}
	s.t.Fatal("the search does not end")
	return nil
}

// TestProfileSearch lists profiles by what they begin with, filtered, sorted and in
// pages; what was changed, merged or erased shows in the next answer.
func TestProfileSearch(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	ids := map[string]string{}
	for i, x := range []struct{ email, phone, first, last string }{
		{"ann@x.io", "+49 30 123", "Ann", "Lee"}, {"bob@x.io", "+49 30 456", "Bob", "Annan"}, {"anna@x.io", "+33 1 23", "Zoe", "Öster"}, {"dee@x.io", "030-123", "Annabel", ""},
	} {
		ids[x.first] = s.event(fmt.Sprintf(`{"event_type":"seen","user":{"external_id":"U%d","email":%q,"phone":%q,"first_name":%q,"last_name":%q}}`, i, x.email, x.phone, x.first, x.last))
	}
	seg := s.segment("At x.io with a 30", `{"kind":"attribute","field":"phone","op":"contains","value":"30"}`)
	s.live(seg.ID)
	var list struct {
		ID string `json:"_id"`
	}
	s.want("POST", "/lists", `{"name":"l"}`, &list)
	check := func(query string, want ...string) {
		t.Helper()
		for _, limit := range []int{1, 2, 100} {
			if got := s.search(query, limit); !slices.Equal(got, want) {
				t.Errorf("%s, %d a page: %q, want %q", query, limit, got, want)
			}
		}
	}
	check("q=an", "Ann", "Zoe", "Annabel", "Bob")
	check("q=ANN@", "Ann")
	check("q=ann%20l", "Ann")
	check("q="+url.QueryEscape("ÖST"), "Zoe")
	check("q="+url.QueryEscape("+49 30"), "Ann", "Bob")
	check("q=030", "Annabel")
	check("q=u2", "Zoe")
	check("q=x.io")
	check("", "Annabel", "Zoe", "Bob", "Ann")
	check("sort=oldest", "Ann", "Bob", "Zoe", "Annabel")
	check("q=an&sort=newest", "Annabel", "Zoe", "Bob", "Ann")
	check("q=an&segment_id="+seg.ID, "Ann", "Annabel", "Bob")
	check("sort=oldest&segment_id="+seg.ID, "Ann", "Bob", "Annabel")
	check("list_id=" + list.ID)
	check("status=Subscribed")
	s.clock.Advance(time.Minute)
	s.event(`{"event_type":"seen","user":{"external_id":"U1"}}`)
	check("sort=last_event", "Bob", "Annabel", "Zoe", "Ann")
	s.want("POST", "/profiles/"+ids["Zoe"]+"/consent", `{"channel":"sms","status":"subscribed"}`, nil)
	check("status=Subscribed&channel=sms", "Zoe")
	check("status=Subscribed")
	s.want("PATCH", "/profiles/"+ids["Ann"], `{"last_name":"Moe"}`, nil)
	check("q=ann%20l")
	check("q=moe", "Ann")
	s.event(`{"event_type":"seen","user":{"email":"ann@x.io","phone":"030-123"}}`) // two people: they stay apart
	s.event(`{"event_type":"seen","user":{"external_id":"U9","first_name":"Anton"}}`)
	check("q=anton", "Anton")
	s.event(`{"event_type":"seen","user":{"email":"ann@x.io","external_id":"new"}}`)
	s.want("DELETE", "/profiles/"+ids["Bob"], "", nil)
	check("q=bob")
	check("q=annan")

	var rows []foundProfile
	if s.want("GET", "/profiles/search?q=anna@", "", &rows); len(rows) != 1 || rows[0].ProfileID != ids["Zoe"] || !slices.Equal(rows[0].Identities["email"], []string{"anna@x.io"}) || rows[0].LastEvent == nil || rows[0].FirstSeen == "" || rows[0].Statuses["sms"] != "Subscribed" {
		t.Errorf("found: %+v", rows)
	}
	a := s.want("GET", "/profiles/search?limit=1", "", nil)
	if status, b := s.get("/profiles/search?limit=1&sort=oldest&cursor=" + *a.Next); status != 400 || b.field() != "cursor" {
		t.Errorf("a cursor of another search: %d %s", status, b.Message)
	}
	// Members of a segment are profiles, too.
	var members struct {
		Members  []string
		Profiles []foundProfile
	}
	if s.want("GET", "/segments/"+seg.ID+"/members", "", &members); len(members.Members) != 2 || len(members.Profiles) != 2 || members.Profiles[0].ProfileID != members.Members[0] || members.Profiles[1].FirstName != "Annabel" {
		t.Errorf("members: %+v", members)
	}
}

// TestProfileSearchWhileBuilding: a segment that is building filters by history.
func TestProfileSearchWhileBuilding(t *testing.T) {
	t.Parallel()
	h := &memHistory{}
	s := newService(t, h, nil)
	ids := s.fill(9)
	release := h.holdReplays()
	defer release()
	seg := s.segment("Buyers", buyers)
	var rows []foundProfile
	s.want("GET", "/profiles/search?sort=oldest&segment_id="+seg.ID, "", &rows)
	var got, want []string
	for _, p := range rows {
		got = append(got, p.ProfileID)
	}
	for i := 0; i < len(ids); i += 2 {
		want = append(want, ids[i])
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
