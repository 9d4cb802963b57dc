package fieldcolumns

import (
	"sync"
	"sync/atomic"

	"github.com/musterhq/muster/segment"
)

// MaxColumns is how many fields a table has at most.
const MaxColumns = 16

// Tables are the tables of the accounts of one store, one each at most. Methods are safe
// for concurrent use; that a table is the same as the profiles is up to the caller, who
// must exclude changes of profiles from [Tables.Begin], [Tables.Refresh] and [Tables.View]
// until what they belong to is known.
type Tables struct {
	limit int64 // bytes of all tables
	any   atomic.Bool
	bytes atomic.Int64 // of tables, without those being built

	mu       sync.Mutex
	tables   map[uint32]*table   // by account
	building map[uint32]*Builder // by account
	asked    uint64              // counts questions, to know which table was asked last
}

// New returns no tables, that may take so many bytes.
func New(limit int64) *Tables {
	return &Tables{limit: limit, tables: map[uint32]*table{}, building: map[uint32]*Builder{}}
}

// Bytes is what the tables take.
func (t *Tables) Bytes() int64 { return t.bytes.Load() }

// Mark notes that a profile has changed or is new.
func (t *Tables) Mark(account, ordinal uint32) {
	if !t.any.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.tables[account]; x != nil && !x.changed.add(ordinal) {
		t.drop(account)
	}
	if b := t.building[account]; b != nil && !b.changed.add(ordinal) {
		b.moot = true
	}
}

// Forget drops what is kept of an account's profiles: the values of one of them are to be
// gone.
func (t *Tables) Forget(account uint32) {
	if !t.any.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(account)
	if b := t.building[account]; b != nil {
		b.moot = true
	}
}

// drop drops a table. mu is held.
func (t *Tables) drop(account uint32) {
	if x := t.tables[account]; x != nil {
		t.bytes.Add(-x.bytes())
		delete(t.tables, account)
		t.look()
	}
}

// look notes whether there is a table to keep right. mu is held.
func (t *Tables) look() { t.any.Store(len(t.tables)+len(t.building) > 0) }

// Refresh reads changed profiles again, at most the given number, and returns how many are
// left. A profile without values has none (any more).
func (t *Tables) Refresh(account uint32, most int, read func(ordinal uint32) (*segment.Fields, error)) (left int, err error) {
	if !t.any.Load() {
		return 0, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.tables[account]
	if x == nil {
		return 0, nil
	}
	had := x.bytes()
	for ; most > 0; most-- {
		ordinal, ok := x.changed.take()
		if !ok {
			break
		}
		f, err := read(ordinal)
		if err != nil {
			t.drop(account)
			return 0, err
		}
		x.set(ordinal, f)
	}
	t.bytes.Add(x.bytes() - had)
	if x.changed.n == 0 && x.wasteful() {
		t.drop(account)
		return 0, nil
	}
	return x.changed.n, nil
}

// View is the column of a field as it is now, if there is one and all changes are in it.
func (t *Tables) View(account uint32, field string) (*View, bool) {
	if !t.any.Load() {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.tables[account]
	if x == nil || x.changed.n > 0 {
		return nil, false
	}
	for _, c := range x.columns {
		if c.field.Field == field && !c.tooMany {
			t.asked++
			x.asked = t.asked
			return c.view(), true
		}
	}
	return nil, false
}

// Has reports whether there is a table of the account, or one is being made.
func (t *Tables) Has(account uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tables[account] != nil || t.building[account] != nil
}

// Hopeless reports whether a field of the account's table has too many values to be
// kept.
func (t *Tables) Hopeless(account uint32, field string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.tables[account]; x != nil {
		for _, c := range x.columns {
			if c.field.Field == field {
				return c.tooMany
			}
		}
	}
	return false
}
