package ingest

import "sync/atomic"

// budget is the memory that the bodies and records of all requests share (Q1).
type budget struct {
	limit int64
	used  atomic.Int64
}

// lease is one request's part of a budget.
type lease struct {
	budget *budget
	held   int64
}

// need makes the lease at least n bytes; it reports false, and changes nothing,
// when the budget has no room.
func (l *lease) need(n int64) bool {
	more := n - l.held
	if more <= 0 {
		return true
	}
	if l.budget.used.Add(more) > l.budget.limit {
		l.budget.used.Add(-more)
		return false
	}
	l.held = n
	return true
}

// shrink gives back all but n bytes.
func (l *lease) shrink(n int64) {
	if l.held > n {
		l.budget.used.Add(n - l.held)
		l.held = n
	}
}
