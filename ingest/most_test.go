package ingest

import "testing"

// TestMostMemory: the most that was taken is told once, without what was refused, and what is
// still taken counts again.
func TestMostMemory(t *testing.T) {
	t.Parallel()
	m := NewMemory(100)
	part := m.Part(2)
	most := func(of *Memory, want int64) {
		t.Helper()
		if have := of.Most(); have != want {
			t.Errorf("%d, want %d", have, want)
		}
	}
	most(m, 0)
	a, b := &lease{memory: m}, &lease{memory: part}
	if !a.need(60) || !b.need(40) || b.need(50) {
		t.Fatal("the memory has other bounds")
	}
	a.shrink(0)
	most(m, 100)
	most(m, 40)
	most(part, 40)
	b.shrink(0)
	most(m, 40)
	most(m, 0)
	m.force(120)
	m.force(-120)
	most(m, 120)
}
