package dedup

import "github.com/musterhq/muster/eventlog"

// Records remembers the ids of the newest records, against repeats.
type Records struct {
	ids  []eventlog.RecordID
	set  map[eventlog.RecordID]struct{}
	at   int
	size int
}

// NewRecords remembers size ids at most.
func NewRecords(size int) Records {
	return Records{set: map[eventlog.RecordID]struct{}{}, size: size}
}

// Add keeps an id and drops the oldest beyond the window. It returns
// false when the id is in the window already.
func (r *Records) Add(id eventlog.RecordID) bool {
	if _, ok := r.set[id]; ok {
		return false
	}
	if len(r.ids) < r.size {
		r.ids = append(r.ids, id)
	} else {
		delete(r.set, r.ids[r.at])
		r.ids[r.at] = id
		r.at = (r.at + 1) % r.size
	}
	r.set[id] = struct{}{}
	return true
}

// List returns the ids, oldest first.
func (r *Records) List() []eventlog.RecordID {
	out := make([]eventlog.RecordID, 0, len(r.ids))
	return append(append(out, r.ids[r.at:]...), r.ids[:r.at]...)
}
