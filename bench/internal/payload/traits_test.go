package payload

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
)

// TestTraitsRepeat: whichever client sends it, a profile's traits are the same except for
// the share of events that give an attribute a new value; and bodies keep their sizes.
func TestTraitsRepeat(t *testing.T) {
	known := map[string]string{} // traits by e-mail
	changed, events := 0, 0
	for number := range 3 {
		w, err := NewWorker(Spec{Seed: 7, Batch: 25, Profiles: 300, NewRatio: 0.1, EventBytes: MinEventBytes, Repeat: true, ChangeRatio: 0.2}, number, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 80 {
			body, _ := w.Next()
			if want := len(`{"events":[]}`) + 25*MinEventBytes + 24; len(body) != want {
				t.Fatalf("body of %d bytes, want %d", len(body), want)
			}
			var b struct {
				Events []struct {
					User struct {
						Email      string         `json:"email"`
						Attributes map[string]any `json:"attributes"`
						Geo        map[string]any `json:"geo"`
					} `json:"user"`
				} `json:"events"`
			}
			if err := json.Unmarshal(body, &b); err != nil {
				t.Fatalf("%v: %s", err, body)
			}
			for _, e := range b.Events {
				events++
				if _, has := e.User.Attributes["score"]; has {
					changed++
					delete(e.User.Attributes, "score")
				}
				have := fmt.Sprint(e.User.Attributes, e.User.Geo)
				if was, met := known[e.User.Email]; met && was != have {
					t.Fatalf("%s: %s, before %s", e.User.Email, have, was)
				}
				known[e.User.Email] = have
			}
		}
	}
	if share := float64(changed) / float64(events); math.Abs(share-0.2) > 0.02 {
		t.Errorf("%.3f of the events change traits, want 0.2", share)
	}
	different := map[string]bool{}
	for _, have := range known {
		different[have] = true
	}
	if len(different) < 30 {
		t.Errorf("profiles have %d different traits", len(different))
	}
}
