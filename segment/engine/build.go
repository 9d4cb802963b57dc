package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/wire"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/fold"
)

// Work is something the engine needs from outside to finish a definition:
// either the past events of a state, or what the profiles look like to some
// leaves. It is answered by chunks, made by a [Loader] or a [Scanner], that come
// back through [Engine.Load] as records of the log.
type Work struct {
	State *StateWork
	Scan  *ScanWork
}

// StateWork asks for the past events of a state.
type StateWork struct {
	ID uint32
	// Event and Where say which events. Where leaves out filters that depend on
	// the instant.
	Event string
	Where []segment.Predicate
	// Properties reports whether the properties of events are needed.
	Properties bool
	// Number, when set, is the path of a property whose number is all that is needed of them.
	Number []string
	// UpTo is the offset up to which history is asked: events of later records
	// came in by themselves.
	UpTo int64
	// AfterMs, when set, leaves out older events.
	AfterMs *int64
	// Cursor is the first ordinal that is not loaded.
	Cursor uint32

	spec   fold.Spec
	source *source
	nowMs  int64
}

// ScanWork asks what profiles look like to leaves on their fields.
type ScanWork struct {
	Leaves []uint32
	Cursor uint32 // the first ordinal that is not judged

	nodes []*segment.Node
	nowMs int64
}

// Work returns the first thing that is needed, if any: profiles before events,
// because history may be slow or away.
//
// skip reports the states that are to be passed over for now, because what they
// need cannot be had.
func (e *Engine) Work(skip func(state uint32) bool) (Work, bool) {
	if s := e.scanWork(); len(s.Leaves) > 0 {
		return Work{Scan: s}, true
	}
	for _, st := range e.byState {
		if !st.live && !skip(st.id) {
			return Work{State: e.stateWork(st)}, true
		}
	}
	return Work{}, false
}

// scanWork is for the leaves on profiles that stand at the same place.
func (e *Engine) scanWork() *ScanWork {
	s := &ScanWork{nowMs: e.now}
	for _, l := range e.profile {
		if l.ready || len(s.Leaves) > 0 && l.cursor != s.Cursor {
			continue
		}
		s.Cursor = l.cursor
		s.Leaves = append(s.Leaves, l.id)
		s.nodes = append(s.nodes, l.node)
	}
	return s
}

func (e *Engine) stateWork(st *state) *StateWork {
	w := &StateWork{
		ID: st.id, Event: st.source.event, UpTo: st.since, Cursor: st.cursor,
		spec: st.spec, source: st.source, nowMs: e.now,
	}
	if st.spec.Numbers() && !st.source.timed {
		w.Number = st.spec.Path()
	} else {
		w.Properties = st.property != nil || st.source.timed
	}
	for _, p := range st.source.where {
		if !p.Timed() {
			w.Where = append(w.Where, p)
		}
	}
	if st.spec.WindowMs > 0 {
		after := e.now - st.spec.WindowMs
		w.AfterMs = &after
	}
	return w
}

// Working reports whether Continue has something to do, which needs nothing from
// outside.
func (e *Engine) Working() bool {
	return e.Lagging() || e.hasPending || e.building && e.judging() != nil
}

// judging is the first leaf whose state's values are still to be judged.
func (e *Engine) judging() *leaf {
	for _, st := range e.byState {
		for _, l := range st.leaves {
			if st.source != nil && !l.ready && l.cursor != ^uint32(0) {
				return l
			}
		}
	}
	return nil
}

// lookCost is how many values are looked at for one unit of a budget.
const lookCost = 8

// Continue works on what was begun: due changes, leaves to be judged and pending
// transitions, up to the budget.
func (e *Engine) Continue(budget int) {
	if !e.Advance(e.now, budget) {
		return
	}
	for l := e.judging(); l != nil && budget > 0; l = e.judging() {
		budget = e.judgeSome(l, budget)
	}
	e.promote()
	e.announceSome(budget)
}

// judgeSome judges values that the leaf's state had before the leaf.
func (e *Engine) judgeSome(l *leaf, budget int) int {
	left := budget * lookCost
	st := l.state
	next := ^uint32(0)
	st.each(l.cursor, func(o uint32, v []byte) bool {
		if left == 0 {
			next = o
			return false
		}
		left--
		l.set(o, l.holds(v, e.now))
		if d := l.due(v, e.now); d != never {
			e.schedule(l, o, d)
		}
		return true
	})
	l.cursor = next
	if next == ^uint32(0) {
		if st.live {
			l.finish()
		}
		return max(left/lookCost, 0)
	}
	return 0
}

// The kinds of chunks, on disk.
const (
	chunkState = 1
	chunkScan  = 2
)

// ErrFormat means that stored state is not of a known layout.
var ErrFormat = errors.New("segment state has a bad format")

// ErrChunk means that a chunk's bytes are not of a known layout.
var ErrChunk = errors.New("chunk of a segment's past has a bad format")

// Load takes in a chunk. root returns into which profile one was merged; it may be
// asked about ordinals that there are not. A chunk that does not continue where the
// last one ended is passed over: it was made by a node that did not know better.
// One that is refused with [ErrChunk] changes nothing.
func (e *Engine) Load(chunk []byte, root func(o uint32) uint32) error {
	r := wire.Reader{B: chunk}
	kind := r.U8()
	var err error
	switch kind {
	case chunkState:
		err = e.loadState(&r, root)
	case chunkScan:
		err = e.loadScan(&r)
	default:
		err = fmt.Errorf("%w: kind %d", ErrChunk, kind)
	}
	if err == nil {
		e.promote()
	}
	return err
}

func (e *Engine) loadState(r *wire.Reader, root func(uint32) uint32) error {
	id, from, to := r.U32(), r.U32(), r.U32()
	final := r.U8()
	if r.Bad || !validBounds(from, to, final) {
		return ErrChunk
	}
	st := e.states[id]
	if st == nil || st.live || st.cursor != from {
		return nil
	}
	// Nothing is changed before all is understood.
	check := *r
	if err := entries(&check, func(o uint32, v []byte) error {
		if o < from || final == 0 && o >= to || !st.fold.Valid(v) {
			return fmt.Errorf("%w: value of profile %d", ErrChunk, o)
		}
		return nil
	}); err != nil {
		return err
	}
	if len(check.B) > 0 {
		return fmt.Errorf("%w: %d bytes too many", ErrChunk, len(check.B))
	}
	err := entries(r, func(o uint32, v []byte) error {
		if o = root(o); !e.universe.Contains(o) {
			return nil
		}
		e.Touch(o)
		e.change(st, o, segment.CauseDefinition, func(have []byte) []byte { return st.fold.Union(have, v, e.now) })
		e.Evaluate(o) // no segment depends on the state yet
		return nil
	})
	st.cursor = to
	if final == 1 {
		st.live = true
		for _, l := range st.leaves {
			if l.cursor == ^uint32(0) {
				l.finish()
			}
		}
		if e.takeOver(st) {
			e.arrange()
		}
	}
	return err
}

// validBounds reports whether a chunk's bounds can be: the last one has no end.
func validBounds(from, to uint32, final byte) bool {
	return from < to && final <= 1 && (final == 1) == (to == ^uint32(0))
}

// scanned is what a chunk says of one leaf: the profiles that differ, or the
// entries of a timed attribute.
type scanned struct {
	leaf   *leaf // nil when it is not wanted
	differ *roaring.Bitmap
	spans  wire.Reader
}

func (e *Engine) loadScan(r *wire.Reader) error {
	from, to := r.U32(), r.U32()
	final := r.U8()
	n := r.Uvarint()
	if r.Bad || !validBounds(from, to, final) || n > uint64(len(r.B)) {
		return ErrChunk
	}
	// Nothing is changed before all is understood.
	parts := make([]scanned, 0, min(n, 1024))
	for range n {
		p, err := e.readScanned(r, from, to, final == 1)
		if err != nil {
			return err
		}
		parts = append(parts, p)
	}
	if len(r.B) > 0 {
		return fmt.Errorf("%w: %d bytes too many", ErrChunk, len(r.B))
	}
	for _, p := range parts {
		l := p.leaf
		if l == nil || l.ready || l.cursor != from {
			continue
		}
		if p.differ != nil {
			p.differ.AndNot(l.seen)
			p.differ.And(e.universe)
			l.diff.Or(p.differ)
		} else {
			err := entries(&p.spans, func(o uint32, v []byte) error {
				if e.universe.Contains(o) && !l.seen.Contains(o) {
					e.change(l.state, o, segment.CauseDefinition, func([]byte) []byte { return append([]byte(nil), v...) })
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		l.cursor = to
		if final == 1 {
			l.finish()
		}
	}
	return nil
}

// readScanned reads and checks what a chunk says of one leaf.
func (e *Engine) readScanned(r *wire.Reader, from, to uint32, final bool) (scanned, error) {
	id := r.U32()
	timed := r.U8()
	if r.Bad || timed > 1 {
		return scanned{}, ErrChunk
	}
	var p scanned
	if l := e.byID[id]; l != nil && !l.ready && l.seen != nil && (timed == 1) == (l.state != nil) {
		p.leaf = l
	}
	inside := func(o uint32) bool { return o >= from && (final || o < to) }
	if timed == 1 {
		p.spans = *r
		kept := fold.Spec{Kind: fold.KindSpans}.New()
		return p, entries(r, func(o uint32, v []byte) error {
			if !inside(o) || !kept.Valid(v) {
				return fmt.Errorf("%w: value of profile %d", ErrChunk, o)
			}
			return nil
		})
	}
	var err error
	if p.differ, err = readBitmap(r.Block()); err != nil || r.Bad {
		return scanned{}, fmt.Errorf("%w: bitmap of leaf %d: %w", ErrChunk, id, err)
	}
	if !p.differ.IsEmpty() && !(inside(p.differ.Minimum()) && inside(p.differ.Maximum())) {
		return scanned{}, fmt.Errorf("%w: a bitmap from %d to %d", ErrChunk, p.differ.Minimum(), p.differ.Maximum())
	}
	return p, nil
}

// readBitmap reads a bitmap that takes all of b, which may come from anywhere.
func readBitmap(b []byte) (*roaring.Bitmap, error) {
	m := roaring.New()
	n, err := m.ReadFrom(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	if n != int64(len(b)) {
		return nil, fmt.Errorf("%d of %d bytes are a bitmap", n, len(b))
	}
	if m.IsEmpty() {
		return m, nil
	}
	return m, m.Validate()
}

// Progress is how much of a segment's newest definition is built, from 0 to 1,
// and whether it is live.
func (e *Engine) Progress(id string) (progress float64, live bool) {
	s := e.segments[id]
	if s == nil || s.next == nil {
		return 1, s != nil
	}
	if len(s.next.leaves) == 0 {
		return 0, false
	}
	sum := 0.0
	for _, l := range s.next.leaves {
		sum += e.leafProgress(l)
	}
	return sum / float64(len(s.next.leaves)), false
}

func (e *Engine) leafProgress(l *leaf) float64 {
	part := func(cursor, of uint32) float64 {
		if of == 0 {
			return 0
		}
		return min(float64(cursor)/float64(of), 0.99)
	}
	switch {
	case l.ready:
		return 1
	case l.state != nil && l.state.source != nil && !l.state.live:
		return part(l.state.cursor, l.state.upTo)
	case e.universe.IsEmpty():
		return 0
	}
	return part(l.cursor, e.universe.Maximum()+1)
}

// entries reads a list of ordinals, each greater than the one before, with
// their values; an empty value says that there is none.
func entries(r *wire.Reader, fn func(o uint32, v []byte) error) error {
	n := r.Uvarint()
	o := uint64(0)
	for i := uint64(0); i < n && !r.Bad; i++ {
		d := r.Uvarint()
		v := r.Block()
		if o += d; r.Bad || i > 0 && d == 0 || o > 1<<32-1 {
			return ErrChunk
		}
		if err := fn(uint32(o), v); err != nil {
			return err
		}
	}
	if r.Bad {
		return ErrChunk
	}
	return nil
}

// entryWriter writes what entries reads, but for the count.
type entryWriter struct {
	b    []byte
	n    uint64
	last uint32
}

func (w *entryWriter) add(o uint32, v []byte) {
	w.b = binary.AppendUvarint(w.b, uint64(o-w.last))
	w.b = binary.AppendUvarint(w.b, uint64(len(v)))
	w.b = append(w.b, v...)
	w.last = o
	w.n++
}

// Wants reports whether one of these states or leaves, by their numbers, still
// needs something from outside.
func (e *Engine) Wants(ids []uint32) bool {
	for _, id := range ids {
		if st := e.states[id]; st != nil && !st.live {
			return true
		}
		if l := e.byID[id]; l != nil && !l.ready {
			return true
		}
	}
	return false
}
