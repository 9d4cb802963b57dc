package ledger

import (
	"testing"

	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/loader"
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
	whole := func() map[Sender][]uint64 {
		late := append(numbers(12, 15), numbers(5, 8)...)
		return map[Sender][]uint64{{0, 0}: numbers(0, 10), {1, 0}: late}
	}
	for _, c := range []struct {
		name   string
		change func(map[Sender][]uint64)
		want   history.Once
		unsure uint64
		ok     bool
	}{
		{"whole", func(map[Sender][]uint64) {}, history.Once{Acked: 16, Rows: 16, DistinctKeys: 16}, 0, true},
		{"one missing", func(m map[Sender][]uint64) { m[Sender{0, 0}] = numbers(1, 10) }, history.Once{Acked: 16, Rows: 15, DistinctKeys: 15, Missing: 1}, 9, false},
		{"one twice", func(m map[Sender][]uint64) { m[Sender{0, 0}] = append(numbers(0, 10), 4) }, history.Once{Acked: 16, Rows: 17, DistinctKeys: 16, Doubled: 1}, 9, false},
		{"in a gap, unsure", func(m map[Sender][]uint64) { m[Sender{1, 0}] = numbers(5, 15) }, history.Once{Acked: 16, Rows: 20, DistinctKeys: 20, Unacked: 4}, 4, true},
		{"in a gap, refused", func(m map[Sender][]uint64) { m[Sender{1, 0}] = numbers(5, 15) }, history.Once{Acked: 16, Rows: 20, DistinctKeys: 20, Unacked: 4}, 3, false},
		{"of another company", func(m map[Sender][]uint64) { m[Sender{2, 0}] = m[Sender{0, 0}]; delete(m, Sender{0, 0}) },
			history.Once{Acked: 16, Rows: 16, DistinctKeys: 16, Missing: 10, Unacked: 10}, 99, false},
		{"nothing", func(m map[Sender][]uint64) { clear(m) }, history.Once{Acked: 16, Missing: 16}, 99, false},
	} {
		seen := whole()
		c.change(seen)
		got := compare(acked, seen)
		if got != c.want || (got.Err(c.unsure) == nil) != c.ok {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, got.Err(c.unsure), c.want)
		}
	}
}
