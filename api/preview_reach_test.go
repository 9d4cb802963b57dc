package api

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestPreviewSaysWhoCanBeReached: the numbers by channel, and why each of the sample
// belongs, are those of the definition's members alone.
func TestPreviewSaysWhoCanBeReached(t *testing.T) {
	t.Parallel()
	h := &memHistory{}
	s := newService(t, h, nil)
	s.fill(30)
	type answer struct {
		previewAnswer
		Reachable map[string]int
		Explained []struct {
			ProfileID  string `json:"profile_id"`
			Member     bool
			Definition struct {
				Conditions []struct {
					Kind  string
					Holds bool
					Facts *struct {
						MatchingEvents int `json:"matching_events"`
						Value          any
					}
				}
			}
		}
	}
	both := fmt.Sprintf(`{"match":"all","conditions":[%s,%s]}`, buyers, berlin)
	ask := func(extra string) (a answer) {
		t.Helper()
		s.want("POST", "/segments/preview", `{"definition":`+both+extra+`}`, &a)
		return a
	}
	a := ask("")
	if a.Count == 0 || a.Reachable["email"] != 0 || a.Reachable["in_app"] != a.Count || len(a.Reachable) != 6 || a.Explained != nil {
		t.Fatalf("%+v", a)
	}
	first, second := a.Sample[0].ProfileID, a.Sample[1].ProfileID
	for _, x := range []struct{ id, path, body string }{
		{first, "/consent", `{"channel":"email","status":"subscribed"}`},
		{second, "/consent", `{"channel":"email","status":"subscribed"}`},
		{second, "/suppression", `{"channel":"email"}`},
		{first, "/consent", `{"channel":"sms","status":"subscribed"}`},
		{first, "/consent", `{"channel":"in_app","status":"unsubscribed"}`},
	} {
		s.want("POST", "/profiles/"+x.id+x.path, x.body, nil)
	}
	if a = ask(""); a.Reachable["email"] != 1 || a.Reachable["sms"] != 0 || a.Reachable["in_app"] != a.Count-1 {
		t.Errorf("%+v", a.Reachable)
	}
	s.want("PATCH", "/profiles/"+first, `{"phone":"+491701234567"}`, nil)
	settings := map[string]any{}
	s.want("GET", "/settings", "", &settings)
	settings["require_opt_in"] = false
	body, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	s.want("PUT", "/settings", string(body), nil)
	a = ask(`,"explain":true`)
	if a.Reachable["email"] != a.Count-1 || a.Reachable["sms"] != 1 || a.Reachable["push"] != 0 {
		t.Errorf("%+v of %d", a.Reachable, a.Count)
	}
	if len(a.Explained) != len(a.Sample) {
		t.Fatalf("%d are explained, %d in the sample", len(a.Explained), len(a.Sample))
	}
	for i, x := range a.Explained {
		activity := x.Definition.Conditions[0]
		if x.ProfileID != a.Sample[i].ProfileID || !x.Member || len(x.Definition.Conditions) != 2 || activity.Facts == nil || activity.Facts.MatchingEvents == 0 || x.Definition.Conditions[1].Facts.Value != "Berlin" {
			t.Errorf("explained %d: %+v", i, x)
		}
	}
}
