package catalog

import "slices"

// profiles are those that something was seen with: the newest maxProfiles.
type profiles struct {
	n      uint8
	others bool                // there were more
	list   [maxProfiles]uint32 // distinct ordinals, the oldest first
}

func (p *profiles) add(ordinal uint32) {
	if slices.Contains(p.list[:p.n], ordinal) {
		return
	}
	if p.n == maxProfiles {
		copy(p.list[:], p.list[1:])
		p.others = true
		p.n--
	}
	p.list[p.n] = ordinal
	p.n++
}

// remove takes profiles out and reports whether some of them were there.
func (p *profiles) remove(gone func(ordinal uint32) bool) bool {
	kept := profiles{others: p.others}
	for _, o := range p.list[:p.n] {
		if !gone(o) {
			kept.list[kept.n] = o
			kept.n++
		}
	}
	was := *p
	*p = kept
	return was != kept
}

// Erase removes profiles, and each field and value that is not known to have been seen
// with another one. It reports whether anything changed. The counts of what stays are
// unchanged.
func (s *Sketch) Erase(b *Budget, gone func(ordinal uint32) bool) (changed bool) {
	kept := s.fields[:0]
	for _, f := range s.fields {
		if f.by.remove(gone) {
			changed = true
		}
		if f.by.n == 0 {
			if f.by.others {
				s.dropped++ // a profile that is not erased may have this field
			}
			delete(s.index, f.Path)
			b.give(s, f.bytes())
			continue
		}
		kept = append(kept, f)
		values := f.values[:0]
		for _, v := range f.values {
			if v.by.remove(gone) {
				changed = true
			}
			if v.by.n == 0 {
				f.Lost++
				b.give(s, valueBytes+len(v.text))
				continue
			}
			values = append(values, v)
		}
		clear(f.values[len(values):])
		f.values = values
	}
	clear(s.fields[len(kept):])
	s.fields = kept
	return changed
}

func (f *Field) bytes() int {
	n := fieldBytes + len(f.Path)
	for i := range f.values {
		n += valueBytes + len(f.values[i].text)
	}
	return n
}

func (b *Budget) give(s *Sketch, n int) {
	b.Used -= n
	s.size -= n
}
