package engine

// rowEdit changes one row, section by section in order of slots. What stood in
// the row stays as it was until finish, which writes the new row, if it is
// another. The group must not be changed otherwise meanwhile.
type rowEdit struct {
	g       *group
	o       uint32
	rest    []byte // of the old row
	row     []byte // the new one so far; its room is kept from edit to edit
	changed bool
}

func (ed *rowEdit) begin(g *group, o uint32) {
	ed.g, ed.o, ed.rest, ed.row, ed.changed = g, o, g.row(o), ed.row[:0], false
}

// take copies the sections before a slot and takes out what stands there: a
// value in the row, which must not be changed, or one that is kept elsewhere,
// which may be and is given back with putBig. Both are nil when there is none.
func (ed *rowEdit) take(slot uint8) (v []byte, big *bigValue) {
	i, rest := 0, ed.rest
	for i < len(rest) && rest[i] < slot {
		i += sectionHead + int(rest[i+1])
	}
	ed.row = append(ed.row, rest[:i]...)
	if i == len(rest) || rest[i] != slot {
		ed.rest = rest[i:]
		return nil, nil
	}
	n := i + sectionHead + int(rest[i+1])
	ed.rest = rest[n:]
	if v = rest[i+sectionHead : n : n]; len(v) == 0 {
		return nil, ed.g.ownBig(slot, ed.o)
	}
	return v, nil
}

// room is a copy of a value that was taken, which may be changed and grown and
// is given back with put. It is where put writes, so that most values are not
// copied again.
func (ed *rowEdit) room(v []byte) []byte {
	at := len(ed.row) + sectionHead
	ed.row = append(append(ed.row, 0, 0), v...)
	out := ed.row[at:]
	ed.row = ed.row[:at-sectionHead]
	return out
}

// put gives a slot, of which old was taken, another value; an empty one says
// that there is none. changed reports whether it differs from the old one.
func (ed *rowEdit) put(slot uint8, old, v []byte, changed bool) {
	if changed && len(old)+len(v) > 0 {
		ed.changed = true
		ed.g.counts[slot] += boolInt(len(v) > 0) - boolInt(len(old) > 0)
	}
	switch {
	case len(v) == 0:
	case changed && len(v) > maxInline:
		ed.g.addBig(slot, ed.o, v)
		ed.row = append(ed.row, slot, 0)
	default:
		ed.row = append(append(ed.row, slot, byte(len(v))), v...)
	}
}

// putBig gives back a big value that was taken and became v.
func (ed *rowEdit) putBig(slot uint8, big *bigValue, v []byte) {
	ed.changed = true
	if len(v) > maxInline {
		ed.g.size += int64(cap(v) - cap(big.b))
		big.b = v
		ed.row = append(ed.row, slot, 0)
		return
	}
	ed.g.dropBig(slot, ed.o)
	ed.g.counts[slot] += boolInt(len(v) > 0) - 1
	if len(v) > 0 {
		ed.row = append(append(ed.row, slot, byte(len(v))), v...)
	}
}

// finish writes the row, if it changed.
func (ed *rowEdit) finish() {
	if row, changed := ed.result(); changed {
		ed.g.put(ed.o, row)
	}
}

// result is the new row, if it changed.
func (ed *rowEdit) result() (row []byte, changed bool) {
	if ed.changed {
		ed.row = append(ed.row, ed.rest...)
	}
	return ed.row, ed.changed
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
