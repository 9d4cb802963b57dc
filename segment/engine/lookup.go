package engine

import (
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/fold"
)

// lookup is what stands behind a path in the properties of the event at hand,
// found once for all filters and states that ask.
type lookup struct {
	path  []string
	event uint64 // the event it was found for
	raw   []byte

	parsed bool // the number, if it is one
	micros int64
	number bool
	keyed  bool // the key, if it is a scalar
	key    fold.Key
	scalar bool
}

// in finds the value in the properties of the event with a number.
func (l *lookup) in(properties []byte, event uint64) []byte {
	if l.event != event {
		l.event = event
		l.raw, _ = rawjson.Lookup(properties, l.path)
		l.parsed, l.micros, l.number, l.keyed = false, 0, false, false
	}
	return l.raw
}

// asNumber is the value as an aggregate reads it. The value must be found.
func (l *lookup) asNumber() (micros int64, ok bool) {
	if !l.parsed {
		l.parsed = true
		l.micros, l.number = segment.MicrosOfJSON(l.raw)
	}
	return l.micros, l.number
}

// asKey is the key of a scalar. The value must be found.
func (l *lookup) asKey() (key fold.Key, ok bool) {
	if !l.keyed {
		l.keyed = true
		l.key, l.scalar = fold.KeyOf(l.raw)
	}
	return l.key, l.scalar
}
