package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

type wire struct {
	EventType string `json:"event_type"`
	User      struct {
		Email      string `json:"email"`
		ExternalID string `json:"external_id"`
	} `json:"user"`
	Properties struct {
		Value float64 `json:"value"`
	} `json:"properties"`
	Key string `json:"idempotency_key"`
}

func decodeBatch(t *testing.T, body []byte) []wire {
	t.Helper()
	var b struct {
		Events []wire `json:"events"`
	}
	if err := json.Unmarshal(body, &b); err != nil {
		t.Fatalf("body is no JSON: %v", err)
	}
	return b.Events
}

func TestBatchBodies(t *testing.T) {
	spec := Spec{Seed: 7, Batch: 25, Profiles: 1000, NewRatio: 0.2, EventBytes: 320}
	w, err := NewWorker(spec, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	fresh := map[string]bool{}
	var sequence uint64
	for range 40 {
		body, first := w.Next()
		if first != sequence {
			t.Fatalf("first sequence number %d, want %d", first, sequence)
		}
		if want := len(`{"events":[]}`) + 25*320 + 24; len(body) != want {
			t.Fatalf("body of %d bytes, want %d", len(body), want)
		}
		for _, e := range decodeBatch(t, body) {
			if want := string(AppendKey(nil, 3, sequence)); e.Key != want || keys[e.Key] {
				t.Fatalf("key %q (seen: %v), want %q", e.Key, keys[e.Key], want)
			}
			keys[e.Key] = true
			number := strings.TrimPrefix(e.User.ExternalID, "c-")
			if e.User.Email != "u"+number+"@b.example" {
				t.Fatalf("e-mail %q does not go with external id %q", e.User.Email, e.User.ExternalID)
			}
			if number >= fmt.Sprintf("%010d", 1000) {
				if fresh[number] {
					t.Fatalf("new profile %s met twice", number)
				}
				fresh[number] = true
			}
			if e.Properties.Value < 100_000 {
				t.Fatalf("value %v", e.Properties.Value)
			}
			sequence++
		}
	}
	if got := uint64(len(fresh)); got != w.NewProfiles() || got < 120 || got > 280 {
		t.Fatalf("%d new profiles of 1000 events, counted %d, want about 200", got, w.NewProfiles())
	}
}

func TestSingleWithHead(t *testing.T) {
	spec := Spec{Seed: 1, Profiles: 10, EventBytes: 320}
	head := func(n int) []byte { return fmt.Appendf(nil, "POST /x %d\r\n\r\n", n) }
	w, err := NewWorker(spec, 0, head)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		request, _ := w.Next()
		h, body, _ := bytes.Cut(request, []byte("\r\n\r\n"))
		if string(h) != "POST /x 320" || len(body) != 320 {
			t.Fatalf("head %q, body of %d bytes", h, len(body))
		}
		var e wire
		if err := json.Unmarshal(body, &e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSweepMeetsEachKnownProfileOnce(t *testing.T) {
	w, err := NewWorker(Spec{Seed: 1, Batch: 10, Profiles: 100, EventBytes: 320}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Sweep(20, 55)
	if n := w.SweepRequests(); n != 4 {
		t.Fatalf("%d requests for 35 profiles, want 4", n)
	}
	for i := range 4 {
		body, _ := w.Next()
		for j, e := range decodeBatch(t, body) {
			if n := 20 + i*10 + j; n < 55 && e.User.ExternalID != fmt.Sprintf("c-%010d", n) {
				t.Fatalf("event %d is on %s", n, e.User.ExternalID)
			}
		}
	}
	if n := w.SweepRequests(); n != 0 {
		t.Fatalf("%d requests left after the sweep", n)
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	spec := Spec{Seed: 9, Batch: 5, Profiles: 50, NewRatio: 0.5, EventBytes: 320}
	a, _ := NewWorker(spec, 1, nil)
	b, _ := NewWorker(spec, 1, nil)
	c, _ := NewWorker(spec, 2, nil)
	for range 20 {
		x, _ := a.Next()
		y, _ := b.Next()
		z, _ := c.Next()
		if !bytes.Equal(x, y) {
			t.Fatal("the same seed and worker gave different requests")
		}
		if bytes.Equal(x, z) {
			t.Fatal("two workers gave the same request")
		}
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	w, err := NewWorker(Spec{Seed: 1, Batch: 100, Profiles: 1000, NewRatio: 0.1, EventBytes: 320}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { w.Next() }); n != 0 {
		t.Fatalf("%v allocations per request", n)
	}
}

func TestSpecIsChecked(t *testing.T) {
	good := Spec{Batch: 100, Profiles: 10, EventBytes: 320}
	for name, spoil := range map[string]func(*Spec){
		"batch":     func(s *Spec) { s.Batch = -1 },
		"profiles":  func(s *Spec) { s.Profiles = 0 },
		"new-ratio": func(s *Spec) { s.NewRatio = 1.5 },
		"event":     func(s *Spec) { s.EventBytes = 10 },
	} {
		s := good
		spoil(&s)
		if _, err := NewWorker(s, 0, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestPutDigits(t *testing.T) {
	for _, width := range []int{5, 10, 12} {
		limit := uint64(1)
		for range width {
			limit *= 10
		}
		for _, v := range []uint64{0, 1, 9, 10, 11, 99, 100, 101, 999, 1000, 12345, 99999, 7_000_000_001, 987_654_321_098, limit - 1} {
			b := []byte("xxxxxxxxxxxx")[:width]
			putDigits(b, v%limit)
			if want := fmt.Sprintf("%0*d", width, v%limit); string(b) != want {
				t.Errorf("%d in %d digits: %s", v%limit, width, b)
			}
		}
	}
}

func TestSmallestEventAlwaysFits(t *testing.T) {
	for seed := range uint64(500) {
		spec := Spec{Seed: seed, Batch: 20, Profiles: 10, EventBytes: MinEventBytes}
		if _, err := NewWorker(spec, 0, nil); err != nil {
			t.Fatal(err)
		}
		spec.Repeat = true
		if _, err := NewWorker(spec, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	w, err := NewWorker(Spec{Seed: 1, Batch: 100, Profiles: 100_000, NewRatio: 0.1, EventBytes: 320}, 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		request, _ := w.Next()
		b.SetBytes(int64(len(request)))
	}
}
