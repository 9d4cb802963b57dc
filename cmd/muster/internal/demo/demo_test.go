package demo

import (
	"bytes"
	"encoding/csv"
	"reflect"
	"strings"
	"testing"
	"time"
)

func small(now time.Time, seed uint64) *Options {
	return &Options{Now: func() time.Time { return now }, Seed: seed, Customers: 300, Orders: 600}
}

// TestHistoryIsTheSameAndSplitAtThePresent: the seed and the day decide everything; what
// is past is before now, what comes is behind it, and there are people to write to.
func TestHistoryIsTheSameAndSplitAtThePresent(t *testing.T) {
	now := time.Date(2026, 3, 4, 15, 30, 0, 0, time.UTC)
	h, err := newHistory(small(now, 7))
	if err != nil {
		t.Fatal(err)
	}
	same, err := newHistory(small(now, 7))
	if err != nil || !reflect.DeepEqual(h, same) {
		t.Errorf("the same options give another history (%v)", err)
	}
	other, err := newHistory(small(now, 8))
	if err != nil || bytes.Equal(h.past, other.past) {
		t.Errorf("another seed gives the same history (%v)", err)
	}
	lines := bytes.Split(bytes.TrimSuffix(h.past, []byte("\n")), []byte("\n"))
	last, err := timeOf(lines[len(lines)-1])
	first, errFirst := timeOf(lines[0])
	if err != nil || errFirst != nil || !last.Before(now) || now.Sub(last) > time.Hour || now.Sub(first) < (pastDays-7)*24*time.Hour {
		t.Errorf("the past is from %v to %v", first, last)
	}
	at := now
	for _, e := range h.future {
		if e.at.Before(at) || e.Timestamp != "" || e.EventType == "" {
			t.Fatalf("%+v after %v", e, at)
		}
		at = e.at
	}
	if len(h.future) < 100 || len(h.people) < 100 {
		t.Errorf("%d events to come, %d people", len(h.future), len(h.people))
	}
	text, rows, err := h.csv(50)
	if err != nil || rows != 52 {
		t.Fatal(rows, err)
	}
	list, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(list) != rows+1 || len(list[1][4]) != 19 || !strings.Contains(list[1][0], "@") {
		t.Errorf("%v, %v", list[:2], err)
	}
}

// TestLiveEventsComeWhenTheyAreDueAndSoonEnough: an event is sent when it is due, and
// none is far behind the one before.
func TestLiveEventsComeWhenTheyAreDueAndSoonEnough(t *testing.T) {
	now := time.Date(2026, 3, 4, 15, 30, 0, 0, time.UTC)
	for _, x := range []struct {
		due, sinceLast, open, want time.Duration
	}{
		{time.Second, 0, 0, time.Second},
		{time.Hour, 0, 0, firstQuiet},
		{time.Hour, time.Second, 0, firstQuiet - time.Second},
		{time.Hour, 0, time.Hour, longestQuiet},
		{-time.Minute, 0, 0, 0},
		{time.Hour, time.Hour, time.Hour, 0},
	} {
		e := []event{{at: now.Add(x.due)}}
		if got := next(e, 0, now, now.Add(-x.sinceLast), now.Add(-x.open)); got != x.want {
			t.Errorf("%+v: %v", x, got)
		}
	}
}
