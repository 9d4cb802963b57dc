package engine

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment/engine/internal/fold"
)

// formatVersion is the version of the layout written; docs/formats.md
// describes it.
const formatVersion = 2

// catalog is what an engine consists of, beside values and bitmaps.
type catalog struct {
	NowMs  int64   `json:"now_ms"`
	NextID uint32  `json:"next_id"`
	Swept  sweeper `json:"swept"`
	// Shares says that windows share states, see [Engine.ShareWindows].
	Shares   bool           `json:"shares,omitempty"`
	States   []stateEntry   `json:"states"`
	Leaves   []leafEntry    `json:"leaves"`
	Segments []segmentEntry `json:"segments"`
	// Anonymous is the profiles of which nothing says who they are, as a Roaring bitmap;
	// empty for none.
	Anonymous []byte `json:"anonymous,omitempty"`
}

type stateEntry struct {
	ID uint32 `json:"id"`
	// Source is an activity condition with the event and the filters; empty for
	// timed attributes.
	Source json.RawMessage `json:"source,omitempty"`
	Spec   fold.Spec       `json:"spec"`
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
	// PendingMs is since when transitions are pending.
	PendingMs int64 `json:"owed_ms,omitempty"`
}

func (e *Engine) catalog() catalog {
	c := catalog{NowMs: e.now, NextID: e.nextID, Swept: e.swept, Shares: e.shares}
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
		x := segmentEntry{ID: id, PendingMs: s.pendingMs}
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
	pending []frozenPending
	groups  []frozenGroup
	// anonymous is part of the catalog as it is written; nil for none.
	anonymous *roaring.Bitmap
}

type frozenBitmap struct {
	leaf       uint32
	diff, seen *roaring.Bitmap // seen is nil for a leaf that is ready
}

type frozenPending struct {
	id   string
	bits *roaring.Bitmap
}

// Freeze hands over all values, or those that changed since the last freeze,
// and everything else. The engine must not lag ([Engine.Lagging]).
func (e *Engine) Freeze(all bool) *Frozen {
	f := &Frozen{catalog: e.catalog()}
	if !e.anonymous.IsEmpty() {
		f.anonymous = e.anonymous.Clone()
	}
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
		if s := e.segments[id]; !s.pending.IsEmpty() {
			f.pending = append(f.pending, frozenPending{id, s.pending.Clone()})
		}
	}
	for _, st := range e.byState {
		if st == st.group.live[0] {
			f.groups = append(f.groups, st.group.freeze(all))
		}
	}
	return f
}

// Write writes what was frozen.
func (f *Frozen) Write(w *bufio.Writer) error {
	if f.anonymous != nil {
		b, err := f.anonymous.MarshalBinary()
		if err != nil {
			return err
		}
		f.catalog.Anonymous = b
	}
	head, err := json.Marshal(f.catalog)
	if err != nil {
		return err
	}
	number := func(n uint64) error {
		_, err := w.Write(binary.AppendUvarint(w.AvailableBuffer(), n))
		return err
	}
	block := func(b []byte) error {
		if err := number(uint64(len(b))); err != nil {
			return err
		}
		_, err := w.Write(b)
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
	if err := number(uint64(len(f.pending))); err != nil {
		return err
	}
	for _, o := range f.pending {
		if err := block([]byte(o.id)); err != nil {
			return err
		}
		if err := bits(o.bits); err != nil {
			return err
		}
	}
	if err := number(uint64(len(f.groups))); err != nil {
		return err
	}
	for i := range f.groups {
		if err := f.groups[i].write(w, number, block); err != nil {
			return err
		}
	}
	return nil
}
