package segment

import (
	"crypto/sha256"
	"errors"
	"math"
	"strconv"

	"github.com/musterhq/muster/internal/int128"
	"github.com/musterhq/muster/internal/rawjson"
)

// ActivityFacts is the result of an activity condition over a profile's events.
type ActivityFacts struct {
	// Holds reports whether the comparison holds; Did is not in it.
	Holds bool
	// Matching is the number of events of the condition's type and window that
	// pass its filters.
	Matching uint64
	// OldestMs and NewestMs are the times of the first and the last of them, in
	// Unix milliseconds; both 0 when there are none.
	OldestMs, NewestMs int64
	// Values is how many of their values the aggregate is made of: numbers below
	// 10¹² for sum, avg, min and max, strings, booleans and numbers for
	// distinct. It is 0 for a count.
	Values uint64
	// Value is what is compared; nil where avg, min and max have no number.
	Value *Quotient
}

// maxDistinctKept bounds the values that the tallies of one profile remember
// for distinct, all together; at most about 60 bytes each.
const maxDistinctKept = 500_000

// ErrTallyFull reports that the events of a profile have more different values
// than a tally remembers.
var ErrTallyFull = errors.New("segment: more different values than are remembered")

// Tallies gather the facts behind activity conditions from the events of one
// profile, in one pass and any order. They keep no event; their memory grows
// with the conditions and with the values that distinct has to tell apart,
// which are bounded.
type Tallies struct {
	atMs     int64
	byKey    map[string]*tally
	byEvent  map[string][]*tally
	distinct int
}

// NewTallies prepares to judge conditions at an instant in Unix milliseconds.
// Conditions of one key share a tally.
func NewTallies(leaves []*Activity, atMs int64) *Tallies {
	t := &Tallies{atMs: atMs, byKey: map[string]*tally{}, byEvent: map[string][]*tally{}}
	for _, a := range leaves {
		key := a.Key()
		if t.byKey[key] == nil {
			x := &tally{leaf: a}
			t.byKey[key] = x
			t.byEvent[a.Event] = append(t.byEvent[a.Event], x)
		}
	}
	return t
}

// Len is the number of different conditions.
func (t *Tallies) Len() int { return len(t.byKey) }

// AfterMs is the instant at and before which no event counts for any of the
// conditions, in Unix milliseconds; ok is false when all times count.
func (t *Tallies) AfterMs() (ms int64, ok bool) {
	ms = t.atMs
	for _, x := range t.byKey {
		if x.leaf.WindowMs == 0 {
			return 0, false
		}
		ms = min(ms, t.atMs-x.leaf.WindowMs)
	}
	return ms, true
}

// Add takes an event in: its type, whether it was sent (see [OfType]), its time in Unix
// milliseconds and its properties, a JSON object in canonical text or empty. After an error, which
// is [ErrTallyFull], the tallies are of no use.
func (t *Tallies) Add(eventType string, sent bool, timeMs int64, properties []byte) error {
	list := t.byEvent[eventType]
	if every := t.byEvent[AnyEvent]; len(every) > 0 && OfType(AnyEvent, eventType, sent) {
		list = append(every[:len(every):len(every)], list...)
	}
	for _, x := range list {
		if !x.leaf.matches(timeMs, properties, t.atMs) {
			continue
		}
		t.distinct += x.add(timeMs, properties)
		if t.distinct > maxDistinctKept {
			return ErrTallyFull
		}
	}
	return nil
}

// Facts are what the events so far say about a condition, nil for one that
// shares no key with those the tallies were made for.
func (t *Tallies) Facts(a *Activity) *ActivityFacts {
	x := t.byKey[a.Key()]
	if x == nil {
		return nil
	}
	return x.result()
}

// Answer is the field Activity of [Explaining], for conditions the tallies were
// made for.
func (t *Tallies) Answer(a *Activity) (holds bool, facts *ActivityFacts) {
	if facts = t.Facts(a); facts == nil {
		return false, nil
	}
	return facts.Holds, facts
}

// matches reports whether an event of the condition's type counts at atMs.
func (a *Activity) matches(timeMs int64, properties []byte, atMs int64) bool {
	if timeMs > atMs || a.WindowMs > 0 && timeMs <= atMs-a.WindowMs {
		return false
	}
	for i := range a.Where {
		if !a.Where[i].Match(properties, atMs) {
			return false
		}
	}
	return true
}

// tally is the result of one condition so far.
type tally struct {
	leaf           *Activity
	facts          ActivityFacts
	sum, low, high Int128
	distinct       map[string]struct{}
}

// add takes in an event that matches, and returns by how much distinct has
// grown.
func (t *tally) add(timeMs int64, properties []byte) (grown int) {
	f := &t.facts
	if f.Matching == 0 || timeMs < f.OldestMs {
		f.OldestMs = timeMs
	}
	if f.Matching == 0 || timeMs > f.NewestMs {
		f.NewestMs = timeMs
	}
	f.Matching++
	g := t.leaf.Aggregate
	if g == nil {
		return 0
	}
	raw, _ := rawjson.Lookup(properties, g.Property)
	if g.Fn == FnDistinct {
		return t.addDistinct(raw)
	}
	number, ok := rawjson.Float(raw)
	if !ok {
		return 0
	}
	micros, ok := MicrosOf(number)
	if !ok {
		return 0
	}
	v := int128.From(micros)
	t.sum = t.sum.Add(v)
	if f.Values == 0 || v.Cmp(t.low) < 0 {
		t.low = v
	}
	if f.Values == 0 || v.Cmp(t.high) > 0 {
		t.high = v
	}
	f.Values++
	return 0
}

func (t *tally) addDistinct(raw []byte) (grown int) {
	var buf [1 + sha256.Size]byte
	key, ok := appendDistinct(buf[:0], raw)
	if !ok {
		return 0
	}
	t.facts.Values++
	if _, seen := t.distinct[string(key)]; seen {
		return 0
	}
	if t.distinct == nil {
		t.distinct = map[string]struct{}{}
	}
	t.distinct[string(key)] = struct{}{}
	return 1
}

// appendDistinct appends what tells a scalar value from others: its type, and
// the number, the text or, of a text longer than the hash, its SHA-256. ok is
// false for what distinct passes over.
func appendDistinct(dst, raw []byte) (key []byte, ok bool) {
	switch rawjson.KindOf(raw) {
	case rawjson.True:
		return append(dst, 't'), true
	case rawjson.False:
		return append(dst, 'f'), true
	case rawjson.Number:
		number, ok := rawjson.Float(raw)
		return strconv.AppendUint(append(dst, 'n'), math.Float64bits(number+0), 36), ok // −0 + 0 is 0
	case rawjson.String:
		var buf [128]byte
		text, ok := rawjson.Text(raw, buf[:])
		if len(text) >= sha256.Size {
			hash := sha256.Sum256(text)
			return append(append(dst, 'h'), hash[:]...), ok
		}
		return append(append(dst, 's'), text...), ok
	}
	return nil, false
}

// result is what has been found, with the comparison made.
func (t *tally) result() *ActivityFacts {
	f := t.facts
	c := t.leaf.Count
	if g := t.leaf.Aggregate; g == nil {
		f.Value = wholeQuotient(f.Matching)
	} else {
		c = &g.Compare
		switch {
		case g.Fn == FnSum:
			f.Value = &Quotient{t.sum, 1}
		case g.Fn == FnDistinct:
			f.Value = wholeQuotient(uint64(len(t.distinct)))
		case f.Values == 0:
		case g.Fn == FnAvg:
			f.Value = &Quotient{t.sum, f.Values}
		case g.Fn == FnMin:
			f.Value = &Quotient{t.low, 1}
		case g.Fn == FnMax:
			f.Value = &Quotient{t.high, 1}
		}
	}
	f.Holds = f.Value != nil && c.HoldsRatio(f.Value.Micros, f.Value.Over)
	return &f
}
