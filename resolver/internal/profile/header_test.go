package profile

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// TestSharedAndFrozenHeadersStayAsTheyWere: the table has what was written last, a share what it had
// at its instant, also while another goroutine reads it, and a freeze each page that changed since the
// last one, once, as it was.
func TestSharedAndFrozenHeadersStayAsTheyWere(t *testing.T) {
	const most = 5 * PageRows
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var table HeaderTable
		var want []int64 // LastEvent by ordinal
		changed := map[uint32]bool{}
		var readers sync.WaitGroup
		same := func(what string, step int, p *HeaderPage, page int, want []int64) {
			for i := range p.Rows {
				o := page*PageRows + i
				if o >= len(want) {
					break
				}
				if p.Rows[i].LastEvent != want[o] {
					t.Errorf("seed %d: %s at step %d: profile %d has %d, want %d", seed, what, step, o, p.Rows[i].LastEvent, want[o])
					return
				}
			}
		}
		for step := range 3000 {
			switch n := rng.IntN(100); {
			case n < 2:
				pages, then := table.Share(), append([]int64(nil), want...)
				readers.Go(func() {
					for page, p := range pages {
						same("shared", step, p, page, then)
					}
				})
			case n < 4:
				if n := table.ChangedPages(); n != len(changed) {
					t.Fatalf("seed %d: step %d: %d pages changed, want %d", seed, step, n, len(changed))
				}
				frozen, then := table.Freeze(), append([]int64(nil), want...)
				for _, p := range frozen {
					if !changed[p.Number] {
						t.Fatalf("seed %d: step %d: page %d was frozen twice, or did not change", seed, step, p.Number)
					}
					delete(changed, p.Number)
				}
				if len(changed) > 0 {
					t.Fatalf("seed %d: step %d: pages %v changed and were not frozen", seed, step, changed)
				}
				readers.Go(func() {
					for _, p := range frozen {
						same("frozen", step, p.Page, int(p.Number), then)
					}
				})
			case n < 50 && len(want) < most:
				o, h := table.Add()
				if int(o) != len(want) || h.Winner != o {
					t.Fatalf("seed %d: step %d: ordinal %d of winner %d, want %d", seed, step, o, h.Winner, len(want))
				}
				h.LastEvent = int64(step)
				want, changed[o/PageRows] = append(want, h.LastEvent), true
			case len(want) > 0:
				o := uint32(rng.IntN(len(want)))
				table.Edit(o).LastEvent = int64(step)
				want[o], changed[o/PageRows] = int64(step), true
			}
		}
		for page, p := range table.Pages {
			same("present", 3000, p, page, want)
			var newest int64
			for o := page * PageRows; o < min(len(want), (page+1)*PageRows); o++ {
				newest = max(newest, want[o])
			}
			if n := p.NewestEvent(); n != newest {
				t.Errorf("seed %d: page %d: newest event %d, want %d", seed, page, n, newest)
			}
		}
		readers.Wait()
	}
}
