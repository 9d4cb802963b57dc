package resolver

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
)

// noOrdinal is an ordinal no profile has.
const noOrdinal = ^uint32(0)

// maxProfiles bounds the ordinals of an account.
const maxProfiles = 1 << 31

const (
	pageRows   = 256
	headerSize = 32
)

// noEvent is the time of the newest event of a profile that has none.
const noEvent = int64(-1 << 63)

// hasEvent tells such a time from that of an event. 0 has the profile that older
// rules made for the address of a single e-mail.
func hasEvent(lastEvent int64) bool { return lastEvent != noEvent && lastEvent != 0 }

// header is the fixed part of a profile.
type header struct {
	id        ProfileID
	lastEvent int64  // Unix ms of the newest event, by the event's own time; noEvent before the first
	winner    uint32 // own ordinal, or the profile this one was merged into
	flags     uint32 // flagErased
}

// headerPage holds consecutive headers. A page whose epoch is older than the
// table's may be shared with a checkpoint or a snapshot and is copied before
// it is written to.
type headerPage struct {
	epoch uint64
	dirty bool
	rows  [pageRows]header
}

// headerTable is an array of headers indexed by ordinal.
type headerTable struct {
	pages []*headerPage
	n     uint32        // profiles ever made
	epoch atomic.Uint64 // moved on by views, which only share the lock
	dirty []uint32      // pages changed in this generation
}

func (t *headerTable) get(ordinal uint32) *header {
	return &t.pages[ordinal/pageRows].rows[ordinal%pageRows]
}

// edit returns a header to write to.
func (t *headerTable) edit(ordinal uint32) *header {
	i := ordinal / pageRows
	p := t.pages[i]
	if epoch := t.epoch.Load(); p.epoch != epoch {
		c := *p
		c.epoch = epoch
		p = &c
		t.pages[i] = p
	}
	if !p.dirty {
		p.dirty = true
		t.dirty = append(t.dirty, i)
	}
	return &p.rows[ordinal%pageRows]
}

// add makes the header of a new profile.
func (t *headerTable) add() (uint32, *header) {
	o := t.n
	if o%pageRows == 0 {
		t.pages = append(t.pages, &headerPage{epoch: t.epoch.Load()})
	}
	t.n++
	h := t.edit(o)
	h.winner = o
	return o, h
}

// share lets somebody else read the present pages for good: later writes go to
// copies.
func (t *headerTable) share() []*headerPage {
	t.epoch.Add(1)
	return append([]*headerPage(nil), t.pages...)
}

// freeze hands over the pages changed in this generation.
func (t *headerTable) freeze() map[uint32]*headerPage {
	out := make(map[uint32]*headerPage, len(t.dirty))
	for _, i := range t.dirty {
		out[i] = t.pages[i]
		// The copy made by the next edit starts clean; this one is not edited
		// again, because the epoch moves on.
		t.pages[i].dirty = false
	}
	t.dirty = t.dirty[:0]
	t.epoch.Add(1)
	return out
}

func (p *headerPage) append(dst []byte) []byte {
	for i := range p.rows {
		h := &p.rows[i]
		dst = append(dst, h.id[:]...)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(h.lastEvent))
		dst = binary.LittleEndian.AppendUint32(dst, h.winner)
		dst = binary.LittleEndian.AppendUint32(dst, h.flags)
	}
	return dst
}

func decodePage(b []byte) (*headerPage, error) {
	if len(b) != pageRows*headerSize {
		return nil, fmt.Errorf("page of headers has %d bytes, expected %d", len(b), pageRows*headerSize)
	}
	p := new(headerPage)
	for i := range p.rows {
		r, h := b[i*headerSize:], &p.rows[i]
		copy(h.id[:], r)
		h.lastEvent = int64(binary.LittleEndian.Uint64(r[16:]))
		h.winner = binary.LittleEndian.Uint32(r[24:])
		h.flags = binary.LittleEndian.Uint32(r[28:])
	}
	return p, nil
}
