package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/musterhq/muster/bench/internal/ledger"
	"github.com/musterhq/muster/bench/internal/server"
)

// L1: a segment that counts one too few or too many is found, unless it cannot be
// known whether the event was taken.
func TestL1Counted(t *testing.T) {
	l := ledger.NewBulk()
	l.Sent(0, 1, "searched", true)
	l.Sent(0, 2, "searched", true)
	l.Sent(0, 2, "searched", true)
	l.Sent(0, 3, "searched", false)
	for range 9 {
		l.Sent(0, 4, "purchased", true)
		l.Sent(1, 5, "searched", true)
	}
	for _, c := range []struct {
		events, got int
		live        string
		right       bool
	}{{1, 2, "live", true}, {1, 3, "live", true}, {1, 1, "live", false}, {1, 4, "live", false}, {2, 1, "live", true}, {2, 2, "live", false}, {2, 1, "building", false}} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			data := `{"token":"t"}`
			if r.URL.Path == "/console/api/v1/segments/seg_1" {
				data = fmt.Sprintf(`{"status":%q,"count":%d}`, c.live, c.got)
			}
			fmt.Fprintf(w, `{"status":"success","data":%s}`, data)
		}))
		of := &company{credentials: server.Credentials{BaseURL: s.URL + "/api/v1", ConsoleURL: s.URL}, levels: []level{{"searched", c.events, "seg_1"}}}
		right, err := counted(context.Background(), l, 0, of)
		if (err == nil) != c.right || (right == 1) != c.right || c.live == "live" && !c.right && !errors.Is(err, errWrongCount) {
			t.Errorf("%+v: %d right, %v", c, right, err)
		}
		s.Close()
	}
}

func TestStrideVisitsEverything(t *testing.T) {
	for n := 1; n < 12; n++ {
		var seen []int
		for i := range n {
			seen = append(seen, i*stride(n)%n)
		}
		slices.Sort(seen)
		for i, s := range seen {
			if i != s {
				t.Fatalf("%d steps: %v", n, seen)
			}
		}
	}
}
