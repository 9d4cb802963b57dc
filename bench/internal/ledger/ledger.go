// Package ledger compares what was sent and acknowledged with what history holds,
// and collects what is wrong.
package ledger

import (
	"errors"
	"fmt"
	"slices"

	"github.com/musterhq/muster/bench/internal/history"
)

// MaxFaults bounds the faults that are listed one by one.
const MaxFaults = 12

// Faults is what a check found wrong. The zero value is empty.
type Faults struct {
	list []error
	more int
}

// Add adds a fault.
func (f *Faults) Add(format string, args ...any) {
	if len(f.list) >= MaxFaults {
		f.more++
		return
	}
	f.list = append(f.list, fmt.Errorf(format, args...))
}

// Err returns the faults, nil if there are none.
func (f *Faults) Err() error {
	all := slices.Clone(f.list)
	if f.more > 0 {
		all = append(all, fmt.Errorf("and %d more", f.more))
	}
	return errors.Join(all...)
}

// Event is an event as its sender knows it.
type Event struct {
	Type string
	// Acked reports that it was acknowledged, Seen that a check has found it.
	Acked, Seen bool
}

// Found compares an idempotency key in history with the event that was sent with it,
// nil if none was: it must be there once, and no earlier check may have found it (L2).
func (f *Faults) Found(k history.Key, e *Event) {
	if e == nil {
		f.Add("key %q is in history and was never sent", k.Key)
		return
	}
	if e.Seen {
		f.Add("key %q is in history again, after a check that found it once", k.Key)
	}
	e.Seen = true
	if k.Rows != 1 {
		f.Add("key %q is in history %d times", k.Key, k.Rows)
	}
	if k.EventType != e.Type {
		f.Add("key %q has event type %q in history, sent %q", k.Key, k.EventType, e.Type)
	}
}

// Lost adds each acknowledged event that no check has found (L1). all visits every
// event with its key.
func (f *Faults) Lost(all func(visit func(key string, e *Event))) {
	var lost []string
	all(func(key string, e *Event) {
		if e.Acked && !e.Seen {
			lost = append(lost, key)
		}
	})
	slices.Sort(lost)
	for _, key := range lost {
		f.Add("key %q was acknowledged and is not in history", key)
	}
}
