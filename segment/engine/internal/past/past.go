// Package past works out the values that past events make of profiles.
package past

import (
	"slices"

	"github.com/musterhq/muster/internal/prefetch"
	"github.com/musterhq/muster/segment/engine/internal/fold"
)

// Values are what past events make of profiles, in order of ordinals.
//
// Events come in any order of profiles. They are gathered, put in order of profiles, and added
// to the values of those before, which are kept in that order: adding each by itself would miss the
// processor's cache with nearly each.
//
// Invariant: a value is that of its profile's events but for those gathered, added in the order
// in which they came.
type Values struct {
	fold     fold.Fold
	nowMs    int64
	room     int  // what an event may add to a value, in bytes
	detailed bool // whether the fold needs more than times and numbers

	gathered []event
	details  []detail    // of the same events, if detailed
	spans    []fold.Span // of the same events
	values   list
	given    int // values that Take has returned

	// Scratch.
	order, other []place
	occurrence   fold.Occurrence
	value        []byte
	entries      [][2]int64
}

// leastGathered is how many events are gathered at least before they are added to the
// values, which copies these. Tests lower it.
var leastGathered = 1 << 18

const (
	// valueBytesPerGathered keeps that cheap: there is one event for so many bytes that are copied.
	valueBytesPerGathered = 64
	// mostGathered bounds that: an event takes 24 bytes, and 16 while it is sorted.
	mostGathered = 1 << 23
	// prefetchEvents is how many events ahead memory is prefetched.
	prefetchEvents = 16
	// sortBits is by how many bits of an ordinal a pass of sorted goes.
	sortBits = 11
)

// event is what an event adds to its profile.
type event struct {
	atMs, micros int64
	ordinal      uint32
	number       bool
}

// detail is what it adds beside.
type detail struct {
	key       fold.Key
	keyed     bool
	from, end uint32 // its spans
}

// place is where one of the gathered events is.
type place struct{ ordinal, event uint32 }

// list is values in order of ordinals, one after the other.
type list struct {
	ordinals []uint32
	ends     []int
	data     []byte
}

func (l *list) at(i int) []byte {
	start := 0
	if i > 0 {
		start = l.ends[i-1]
	}
	return l.data[start:l.ends[i]]
}

func (l *list) add(o uint32, v []byte) {
	l.data = append(l.data, v...)
	l.ordinals, l.ends = append(l.ordinals, o), append(l.ends, len(l.data))
}

// New begins without events. Nothing before nowMs will be asked of the values.
func New(spec fold.Spec, nowMs int64) *Values {
	return &Values{fold: spec.New(), nowMs: nowMs, room: roomOf(spec.Kind), detailed: spec.Kind == fold.KindDistinct || spec.Kind == fold.KindSpans}
}

// roomOf is about how many bytes an event adds to a value, that of a profile's first one.
func roomOf(k fold.Kind) int {
	switch k {
	case fold.KindCount:
		return 4
	case fold.KindTimes:
		return 8
	case fold.KindSums, fold.KindMin, fold.KindMax:
		return 16
	case fold.KindDistinct:
		return 24
	}
	return 41
}

// Add takes in an event of a profile, of which it keeps nothing else.
func (v *Values) Add(o uint32, x *fold.Occurrence) {
	if v.detailed {
		from := uint32(len(v.spans))
		v.spans = append(v.spans, x.Spans...)
		v.details = append(v.details, detail{x.Key, x.Scalar, from, uint32(len(v.spans))})
	}
	v.gathered = append(v.gathered, event{x.AtMs, x.Micros, o, x.Number})
	if n := len(v.gathered); n >= leastGathered && n >= min(len(v.values.data)/valueBytesPerGathered, mostGathered) {
		v.settle()
	}
}

// Next is the profile whose value Take returns; ok is false behind the last. No events may be
// added any more.
func (v *Values) Next() (ordinal uint32, ok bool) {
	v.settle()
	v.gathered, v.details, v.spans, v.order, v.other = nil, nil, nil, nil, nil
	if v.given == len(v.values.ordinals) {
		return 0, false
	}
	return v.values.ordinals[v.given], true
}

// Take returns the next value, which is valid until the next call.
func (v *Values) Take() []byte {
	v.given++
	value := v.values.at(v.given - 1)
	if f, ok := v.fold.(fold.Sums); ok {
		v.value, v.entries = f.Collected(v.value, value, v.entries)
		return v.value
	}
	return value
}

// settle adds what was gathered to the values.
func (v *Values) settle() {
	if len(v.gathered) == 0 {
		return
	}
	order, old, i := v.sorted(), v.values, 0
	v.values = list{
		ordinals: make([]uint32, 0, len(old.ordinals)+len(order)), ends: make([]int, 0, len(old.ends)+len(order)),
		data: make([]byte, 0, len(old.data)+len(order)*v.room),
	}
	for len(order) > 0 {
		o, n := order[0].ordinal, 1
		for n < len(order) && order[n].ordinal == o {
			n++
		}
		for ; i < len(old.ordinals) && old.ordinals[i] < o; i++ {
			v.values.add(old.ordinals[i], old.at(i))
		}
		value := v.value[:0]
		if i < len(old.ordinals) && old.ordinals[i] == o {
			value = append(value, old.at(i)...)
			i++
		}
		for k := range n {
			if ahead := k + prefetchEvents; ahead < len(order) {
				prefetch.Line(&v.gathered[order[ahead].event])
			}
			value = v.add(value, order[k].event)
		}
		if v.value = value; len(value) > 0 {
			v.values.add(o, value)
		}
		order = order[n:]
	}
	for ; i < len(old.ordinals); i++ {
		v.values.add(old.ordinals[i], old.at(i))
	}
	v.gathered, v.details, v.spans = v.gathered[:0], v.details[:0], v.spans[:0]
}

// add adds a gathered event to a value.
func (v *Values) add(value []byte, gathered uint32) []byte {
	x, is := &v.gathered[gathered], &v.occurrence
	is.AtMs, is.Micros, is.Number = x.atMs, x.micros, x.number
	if v.detailed {
		d := &v.details[gathered]
		is.Key, is.Scalar, is.Spans = d.key, d.keyed, v.spans[d.from:d.end]
	}
	if f, ok := v.fold.(fold.Sums); ok {
		// Take puts the contributions in order.
		return f.Collect(value, is, v.nowMs)
	}
	return v.fold.Add(value, is, v.nowMs)
}

// sorted names the gathered events in order of ordinals, those of one as they came.
func (v *Values) sorted() []place {
	n, all := len(v.gathered), uint32(0)
	v.order, v.other = slices.Grow(v.order[:0], n)[:n], slices.Grow(v.other[:0], n)[:n]
	for i := range v.gathered {
		o := v.gathered[i].ordinal
		v.order[i] = place{o, uint32(i)}
		all |= o
	}
	for shift := 0; all>>shift > 0; shift += sortBits {
		var ends [1<<sortBits + 1]int
		for _, x := range v.order {
			ends[x.ordinal>>shift&(1<<sortBits-1)+1]++
		}
		for i := range ends[1:] {
			ends[i+1] += ends[i]
		}
		for _, x := range v.order {
			at := &ends[x.ordinal>>shift&(1<<sortBits-1)]
			v.other[*at] = x
			*at++
		}
		v.order, v.other = v.other, v.order
	}
	return v.order
}
