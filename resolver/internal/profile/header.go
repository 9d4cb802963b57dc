package profile

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/musterhq/muster/internal/prefetch"
)

// NoOrdinal is an ordinal no profile has.
const NoOrdinal = ^uint32(0)

// MaxProfiles bounds the ordinals of an account.
const MaxProfiles = 1 << 31

// Headers are stored in pages of PageRows, each encoded in HeaderSize bytes.
const (
	PageRows   = 256
	HeaderSize = 32
)

// NoEvent is the time of the newest event of a profile that has none.
const NoEvent = int64(-1 << 63)

// HasEvent tells such a time from that of an event. 0 has the profile that older
// rules made for the address of a single e-mail.
func HasEvent(lastEvent int64) bool { return lastEvent != NoEvent && lastEvent != 0 }

// Header is the fixed part of a profile.
type Header struct {
	ID        ID
	LastEvent int64  // Unix ms of the newest event, by the event's own time; NoEvent before the first
	Winner    uint32 // own ordinal, or the profile this one was merged into
	Flags     uint32 // bits of the state machine's
}

// HeaderPage holds consecutive headers. A page whose epoch is older than the
// table's may be shared with a checkpoint or a snapshot and is copied before
// it is written to.
type HeaderPage struct {
	epoch uint64
	// changed is one more than the number of freezes before the newest change, 0 before the
	// first change; at is the place in that generation's list of changed pages.
	changed uint64
	at      int
	// newest is 0, or one more than twice the time that NewestEvent answers. Readers
	// write it, too.
	newest int64
	Rows   [PageRows]Header
}

// HeaderTable is an array of headers indexed by ordinal.
type HeaderTable struct {
	// Pages are for reading; Edit copies a page that is shared. Loading fills them.
	Pages   []*HeaderPage
	Count   uint32        // profiles ever made
	epoch   atomic.Uint64 // moved on by views, which only share the lock
	freezes uint64
	changed []ChangedPage // in this generation
}

// ChangedPage is a page that changed in a generation, and its place in the table.
type ChangedPage struct {
	Number uint32
	Page   *HeaderPage
}

// Get returns the header of an existing profile for reading.
func (t *HeaderTable) Get(ordinal uint32) *Header {
	return &t.Pages[ordinal/PageRows].Rows[ordinal%PageRows]
}

// Prefetch brings the header of an existing profile near the processor.
func (t *HeaderTable) Prefetch(ordinal uint32) { prefetch.Line(t.Get(ordinal)) }

// Edit returns a header to write to, until the next call of Share or Freeze.
func (t *HeaderTable) Edit(ordinal uint32) *Header {
	i := ordinal / PageRows
	p := t.Pages[i]
	if epoch := t.epoch.Load(); p.epoch != epoch {
		p = &HeaderPage{epoch: epoch, changed: p.changed, at: p.at, Rows: p.Rows}
		t.Pages[i] = p
		if p.changed == t.freezes+1 {
			t.changed[p.at].Page = p
		}
	} else if atomic.LoadInt64(&p.newest) != 0 {
		atomic.StoreInt64(&p.newest, 0)
	}
	if p.changed != t.freezes+1 {
		p.changed, p.at = t.freezes+1, len(t.changed)
		t.changed = append(t.changed, ChangedPage{i, p})
	}
	return &p.Rows[ordinal%PageRows]
}

// Add makes the header of a new profile and returns its ordinal, too.
func (t *HeaderTable) Add() (uint32, *Header) {
	o := t.Count
	if o%PageRows == 0 {
		t.Pages = append(t.Pages, &HeaderPage{epoch: t.epoch.Load()})
	}
	t.Count++
	h := t.Edit(o)
	h.Winner = o
	return o, h
}

// Share lets another goroutine read the present pages for good: later writes go to
// copies.
func (t *HeaderTable) Share() []*HeaderPage {
	t.epoch.Add(1)
	return append([]*HeaderPage(nil), t.Pages...)
}

// Freeze hands over the pages changed in this generation. It looks at none of them: Apply waits
// for it.
func (t *HeaderTable) Freeze() []ChangedPage {
	out := t.changed
	t.changed = nil
	t.freezes++
	t.epoch.Add(1)
	return out
}

// ChangedPages is the number of pages that Freeze would hand over.
func (t *HeaderTable) ChangedPages() int { return len(t.changed) }

// Append appends the encoded page.
func (p *HeaderPage) Append(dst []byte) []byte {
	for i := range p.Rows {
		h := &p.Rows[i]
		dst = append(dst, h.ID[:]...)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(h.LastEvent))
		dst = binary.LittleEndian.AppendUint32(dst, h.Winner)
		dst = binary.LittleEndian.AppendUint32(dst, h.Flags)
	}
	return dst
}

// DecodePage reads an encoded page. It fails when b has another length.
func DecodePage(b []byte) (*HeaderPage, error) {
	if len(b) != PageRows*HeaderSize {
		return nil, fmt.Errorf("page of headers has %d bytes, expected %d", len(b), PageRows*HeaderSize)
	}
	p := new(HeaderPage)
	for i := range p.Rows {
		r, h := b[i*HeaderSize:], &p.Rows[i]
		copy(h.ID[:], r)
		h.LastEvent = int64(binary.LittleEndian.Uint64(r[16:]))
		h.Winner = binary.LittleEndian.Uint32(r[24:])
		h.Flags = binary.LittleEndian.Uint32(r[28:])
	}
	return p, nil
}

// NewestEvent is not before the time of any profile's last event in the page. It looks at
// the rows once after they changed.
func (p *HeaderPage) NewestEvent() int64 {
	if known := atomic.LoadInt64(&p.newest); known != 0 {
		return known >> 1
	}
	newest := int64(-1) << 61 // times are far from it
	for i := range p.Rows {
		newest = max(newest, p.Rows[i].LastEvent)
	}
	atomic.StoreInt64(&p.newest, newest<<1|1)
	return newest
}
