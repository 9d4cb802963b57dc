package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/server"
)

func numbers(from, to uint64) (out []uint64) {
	for n := from; n < to; n++ {
		out = append(out, n)
	}
	return out
}

// L2: each acknowledged event is there once, in its own company, and nothing else.
func TestL2Compare(t *testing.T) {
	acked := []loader.Range{{Company: 0, Worker: 0, To: 10}, {Company: 1, Worker: 0, From: 5, To: 8}, {Company: 1, Worker: 0, From: 12, To: 15}}
	whole := func() map[sender][]uint64 {
		late := append(numbers(12, 15), numbers(5, 8)...)
		return map[sender][]uint64{{0, 0}: numbers(0, 10), {1, 0}: late}
	}
	for _, c := range []struct {
		name   string
		change func(map[sender][]uint64)
		want   history.Once
		unsure uint64
		ok     bool
	}{
		{"whole", func(map[sender][]uint64) {}, history.Once{Acked: 16, Rows: 16, DistinctKeys: 16}, 0, true},
		{"one missing", func(m map[sender][]uint64) { m[sender{0, 0}] = numbers(1, 10) }, history.Once{Acked: 16, Rows: 15, DistinctKeys: 15, Missing: 1}, 9, false},
		{"one twice", func(m map[sender][]uint64) { m[sender{0, 0}] = append(numbers(0, 10), 4) }, history.Once{Acked: 16, Rows: 17, DistinctKeys: 16, Doubled: 1}, 9, false},
		{"in a gap, unsure", func(m map[sender][]uint64) { m[sender{1, 0}] = numbers(5, 15) }, history.Once{Acked: 16, Rows: 20, DistinctKeys: 20, Unacked: 4}, 4, true},
		{"in a gap, refused", func(m map[sender][]uint64) { m[sender{1, 0}] = numbers(5, 15) }, history.Once{Acked: 16, Rows: 20, DistinctKeys: 20, Unacked: 4}, 3, false},
		{"of another company", func(m map[sender][]uint64) { m[sender{2, 0}] = m[sender{0, 0}]; delete(m, sender{0, 0}) },
			history.Once{Acked: 16, Rows: 16, DistinctKeys: 16, Missing: 10, Unacked: 10}, 99, false},
		{"nothing", func(m map[sender][]uint64) { clear(m) }, history.Once{Acked: 16, Missing: 16}, 99, false},
	} {
		seen := whole()
		c.change(seen)
		got := compare(acked, seen)
		if got != c.want || (got.Err(c.unsure) == nil) != c.ok {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, got.Err(c.unsure), c.want)
		}
	}
}

// L1: a segment that counts one too few or too many is found, unless it cannot be
// known whether the event was taken.
func TestL1Counted(t *testing.T) {
	l := newLedger()
	l.counts[tally{0, 1, "searched"}] = count{1, 1}
	l.counts[tally{0, 2, "searched"}] = count{2, 2}
	l.counts[tally{0, 3, "searched"}] = count{0, 1}
	l.counts[tally{0, 4, "purchased"}] = count{9, 9}
	l.counts[tally{1, 5, "searched"}] = count{9, 9}
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
		right, err := l.counted(context.Background(), 0, of)
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
