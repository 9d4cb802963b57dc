package sharedlist

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// TestFrozenListsStayAsTheyWere: a list has what was set last, and what was frozen of it what it had
// then, also while another goroutine reads it and the list goes on changing.
func TestFrozenListsStayAsTheyWere(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var l List[int]
		var want []*int
		var readers sync.WaitGroup
		same := func(l *List[int], want []*int) error {
			if l.Len() != len(want) {
				return fmt.Errorf("%d entries, want %d", l.Len(), len(want))
			}
			for i, p := range want {
				if l.At(i) != p {
					return fmt.Errorf("entry %d is another", i)
				}
			}
			if p := l.At(len(want)); p != nil {
				return fmt.Errorf("there is an entry behind the end")
			}
			return nil
		}
		for step := range 3000 {
			i := rng.IntN(5 * chunkEntries)
			switch rng.IntN(100) {
			case 0:
				frozen, then := l.Freeze(), slices.Clone(want)
				readers.Go(func() {
					for range 3 {
						if err := same(&frozen, then); err != nil {
							t.Errorf("seed %d: frozen at step %d: %v", seed, step, err)
							return
						}
					}
				})
			case 1:
				if err := same(&l, want); err != nil {
					t.Fatalf("seed %d: step %d: %v", seed, step, err)
				}
			case 2:
				i += rng.IntN(3) * 2 * chunkEntries // chunks between stay empty
				fallthrough
			default:
				p := &step
				if rng.IntN(10) == 0 {
					p = nil
				}
				if i >= len(want) {
					want = append(want, make([]*int, i+1-len(want))...)
				}
				want[i] = p
				l.Set(i, p)
			}
		}
		readers.Wait()
		if most := int64(9*chunkEntries*8 + 32*cap(l.chunks)); l.Bytes() <= 0 || l.Bytes() > most {
			t.Errorf("seed %d: %d bytes, want at most %d", seed, l.Bytes(), most)
		}
	}
}

// TestShortListsAreSmall: there are some for each account with segments.
func TestShortListsAreSmall(t *testing.T) {
	var l List[int]
	for i := range 3 {
		l.Set(i, new(int))
	}
	if n := l.Bytes(); n > 100 {
		t.Errorf("three entries take %d bytes", n)
	}
}
