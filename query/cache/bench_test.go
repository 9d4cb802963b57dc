package cache

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

// BenchmarkActivity asks identical conditions and ones with other thresholds,
// without and with the cache. MUSTER_BENCH_EVENTS is how many events there are
// (default 300,000), of a tenth as many profiles.
func BenchmarkActivity(b *testing.B) {
	events := 300_000
	if n, err := strconv.Atoi(os.Getenv("MUSTER_BENCH_EVENTS")); err == nil {
		events = n
	}
	h := openOn(b, openBackend(b), 256*mb)
	const batch = 10_000
	for from := 0; from < events; from += batch {
		x := &query.Batch{From: int64(from), To: int64(from + batch)}
		for o := from; o < from+batch; o++ {
			x.Account, x.Offset, x.Index = append(x.Account, 1), append(x.Offset, int64(o)), append(x.Index, 0)
			x.Ordinal, x.TimeMs = append(x.Ordinal, uint32(o*7919%(events/10))), append(x.TimeMs, int64(o)*1000)
			x.EventType.Append([]byte(fmt.Sprintf("t%d", o%3)))
			x.Properties.Append([]byte(`{"v":2.5}`))
			x.IdempotencyKey.Append(nil)
		}
		if err := h.Append(context.Background(), x); err != nil {
			b.Fatal(err)
		}
	}
	for _, window := range []int64{0, int64(events) * 500} {
		for _, how := range []struct {
			name    string
			history query.History
			edited  bool
		}{{"uncached", h.Backend, false}, {"identical", h, false}, {"edited", h, true}} {
			b.Run(fmt.Sprintf("window=%d/%s", window, how.name), func(b *testing.B) {
				for i := range b.N {
					leaf := historytest.CountLeaf("t1", 3)
					if how.edited {
						leaf = historytest.CountLeaf("t1", int64(1+i%8))
					}
					leaf.WindowMs = window
					q := query.ActivityQuery{Cut: query.Cut{UpTo: int64(events)}, Account: 1, Leaf: leaf, AtMs: int64(events)*1000 + int64(i)}
					if _, err := how.history.Activity(context.Background(), q); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
