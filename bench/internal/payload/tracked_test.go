package payload

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestTrackedBodies: batches for the tracking API have the shape, sizes, keys and people
// that they are said to have.
func TestTrackedBodies(t *testing.T) {
	spec := Spec{Seed: 7, Batch: 25, Profiles: 1000, NewRatio: 0.2, EventBytes: MinEventBytes, Tracked: true}
	w, err := NewWorker(spec, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	sequence := uint64(0)
	for range 40 {
		body, _ := w.Next()
		if want := len(`{"batch":[],"sentAt":"2026-01-01T00:00:00.000Z"}`) + 25*(MinEventBytes+TrackedBytes) + 24; len(body) != want {
			t.Fatalf("body of %d bytes, want %d", len(body), want)
		}
		var b struct {
			SentAt string
			Batch  []struct {
				Type, Event, UserID, MessageID, Timestamp string
				Properties                                struct{ Value float64 }
				Context                                   struct {
					Traits struct {
						Email   string
						Address struct{ Country, City string }
					}
				}
			}
		}
		if err := json.Unmarshal(body, &b); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		if len(b.Batch) != 25 {
			t.Fatalf("%d events", len(b.Batch))
		}
		for _, e := range b.Batch {
			number, found := strings.CutPrefix(e.UserID, "c-")
			if e.MessageID != string(AppendKey(nil, 3, sequence)) || !found || e.Context.Traits.Email != fmt.Sprintf("u%s@b.example", number) ||
				e.Type != "track" || e.Event == "" || e.Timestamp != b.SentAt || e.Properties.Value < 100_000 || e.Context.Traits.Address.City == "" {
				t.Fatalf("event %d is %+v", sequence, e)
			}
			sequence++
		}
	}
	spec.Batch = 0
	if err := spec.Validate(); err == nil {
		t.Error("single events for the tracking API are taken")
	}
}
