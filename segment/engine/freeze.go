package engine

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
)

// formatVersion is the version of the layout written; docs/formats.md
// describes it.
const formatVersion = 1

// catalog is what an engine consists of, beside values and bitmaps.
type catalog struct {
	NowMs    int64          `json:"now_ms"`
	NextID   uint32         `json:"next_id"`
	States   []stateEntry   `json:"states"`
	Leaves   []leafEntry    `json:"leaves"`
	Segments []segmentEntry `json:"segments"`
}

type stateEntry struct {
	ID uint32 `json:"id"`
	// Source is an activity condition with the event and the filters; empty for
	// timed attributes.
	Source json.RawMessage `json:"source,omitempty"`
	Spec   spec            `json:"spec"`
	Live   bool            `json:"live"`
	Since  int64           `json:"since"`
	Cursor uint32          `json:"cursor"`
	UpTo   uint32          `json:"up_to"`
}

type leafEntry struct {
	ID     uint32          `json:"id"`
	Node   json.RawMessage `json:"node"`
	State  uint32          `json:"state,omitempty"`
	Ready  bool            `json:"ready"`
	Cursor uint32          `json:"cursor"`
}

type segmentEntry struct {
	ID   string          `json:"id"`
	Live json.RawMessage `json:"live,omitempty"`
	Next json.RawMessage `json:"next,omitempty"`
}

func (e *Engine) catalog() catalog {
	c := catalog{NowMs: e.now, NextID: e.nextID}
	for _, st := range e.byState {
		x := stateEntry{ID: st.id, Spec: st.spec, Live: st.live, Since: st.since, Cursor: st.cursor, UpTo: st.upTo}
		if st.source != nil {
			x.Source = json.RawMessage(st.source.key)
		}
		c.States = append(c.States, x)
	}
	for _, l := range e.byID {
		x := leafEntry{ID: l.id, Node: l.node.Canonical(), Ready: l.ready, Cursor: l.cursor}
		if l.state != nil {
			x.State = l.state.id
		}
		c.Leaves = append(c.Leaves, x)
	}
	slices.SortFunc(c.Leaves, func(a, b leafEntry) int { return int(int64(a.ID) - int64(b.ID)) })
	for _, id := range e.sortedIDs() {
		s := e.segments[id]
		x := segmentEntry{ID: id}
		if s.live != nil {
			x.Live = s.live.root.Canonical()
		}
		if s.next != nil {
			x.Next = s.next.root.Canonical()
		}
		c.Segments = append(c.Segments, x)
	}
	return c
}

// Frozen is the engine at one instant. It may be written while the engine goes
// on changing.
type Frozen struct {
	catalog catalog
	bitmaps []frozenBitmap
	owed    []frozenOwed
	tables  []frozenTable
	ids     []uint32
}

type frozenBitmap struct {
	leaf       uint32
	diff, seen *roaring.Bitmap // seen is nil for a leaf that is ready
}

type frozenOwed struct {
	id   string
	bits *roaring.Bitmap
}

// Freeze hands over all values, or those that changed since the last freeze,
// and everything else. The engine must not lag ([Engine.Lagging]).
func (e *Engine) Freeze(all bool) *Frozen {
	f := &Frozen{catalog: e.catalog()}
	for _, l := range e.profile {
		if l.state != nil && l.ready {
			continue // follows from the values
		}
		b := frozenBitmap{leaf: l.id, diff: l.diff.Clone()}
		if l.seen != nil {
			b.seen = l.seen.Clone()
		}
		f.bitmaps = append(f.bitmaps, b)
	}
	for _, id := range e.sortedIDs() {
		if s := e.segments[id]; !s.owed.IsEmpty() {
			f.owed = append(f.owed, frozenOwed{id, s.owed.Clone()})
		}
	}
	for _, st := range e.byState {
		f.tables = append(f.tables, st.table.freeze(all))
		f.ids = append(f.ids, st.id)
	}
	return f
}

// Write writes what was frozen.
func (f *Frozen) Write(w *bufio.Writer) error {
	head, err := json.Marshal(f.catalog)
	if err != nil {
		return err
	}
	block := func(b []byte) error {
		var n [binary.MaxVarintLen64]byte
		if _, err := w.Write(binary.AppendUvarint(n[:0], uint64(len(b)))); err != nil {
			return err
		}
		_, err := w.Write(b)
		return err
	}
	number := func(n uint64) error {
		var b [binary.MaxVarintLen64]byte
		_, err := w.Write(binary.AppendUvarint(b[:0], n))
		return err
	}
	bits := func(m *roaring.Bitmap) error {
		if m == nil {
			return block(nil)
		}
		b, err := m.MarshalBinary()
		if err != nil {
			return err
		}
		return block(b)
	}
	if err := w.WriteByte(formatVersion); err != nil {
		return err
	}
	if err := block(head); err != nil {
		return err
	}
	if err := number(uint64(len(f.bitmaps))); err != nil {
		return err
	}
	for _, b := range f.bitmaps {
		if err := number(uint64(b.leaf)); err != nil {
			return err
		}
		if err := bits(b.diff); err != nil {
			return err
		}
		if err := bits(b.seen); err != nil {
			return err
		}
	}
	if err := number(uint64(len(f.owed))); err != nil {
		return err
	}
	for _, o := range f.owed {
		if err := block([]byte(o.id)); err != nil {
			return err
		}
		if err := bits(o.bits); err != nil {
			return err
		}
	}
	if err := number(uint64(len(f.tables))); err != nil {
		return err
	}
	for i := range f.tables {
		if err := number(uint64(f.ids[i])); err != nil {
			return err
		}
		// Each value as the distance from the last ordinal, from 1, and a block;
		// the block of one that is gone is empty. 0 ends the list.
		last := int64(-1)
		err := f.tables[i].each(func(o uint32, v []byte) error {
			if err := number(uint64(int64(o) - last)); err != nil {
				return err
			}
			last = int64(o)
			return block(v)
		})
		if err != nil {
			return err
		}
		if err := number(0); err != nil {
			return err
		}
	}
	return nil
}

// Restorer puts an engine together from what was written: one with all values,
// then those with later changes, in order.
type Restorer struct {
	catalog catalog
	tables  map[uint32]*table
	bitmaps map[uint32]frozenBitmap
	owed    map[string]*roaring.Bitmap
}

// NewRestorer returns one that has read nothing: its engine is empty.
func NewRestorer() *Restorer { return &Restorer{tables: map[uint32]*table{}} }

// maxBlock bounds what a damaged file can make Read allocate.
const maxBlock = 1 << 30

// Read reads what one call of [Frozen.Write] wrote.
func (r *Restorer) Read(in *bufio.Reader) error {
	v, err := in.ReadByte()
	if err != nil {
		return err
	}
	if v != formatVersion {
		return fmt.Errorf("%w: version %d of segment state, this build knows %d", ErrFormat, v, formatVersion)
	}
	var buf []byte
	number := func() (uint64, error) { return binary.ReadUvarint(in) }
	block := func() ([]byte, error) {
		n, err := number()
		if err != nil {
			return nil, err
		}
		if n > maxBlock {
			return nil, fmt.Errorf("%w: a block of %d bytes", ErrFormat, n)
		}
		buf = slices.Grow(buf[:0], int(n))[:n]
		_, err = io.ReadFull(in, buf)
		return buf, err
	}
	bits := func() (*roaring.Bitmap, error) {
		b, err := block()
		if err != nil || len(b) == 0 {
			return nil, err
		}
		m := roaring.New()
		return m, m.UnmarshalBinary(b)
	}
	b, err := block()
	if err != nil {
		return err
	}
	var c catalog
	if err := json.Unmarshal(b, &c); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	r.catalog, r.bitmaps, r.owed = c, map[uint32]frozenBitmap{}, map[string]*roaring.Bitmap{}
	n, err := number()
	for ; err == nil && n > 0; n-- {
		var id uint64
		x := frozenBitmap{}
		if id, err = number(); err != nil {
			break
		}
		if x.diff, err = bits(); err != nil {
			break
		}
		x.seen, err = bits()
		r.bitmaps[uint32(id)] = x
	}
	if err != nil {
		return err
	}
	n, err = number()
	for ; err == nil && n > 0; n-- {
		var id []byte
		if id, err = block(); err != nil {
			break
		}
		name := string(id)
		r.owed[name], err = bits()
	}
	if err != nil {
		return err
	}
	sizes := map[uint32]spec{}
	for _, s := range c.States {
		sizes[s.ID] = s.Spec
	}
	n, err = number()
	for ; err == nil && n > 0; n-- {
		err = r.readTable(number, block, sizes)
	}
	return err
}

func (r *Restorer) readTable(number func() (uint64, error), block func() ([]byte, error), specs map[uint32]spec) error {
	id, err := number()
	if err != nil {
		return err
	}
	sp, ok := specs[uint32(id)]
	f := sp.newFold()
	if !ok || f == nil {
		return fmt.Errorf("%w: state %d is of no known kind", ErrFormat, id)
	}
	t := r.tables[uint32(id)]
	if t == nil {
		x := newTable(f.size())
		t = &x
		r.tables[uint32(id)] = t
	}
	for o := int64(-1); ; {
		d, err := number()
		if err != nil || d == 0 {
			return err
		}
		if o += int64(d); d > 1<<32 || o >= 1<<32 {
			return fmt.Errorf("%w: ordinal %d", ErrFormat, o)
		}
		v, err := block()
		if err != nil {
			return err
		}
		switch {
		case len(v) == 0:
			t.remove(uint32(o))
		case !f.valid(v):
			return fmt.Errorf("%w: value of profile %d in state %d", ErrFormat, o, id)
		default:
			t.set(uint32(o), v)
		}
	}
}

// Engine puts the engine together. universe is all profiles that are not merged
// into another; it is the engine's from here on.
func (r *Restorer) Engine(universe *roaring.Bitmap) (*Engine, error) {
	e := New()
	c := r.catalog
	e.universe, e.now, e.done = universe, c.NowMs, c.NowMs
	if c.NextID > 0 {
		e.nextID = c.NextID
	}
	for _, x := range c.States {
		st, err := e.restoreState(x)
		if err != nil {
			return nil, fmt.Errorf("state %d: %w", x.ID, err)
		}
		if t := r.tables[x.ID]; t != nil {
			st.table = *t
			st.table.freeze(false) // nothing has changed yet
		}
	}
	for _, x := range c.Leaves {
		if err := r.restoreLeaf(e, x); err != nil {
			return nil, fmt.Errorf("leaf %d: %w", x.ID, err)
		}
	}
	for _, x := range c.Segments {
		e.segments[x.ID] = &seg{id: x.ID, owed: roaring.New()}
		if m := r.owed[x.ID]; m != nil {
			e.segments[x.ID].owed = m
			e.owes = true
		}
	}
	for _, x := range c.Segments {
		s := e.segments[x.ID]
		for _, d := range []struct {
			text json.RawMessage
			dst  **program
		}{{x.Live, &s.live}, {x.Next, &s.next}} {
			if len(d.text) == 0 {
				continue
			}
			root, err := segment.Parse(d.text, segment.Limits{})
			if err != nil {
				return nil, fmt.Errorf("segment %s: %w", x.ID, err)
			}
			*d.dst = e.compile(root, 0, func(string) bool { return true })
		}
	}
	if e.nextID != max(c.NextID, 1) {
		return nil, fmt.Errorf("%w: a definition has leaves that were not stored", ErrFormat)
	}
	e.arrange()
	for _, s := range e.byRank {
		if s.live != nil {
			s.members = s.live.tree.all(e.universe)
		}
	}
	return e, nil
}

func (e *Engine) restoreState(x stateEntry) (*state, error) {
	if len(x.Source) == 0 {
		st := &state{id: x.ID, spec: x.Spec, fold: spansFold{}, table: newTable(0)}
		e.states[x.ID] = st
		st.live, st.since = x.Live, x.Since
		return st, nil
	}
	n, err := segment.Parse(x.Source, segment.Limits{})
	if err != nil {
		return nil, err
	}
	if n.Kind != segment.KindActivity || x.Spec.newFold() == nil {
		return nil, ErrFormat
	}
	st := e.newState(x.ID, e.source(n.Activity), x.Spec, x.Since)
	st.live, st.cursor, st.upTo = x.Live, x.Cursor, x.UpTo
	return st, nil
}

func (r *Restorer) restoreLeaf(e *Engine, x leafEntry) error {
	n, err := segment.Parse(x.Node, segment.Limits{})
	if err != nil {
		return err
	}
	l := newLeaf(x.ID, n.Key(), n)
	l.ready, l.cursor = x.Ready, x.Cursor
	e.leaves[l.key], e.byID[l.id] = l, l
	if b, ok := r.bitmaps[x.ID]; ok {
		if b.diff != nil {
			l.diff = b.diff
		}
		l.seen = b.seen
	}
	if x.State == 0 {
		return nil
	}
	st := e.states[x.State]
	if st == nil {
		return fmt.Errorf("%w: state %d is not there", ErrFormat, x.State)
	}
	windowMs := l.windowMs
	if n.Kind == segment.KindAttribute {
		windowMs = n.Attribute.Predicate.WindowMs
	}
	e.attach(l, st, windowMs)
	st.table.each(0, func(o uint32, v []byte) bool {
		if l.holds(v, e.now) != l.base {
			l.diff.Add(o)
		}
		if d := l.due(v, e.now); d != never {
			e.schedule(l, o, d)
		}
		return true
	})
	return nil
}
