package historytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/segmenttest"
)

const s1Questions = 170

// world is a history of one account: souls that may be merged, their events in
// rows.
type world struct {
	gen     *segmenttest.Gen
	rng     *rand.Rand
	account uint64
	first   int64
	end     int64
	souls   []*segment.NaiveProfile
	rows    []worldRow
	merges  []query.Alias
	batch   query.Batch
}

type worldRow struct {
	offset int64
	soul   int
	event  segment.NaiveEvent
}

// key is the row's idempotency key; every third row or so has none.
func (r *worldRow) key() string {
	if r.event.TimeMs%3 == 0 {
		return ""
	}
	return fmt.Sprintf("%d at %d", r.soul, r.event.TimeMs)
}

// storedKey is the key as history keeps it.
func (r *worldRow) storedKey() []byte {
	if r.event.Sent {
		return query.AppendSentKey(nil, []byte(r.event.Type), []byte(r.key()))
	}
	return []byte(r.key())
}

func drawWorld(seed uint64, first int64) *world {
	w := &world{gen: segmenttest.New(seed), rng: rand.New(rand.NewPCG(seed, 9)), account: seed, first: first}
	for range 25 {
		w.souls = append(w.souls, w.gen.Profile())
	}
	for soul, p := range w.souls {
		for _, e := range p.Events {
			w.rows = append(w.rows, worldRow{soul: soul, event: e})
		}
	}
	w.rng.Shuffle(len(w.rows), func(i, j int) { w.rows[i], w.rows[j] = w.rows[j], w.rows[i] })
	root := make([]int, len(w.souls))
	for i := range root {
		root[i] = i
	}
	b := &w.batch
	b.From = first
	offset := first
	for i := range w.rows {
		r := &w.rows[i]
		index := uint32(0)
		if i > 0 && w.rng.IntN(3) == 0 {
			index = b.Index[len(b.Index)-1] + 1
		} else if i > 0 {
			offset++
		}
		r.offset = offset
		b.Account = append(b.Account, w.account)
		b.Offset = append(b.Offset, offset)
		b.Index = append(b.Index, index)
		// Rows carry the ordinal that was the winner when they came.
		b.Ordinal = append(b.Ordinal, uint32(root[r.soul]))
		b.TimeMs = append(b.TimeMs, r.event.TimeMs)
		b.EventType.Append([]byte(r.event.Type))
		b.Properties.Append(r.event.Properties)
		b.IdempotencyKey.Append(r.storedKey())
		if w.rng.IntN(25) == 0 {
			winner, merged := root[w.rng.IntN(len(root))], root[w.rng.IntN(len(root))]
			if winner == merged {
				continue
			}
			for soul := range root {
				if root[soul] == merged {
					root[soul] = winner
					w.merges = append(w.merges, query.Alias{Account: w.account, Offset: offset, Index: index, Ordinal: uint32(soul), Winner: uint32(winner)})
				}
			}
		}
	}
	b.Aliases = slices.Clone(w.merges)
	w.end = offset + 1
	b.To = w.end
	return w
}

// ask draws a question and compares the answers.
func (w *world) ask(t *testing.T, s query.History) (members int, ok bool) {
	t.Helper()
	c := w.gen.Case(0)
	cut := query.Cut{UpTo: w.first + w.rng.Int64N(w.end-w.first+1)}
	if w.rng.IntN(2) == 0 {
		cut.UpTo = w.end
	}
	people := w.people(cut.UpTo)
	got, err := query.Evaluate(context.Background(), s, query.Evaluation{
		Account: w.account, Cut: cut, AtMs: c.AtMs, Root: c.Node, Profiles: people, Segments: c.Refs,
	})
	if err != nil {
		t.Errorf("S1: %v\n%s", err, c.Definition)
		return 0, false
	}
	want := roaring.New()
	for o, p := range people.profiles {
		if p != nil && c.Node.Naive(p, c.AtMs, c.Refs) {
			want.Add(uint32(o))
		}
	}
	if !want.Equals(got) {
		t.Errorf("S1: at %d, cut %d: history has %v, naive has %v\n%s", c.AtMs, cut.UpTo, got, want, c.Definition)
		differing := roaring.Xor(got, want).ToArray()
		for _, o := range differing[:min(2, len(differing))] {
			for _, e := range people.profiles[o].Events {
				t.Logf("profile %d: %d %s %s", o, e.TimeMs, e.Type, e.Properties)
			}
		}
		for id, n := range c.Others {
			t.Logf("%s: %s", id, n.Canonical())
		}
		return 0, false
	}
	return int(want.GetCardinality()), true
}

// people is the state at a cut: the souls with their merges below it.
type people struct {
	profiles []*segment.NaiveProfile // nil for merged ones
}

func (w *world) people(upTo int64) *people {
	root := make([]int, len(w.souls))
	for i := range root {
		root[i] = i
	}
	for _, m := range w.merges {
		if m.Offset < upTo {
			root[m.Ordinal] = int(m.Winner)
		}
	}
	p := &people{profiles: make([]*segment.NaiveProfile, len(w.souls))}
	for soul, r := range root {
		if r == soul {
			c := *w.souls[soul]
			c.Events = nil
			p.profiles[soul] = &c
		}
	}
	for _, r := range w.rows {
		if r.offset < upTo {
			c := p.profiles[root[r.soul]]
			c.Events = append(c.Events, r.event)
		}
	}
	return p
}

func (p *people) Universe() *roaring.Bitmap {
	b := roaring.New()
	for o, x := range p.profiles {
		if x != nil {
			b.Add(uint32(o))
		}
	}
	return b
}

func (p *people) Anonymous() *roaring.Bitmap {
	b := roaring.New()
	for o, x := range p.profiles {
		if x != nil && x.Anonymous {
			b.Add(uint32(o))
		}
	}
	return b
}

func (p *people) Scan(_ context.Context, fn func(uint32, *segment.Facts) error) error {
	for o, x := range p.profiles {
		if x == nil {
			continue
		}
		if err := fn(uint32(o), x.Facts()); err != nil {
			return fmt.Errorf("scan: %w", err)
		}
	}
	return nil
}
