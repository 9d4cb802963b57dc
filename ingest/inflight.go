package ingest

import (
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// Memory is what the bodies, records and large answers of all requests share
// (Q1), on all surfaces. It is safe for concurrent use.
type Memory struct {
	limit  int64
	used   atomic.Int64
	most   atomic.Int64 // the greatest used since Most was asked
	parent *Memory      // what a part takes is taken from it too; nil for the whole
}

// NewMemory returns a memory of limit bytes.
func NewMemory(limit int64) *Memory { return &Memory{limit: limit} }

// Part is the n-th part of a memory, for some requests to share: those of anybody
// must not take it all.
func (m *Memory) Part(n int64) *Memory { return &Memory{limit: m.limit / n, parent: m} }

// Used is how many bytes are taken, of a part by its own requests.
func (m *Memory) Used() int64 { return m.used.Load() }

// Most is the most bytes that were taken at one time since the call before, those of now
// included.
func (m *Memory) Most() int64 {
	most := m.most.Swap(0)
	now := m.used.Load()
	m.note(now)
	return max(most, now)
}

// note notes that so many bytes are taken.
func (m *Memory) note(used int64) {
	for {
		most := m.most.Load()
		if used <= most || m.most.CompareAndSwap(most, used) {
			return
		}
	}
}

// take takes n bytes; it reports false, and changes nothing, when there is no
// room.
func (m *Memory) take(n int64) bool {
	used := m.used.Add(n)
	if used > m.limit {
		m.used.Add(-n)
		return false
	}
	if m.parent != nil && !m.parent.take(n) {
		m.used.Add(-n)
		return false
	}
	m.note(used)
	return true
}

// force takes n bytes, also beyond the limit.
func (m *Memory) force(n int64) {
	for ; m != nil; m = m.parent {
		m.note(m.used.Add(n))
	}
}

// lease is one request's part of a memory.
type lease struct {
	memory *Memory
	held   int64
}

// need makes the lease at least n bytes; it reports false, and changes nothing,
// when the memory has no room.
func (l *lease) need(n int64) bool {
	more := n - l.held
	if more <= 0 {
		return true
	}
	if !l.memory.take(more) {
		return false
	}
	l.held = n
	return true
}

// shrink gives back all but n bytes.
func (l *lease) shrink(n int64) {
	if l.held > n {
		l.memory.force(n - l.held)
		l.held = n
	}
}

// Close gives everything back. The server calls it of leases among a request's
// values, once the answer has been written or the connection is gone.
func (l *lease) Close() error {
	l.shrink(0)
	return nil
}

// leaseKey is where a request's lease stands among its values.
type leaseKey struct{ memory *Memory }

// leaseOf is the lease of a request on a memory.
func leaseOf(ctx *fasthttp.RequestCtx, m *Memory) *lease {
	if l, ok := ctx.UserValue(leaseKey{m}).(*lease); ok {
		return l
	}
	l := &lease{memory: m}
	ctx.SetUserValue(leaseKey{m}, l)
	return l
}

// Hold takes n more bytes of a memory until the request's answer is written. It
// reports false, and takes nothing, when there is no room: the request should be
// answered 503 then. It is for handlers beside this package's.
func (m *Memory) Hold(ctx *fasthttp.RequestCtx, n int) bool {
	l := leaseOf(ctx, m)
	return l.need(l.held + int64(n))
}

// MustHold is Hold for what cannot be refused any more, such as the answer to a
// request that has changed something. It may go beyond the limit; requests that
// come then find no room.
func (m *Memory) MustHold(ctx *fasthttp.RequestCtx, n int) {
	m.force(int64(n))
	leaseOf(ctx, m).held += int64(n)
}
