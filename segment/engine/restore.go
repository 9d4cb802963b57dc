package engine

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/fold"
)

// Restorer puts an engine together from what was written: one with all values,
// then those with later changes, in order.
type Restorer struct {
	catalog catalog
	seats   map[uint32]seat // where the last file has each state
	edit    rowEdit
	page    newPages
	bitmaps map[uint32]frozenBitmap
	pending map[string]*roaring.Bitmap
}

// NewRestorer returns one that has read nothing: its engine is empty.
func NewRestorer() *Restorer { return &Restorer{seats: map[uint32]seat{}} }

const (
	maxBlock = 1 << 30
	// maxOrdinal bounds what a damaged ordinal makes a group grow to, far above
	// the number of profiles that memory holds.
	maxOrdinal = 1 << 29
)

// Read reads what one call of [Frozen.Write] wrote. It returns io.EOF only when
// there is nothing; a Restorer that returned an error is of no use any more.
func (r *Restorer) Read(in *bufio.Reader) error {
	v, err := in.ReadByte()
	if err != nil {
		return err
	}
	if err = r.read(v, in); errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *Restorer) read(v byte, in *bufio.Reader) error {
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
		if int(n) <= in.Buffered() { // as most are: it need not be copied
			b, _ := in.Peek(int(n))
			_, err := in.Discard(int(n))
			return b, err
		}
		// The buffer grows with what is there, not with what is claimed.
		buf = buf[:0]
		for left := int(n); left > 0; {
			at, k := len(buf), min(left, 1<<20)
			buf = slices.Grow(buf, k)[:at+k]
			if _, err := io.ReadFull(in, buf[at:]); err != nil {
				return nil, err
			}
			left -= k
		}
		return buf, nil
	}
	bits := func() (*roaring.Bitmap, error) {
		b, err := block()
		if err != nil || len(b) == 0 {
			return nil, err
		}
		m, err := readBitmap(b)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFormat, err)
		}
		return m, nil
	}
	b, err := block()
	if err != nil {
		return err
	}
	var c catalog
	if err := json.Unmarshal(b, &c); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	r.catalog, r.bitmaps, r.pending = c, map[uint32]frozenBitmap{}, map[string]*roaring.Bitmap{}
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
		r.pending[name], err = bits()
	}
	if err != nil {
		return err
	}
	specs := map[uint32]fold.Spec{}
	for _, s := range c.States {
		specs[s.ID] = s.Spec
	}
	seats := map[uint32]seat{}
	n, err = number()
	for ; err == nil && n > 0; n-- {
		err = r.readGroup(in, number, block, specs, seats)
	}
	r.seats, r.page = seats, newPages{} // which there may be many of
	return err
}

// Engine puts the engine together. universe is all profiles that are not merged
// into another; it is the engine's from here on. What does not go together is
// refused with [ErrFormat].
func (r *Restorer) Engine(universe *roaring.Bitmap) (*Engine, error) {
	e := New()
	c := r.catalog
	if err := c.check(); err != nil {
		return nil, err
	}
	e.universe, e.now, e.done, e.swept, e.shares = universe, c.NowMs, c.NowMs, c.Swept, c.Shares
	if len(c.Anonymous) > 0 {
		var err error
		if e.anonymous, err = readBitmap(c.Anonymous); err != nil {
			return nil, fmt.Errorf("%w: anonymous profiles: %w", ErrFormat, err)
		}
		if e.anonymous.AndCardinality(universe) != e.anonymous.GetCardinality() {
			return nil, fmt.Errorf("%w: anonymous profiles that are none", ErrFormat)
		}
	}
	if c.NextID > 0 {
		e.nextID = c.NextID
	}
	for _, x := range c.States {
		st, err := e.restoreState(x)
		if err != nil {
			return nil, fmt.Errorf("state %d: %w", x.ID, err)
		}
		if err := e.seat(st, r.seats); err != nil {
			return nil, fmt.Errorf("state %d: %w", x.ID, err)
		}
	}
	for _, x := range c.Leaves {
		if err := r.restoreLeaf(e, x); err != nil {
			return nil, fmt.Errorf("leaf %d: %w", x.ID, err)
		}
	}
	e.adopt(c.States)
	for _, x := range c.Segments {
		e.segments[x.ID] = &seg{id: x.ID, pending: roaring.New(), pendingMs: x.PendingMs}
		if m := r.pending[x.ID]; m != nil {
			e.segments[x.ID].pending = m
			e.hasPending = true
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
			root, err := e.parseRefs(d.text)
			if err != nil {
				return nil, fmt.Errorf("segment %s: %w", x.ID, err)
			}
			*d.dst = e.compile(root, 0, func(string) bool { return true })
		}
	}
	if e.nextID != max(c.NextID, 1) {
		return nil, fmt.Errorf("%w: a definition has leaves that were not stored", ErrFormat)
	}
	if err := e.checkRestored(); err != nil {
		return nil, err
	}
	e.arrange()
	for _, s := range e.byRank {
		if s.live != nil {
			s.members = s.live.all(e.universe, e.anonymous)
		}
	}
	return e, nil
}

func (e *Engine) restoreState(x stateEntry) (*state, error) {
	if len(x.Source) == 0 {
		st := &state{id: x.ID, spec: x.Spec, fold: fold.Spec{Kind: fold.KindSpans}.New()}
		e.states[x.ID] = st
		st.live, st.since = true, x.Since
		return st, nil
	}
	n, err := segment.Parse(x.Source, segment.Stored())
	if err != nil {
		return nil, err
	}
	if n.Kind != segment.KindActivity || x.Spec.New() == nil {
		return nil, ErrFormat
	}
	st := e.newState(x.ID, e.source(n.Activity), x.Spec, x.Since)
	st.live, st.cursor, st.upTo = x.Live, x.Cursor, x.UpTo
	return st, nil
}

func (r *Restorer) restoreLeaf(e *Engine, x leafEntry) error {
	n, err := segment.Parse(x.Node, segment.Stored())
	if err != nil {
		return err
	}
	if err := checkLeaf(n); err != nil {
		return err
	}
	l := newLeaf(x.ID, n.Key(), n)
	if e.leaves[l.key] != nil {
		return fmt.Errorf("%w: it is there twice", ErrFormat)
	}
	l.ready, l.cursor = x.Ready, x.Cursor
	e.leaves[l.key], e.byID[l.id] = l, l
	if b, ok := r.bitmaps[x.ID]; ok {
		if b.diff != nil {
			l.diff = b.diff
		}
		l.seen = b.seen
	}
	if l.ready {
		l.seen = nil
	} else if l.seen == nil && n.Kind != segment.KindActivity {
		l.seen = roaring.New()
	}
	st := e.states[x.State]
	if err := l.checkState(st); err != nil {
		return err
	}
	if st == nil {
		return nil
	}
	windowMs := l.WindowMs
	if n.Kind == segment.KindAttribute {
		windowMs = n.Attribute.Predicate.WindowMs
	}
	e.attach(l, st, windowMs)
	return nil
}
