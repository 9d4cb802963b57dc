package cache

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/musterhq/muster/query"
)

// matches are the events that match a question below a cut. They are never
// changed; those at a later cut share blocks with those at an earlier one.
type matches struct {
	cut int64
	// afterMs is the time from which on, itself excluded, events are there.
	afterMs int64
	kinds   *names // of series; nil when there is one kind
	scalars *names // behind values, for distinct
	blocks  []*block
	n       int
	bytes   int64
	// greatest is the greatest ordinal.
	greatest uint32
}

// block is events in columns, by kind and time. The events of kind k are
// from[k] ≤ i < from[k+1].
type block struct {
	from    []int32
	timeMs  []int64
	ordinal []uint32
	value   []int64 // millionths or numbers of scalars; nil when not asked for
}

const (
	// mergeBlocks is at how many blocks they are made one, and mergeShare at which
	// share of all events the later blocks are.
	mergeBlocks = 8
	mergeShare  = 4
	// maxMatches bounds the events of an entry; positions in a block have 32 bits.
	maxMatches = math.MaxInt32 / 4
)

func (b *block) kinds() int { return len(b.from) - 1 }

// span is where the events of a kind after and up to a time are.
func (b *block) span(kind int, afterMs, untilMs int64) (lo, hi int) {
	if kind >= b.kinds() {
		return 0, 0
	}
	from, to := int(b.from[kind]), int(b.from[kind+1])
	of := b.timeMs[from:to]
	return from + sort.Search(len(of), func(i int) bool { return of[i] > afterMs }),
		from + sort.Search(len(of), func(i int) bool { return of[i] > untilMs })
}

// name is what tells kinds of events apart.
type name struct{ typ, text string }

// names number what was seen. They only grow, and are shared by all matches of a
// key.
type names struct {
	mu      sync.Mutex
	numbers map[name]uint32
	list    []name
	bytes   int64
	// The last one, as many rows in a row are of one kind.
	last       name
	lastNumber uint32
}

func newNames() *names { return &names{numbers: map[name]uint32{}} }

// number must be called with the lock held.
func (s *names) number(typ, text []byte) uint32 {
	if len(s.list) > 0 && string(typ) == s.last.typ && string(text) == s.last.text {
		return s.lastNumber
	}
	n, ok := s.numbers[name{string(typ), string(text)}]
	if !ok {
		n = uint32(len(s.list))
		k := name{string(typ), string(text)}
		s.numbers[k] = n
		s.list = append(s.list, k)
		s.bytes += int64(len(k.typ)+len(k.text)) + 96
	}
	s.last, s.lastNumber = s.list[n], n
	return n
}

func (s *names) all() []name {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list[:len(s.list):len(s.list)]
}

func (s *names) size() int64 {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// builder gathers events into a block.
type builder struct {
	m       *matches
	kind    []uint32 // nil when there is one
	timeMs  []int64
	ordinal []uint32
	value   []int64
	limit   int64
}

func (b *builder) add(from *query.MatchBlock) error {
	b.timeMs = append(b.timeMs, from.TimeMs...)
	b.ordinal = append(b.ordinal, from.Ordinal...)
	for _, o := range from.Ordinal {
		b.m.greatest = max(b.m.greatest, o)
	}
	switch {
	case b.m.kinds != nil:
		s := b.m.kinds
		s.mu.Lock()
		for i := range from.Ordinal {
			var text []byte
			if len(from.Text.Ends) > 0 {
				text = from.Text.At(i)
			}
			b.kind = append(b.kind, s.number(from.Type.At(i), text))
		}
		s.mu.Unlock()
	case b.m.scalars != nil:
		s := b.m.scalars
		s.mu.Lock()
		for i := range from.Ordinal {
			if text := from.Text.At(i); len(text) > 0 {
				b.value = append(b.value, int64(s.number(nil, text)))
			} else {
				b.value = append(b.value, query.NoMicros)
			}
		}
		s.mu.Unlock()
	case from.Micros != nil:
		b.value = append(b.value, from.Micros...)
	}
	if b.bytes()+b.m.bytes > b.limit || len(b.timeMs)+b.m.n > maxMatches {
		return errTooLarge
	}
	return nil
}

func (b *builder) bytes() int64 {
	return int64(len(b.timeMs))*8 + int64(len(b.ordinal))*4 + int64(len(b.value))*8 + int64(len(b.kind))*4 +
		b.m.kinds.size() + b.m.scalars.size()
}

// addBlock adds what another block has.
func (b *builder) addBlock(from *block) {
	for k := range from.kinds() {
		if b.m.kinds != nil {
			for range from.from[k+1] - from.from[k] {
				b.kind = append(b.kind, uint32(k))
			}
		}
	}
	b.timeMs = append(b.timeMs, from.timeMs...)
	b.ordinal = append(b.ordinal, from.ordinal...)
	b.value = append(b.value, from.value...)
}

// block sorts what was gathered.
func (b *builder) block() *block {
	n := len(b.timeMs)
	order := make([]int32, n)
	kinds := 1
	for i := range order {
		order[i] = int32(i)
	}
	if b.kind != nil {
		for _, k := range b.kind {
			kinds = max(kinds, int(k)+1)
		}
	}
	out := &block{from: make([]int32, kinds+1)}
	if b.kind == nil {
		out.from[1] = int32(n)
	} else {
		for _, k := range b.kind {
			out.from[k+1]++
		}
		for k := range kinds {
			out.from[k+1] += out.from[k]
		}
		next := slices.Clone(out.from)
		for i, k := range b.kind {
			order[next[k]] = int32(i)
			next[k]++
		}
	}
	moved := b.kind != nil
	for k := range kinds {
		part := order[out.from[k]:out.from[k+1]]
		byTime := func(i, j int32) int { return cmp.Compare(b.timeMs[i], b.timeMs[j]) }
		if !slices.IsSortedFunc(part, byTime) {
			slices.SortFunc(part, byTime)
			moved = true
		}
	}
	if !moved {
		out.timeMs, out.ordinal, out.value = fitted(b.timeMs), fitted(b.ordinal), fitted(b.value)
		return out
	}
	out.timeMs, out.ordinal = make([]int64, n), make([]uint32, n)
	for i, from := range order {
		out.timeMs[i], out.ordinal[i] = b.timeMs[from], b.ordinal[from]
	}
	if b.value != nil {
		out.value = make([]int64, n)
		for i, from := range order {
			out.value[i] = b.value[from]
		}
	}
	return out
}

// fitted is a slice without much room behind it.
func fitted[T any](s []T) []T {
	if cap(s) > len(s)+len(s)/8 {
		return append(make([]T, 0, len(s)), s...)
	}
	return slices.Clip(s)
}

func (b *block) bytes() int64 {
	return int64(len(b.from))*4 + int64(len(b.timeMs))*8 + int64(len(b.ordinal))*4 + int64(len(b.value))*8
}

// with are the matches with those of later records, nil for none of these.
func (m *matches) with(add *block, greatest uint32, cut int64) *matches {
	out := &matches{cut: cut, afterMs: m.afterMs, kinds: m.kinds, scalars: m.scalars, greatest: max(m.greatest, greatest)}
	out.blocks = m.blocks
	if add != nil {
		out.blocks = append(slices.Clip(m.blocks), add)
	}
	later := 0
	for i, b := range out.blocks {
		if i > 0 {
			later += len(b.timeMs)
		}
	}
	if len(out.blocks) > mergeBlocks || later > 0 && later >= len(out.blocks[0].timeMs)/mergeShare {
		all := builder{m: out}
		for _, b := range out.blocks {
			all.addBlock(b)
		}
		out.blocks = []*block{all.block()}
	}
	out.bytes = out.kinds.size() + out.scalars.size()
	for _, b := range out.blocks {
		out.n += len(b.timeMs)
		out.bytes += b.bytes()
	}
	return out
}

// question is the question to the back end for a key.
type question struct {
	key   string
	epoch uint64
	ask   query.MatchQuery // without From, AfterMs
	// afterMs is the time after which events are needed.
	afterMs int64
	// types are those that make an entry grow.
	types []string
}

// matches are the events below the question's cut. from is the cut of the entry
// that was found, −1 for none: m itself if history was not asked. delta is what
// was added to it, nil for nothing.
func (h *History) matches(ctx context.Context, q *question) (m *matches, delta *block, from int64, err error) {
	e := h.get(q.key, q.epoch)
	base := &matches{afterMs: q.afterMs}
	from = -1
	if e != nil {
		switch {
		case e.tooLarge != nil:
			if q.afterMs <= e.tooLarge.afterMs {
				return nil, nil, 0, errTooLarge
			}
		case e.rows.cut > q.ask.Cut.UpTo:
			return nil, nil, 0, errNotKept
		case e.rows.afterMs <= q.afterMs:
			switch h.tracker.compare(q.ask.Cut, q.ask.Account, q.epoch, e.rows.cut, q.types) {
			case same:
				return e.rows, nil, e.rows.cut, nil
			case grown:
				base, from = e.rows, e.rows.cut
			}
		}
	}
	if from < 0 {
		if q.ask.ByType {
			base.kinds = newNames()
		} else if q.ask.As == query.AsScalar {
			base.scalars = newNames()
		}
	}
	ask := q.ask
	ask.From = max(from, 0)
	if base.afterMs > math.MinInt64 {
		ask.AfterMs = &base.afterMs
	}
	add := builder{m: &matches{kinds: base.kinds, scalars: base.scalars, n: base.n, bytes: base.bytes}, limit: h.entryLimit()}
	if err := h.Backend.Matches(ctx, ask, add.add); err != nil {
		if errors.Is(err, errTooLarge) {
			h.put(&entry{key: q.key, epoch: q.epoch, tooLarge: &tooLarge{afterMs: q.afterMs}})
		}
		return nil, nil, 0, err
	}
	if len(add.timeMs) > 0 {
		delta = add.block()
	}
	m = base.with(delta, add.m.greatest, q.ask.Cut.UpTo)
	h.put(&entry{key: q.key, epoch: q.epoch, bytes: m.bytes, rows: m})
	return m, delta, from, nil
}
