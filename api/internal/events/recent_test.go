package events

import "testing"

// TestQ1RecentEventsAreBounded: however many and large they are, the newest are kept in
// bounded memory.
func TestQ1RecentEventsAreBounded(t *testing.T) {
	l := recentList{limit: 10}
	for i := range 5000 {
		l.add(recentEvent{atMs: int64(i * 7919 % 5000), Properties: make([]byte, 100_000)})
		if len(l.kept) >= 20 || l.bytes > 2*recentBytes {
			t.Fatalf("%d events of %d bytes are kept", len(l.kept), l.bytes)
		}
	}
	if l.cut(); len(l.kept) != 10 || l.total != 5000 {
		t.Fatalf("%d of %d", len(l.kept), l.total)
	}
	for i, e := range l.kept {
		if e.atMs != int64(4999-i) {
			t.Errorf("at place %d there is the event of %d", i, e.atMs)
		}
	}
	large := recentList{limit: 10}
	for i := range 10 {
		large.add(recentEvent{atMs: int64(i), Properties: make([]byte, recentBytes-1)})
	}
	if large.cut(); len(large.kept) != 1 || large.kept[0].atMs != 9 {
		t.Errorf("%d large ones are kept", len(large.kept))
	}
}
