package flows

import (
	"testing"
	"time"
)

func TestSummaryTakesTheLeastValueThatSoManyDoNotExceed(t *testing.T) {
	for _, c := range []struct {
		n    int
		want Latency
	}{
		{0, Latency{}},
		{1, Latency{1, 1, 1, 1}},
		{2, Latency{2, 1, 2, 2}},
		{100, Latency{100, 50, 99, 100}},
		{200, Latency{200, 100, 198, 200}},
		{201, Latency{201, 101, 199, 201}},
	} {
		x := &times{}
		for i := c.n; i > 0; i-- {
			x.add(time.Duration(i) * time.Millisecond)
		}
		if got := x.summary(); got != c.want {
			t.Errorf("1 to %d ms: %+v, want %+v", c.n, got, c.want)
		}
	}
	x := &times{}
	x.add(-time.Second)
	if got := x.summary(); got != (Latency{N: 1}) {
		t.Errorf("less than nothing: %+v", got)
	}
}

func TestParseHeap(t *testing.T) {
	const text = "heap profile: 1: 2\n# runtime.MemStats\n# Alloc = 9\n# HeapAlloc = 123\n# HeapSys = 7\n# HeapIdle = 45\n# HeapInuse = 8\n# HeapReleased = 6\n"
	got, err := parseHeap(text)
	if want := (goHeap{123, 45, 6}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "\n# HeapAlloc = x\n# HeapIdle = 1\n# HeapReleased = 1\n", "\n# HeapAlloc = 1\n# HeapIdle = 1\n"} {
		if got, err := parseHeap(bad); err == nil {
			t.Errorf("%q passed as %+v", bad, got)
		}
	}
}

func TestWakers(t *testing.T) {
	for _, c := range []struct{ sleepers, n, digits int }{
		{1000, 100, 2}, {9999, 100, 2}, {10_000, 1000, 3}, {1_000_000, 100_000, 5}, {10_000_000, 100_000, 5},
	} {
		if n, digits := wakers(c.sleepers); n != c.n || digits != c.digits {
			t.Errorf("of %d: %d (10^%d), want %d (10^%d)", c.sleepers, n, digits, c.n, c.digits)
		}
	}
	// The prefix is that of the numbers below 10^digits among those of ten digits.
	if got := firstProfiles(5); got != "c-00000" {
		t.Errorf("prefix %q", got)
	}
}
