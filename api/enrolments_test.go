package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver/campaigns"
)

// TestEnrolmentsOfAStep: with a step those alone are listed that are at it now, however
// many others there are in the flow, over pages of bounded work.
func TestEnrolmentsOfAStep(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	var flow struct {
		ID string `json:"_id"`
	}
	s.want("POST", "/flows", `{"name":"go","trigger":{"type":"event","event":"go"},"steps":[
		{"id":"rare","type":"condition","if":{"kind":"attribute","field":"attributes.rare","op":"exists"},"yes":"few","no":"many"},
		{"id":"few","type":"wait","seconds":3600,"next":null},{"id":"many","type":"wait","seconds":3600,"next":null}]}`, &flow)
	s.want("POST", "/flows/"+flow.ID+"/publish", "", nil)
	const people = 2000 + 100 // a page looks at no more than 2,000
	for from := 0; from < people; from += 100 {
		var events []string
		for i := from; i < from+100; i++ {
			rare := ""
			if i == 7 || i == people-1 {
				rare = `,"attributes":{"rare":true}`
			}
			events = append(events, fmt.Sprintf(`{"event_type":"go","user":{"external_id":"p%d"%s}}`, i, rare))
		}
		if res, b := s.send("POST", "/api/v1/events/batch", `{"events":[`+strings.Join(events, ",")+`]}`, "X-App-Id", s.creds.AppID, "X-App-Secret", s.creds.AppSecret); res.StatusCode != 202 {
			t.Fatalf("%d %s", res.StatusCode, b)
		}
	}
	read := func(step string, limit int) (n, pages int) {
		for cursor := ""; ; {
			var p struct {
				Enrolments []struct{ Step string }
				Next       string
			}
			s.want("GET", fmt.Sprintf("/flows/%s/enrolments?limit=%d&step=%s%s", flow.ID, limit, step, cursor), "", &p)
			for _, e := range p.Enrolments {
				if e.Step != step {
					t.Errorf("at %s where %s is asked for", e.Step, step)
				}
			}
			if n, pages = n+len(p.Enrolments), pages+1; len(p.Enrolments) > limit {
				t.Fatalf("%d enrolments where %d are wanted at most", len(p.Enrolments), limit)
			}
			if cursor = "&cursor=" + p.Next; p.Next == "" {
				return n, pages
			}
		}
	}
	if n, pages := read("few", 100); n != 2 || pages != 2 {
		t.Errorf("%d at the rare step on %d pages, want 2 on 2", n, pages)
	}
	if n, pages := read("few", 1); n != 2 || pages < 2 {
		t.Errorf("%d at the rare step on %d pages of one, want 2", n, pages)
	}
	if n, _ := read("many", 700); n != people-2 {
		t.Errorf("%d at the usual step, want %d", n, people-2)
	}
	if n, _ := read("rare", 100); n != 0 {
		t.Errorf("%d at a step without waiting enrolments", n)
	}
	if code, a := s.get("/flows/" + flow.ID + "/enrolments?step=none"); code != 400 && code != 422 || !strings.Contains(a.Message, "step: the flow has no step with this id") {
		t.Errorf("another step: %d %s", code, a.Message)
	}
}

// TestCampaignsNewestFirst: both orders list the same, each page by page.
func TestCampaignsNewestFirst(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	for i := range 5 {
		_, err := s.node.Command(t.Context(), s.account(), campaigns.CommandSave, campaigns.Campaign{Name: fmt.Sprint(i), Channel: 1})
		ok(t, err)
	}
	list := func(sort string, limit int) (names []string) {
		for cursor := ""; ; {
			var p []struct{ Name string }
			a := s.want("GET", fmt.Sprintf("/campaigns?limit=%d&sort=%s%s", limit, sort, cursor), "", &p)
			for _, c := range p {
				names = append(names, c.Name)
			}
			if a.Next == nil || *a.Next == "" {
				return names
			}
			cursor = "&cursor=" + *a.Next
		}
	}
	for limit := 1; limit < 7; limit++ {
		oldest, newest := list("oldest", limit), list("newest", limit)
		if len(oldest) != 5 || len(newest) != 5 {
			t.Fatalf("limit %d: %v, %v", limit, oldest, newest)
		}
		for i := range oldest {
			if oldest[i] != newest[4-i] {
				t.Errorf("limit %d: %v is not %v the other way round", limit, newest, oldest)
			}
		}
	}
	if code, a := s.get("/campaigns?sort=name"); code != 400 && code != 422 || a.Message != "sort must be oldest or newest" {
		t.Errorf("another order: %d %s", code, a.Message)
	}
}
