package api

import (
	"crypto/sha256"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/segment"
)

// members answers GET /segments/{id}/members in the order in which profiles
// came to be. Every page is a question of its own at the instant of the first
// page. Events that arrive between pages are later than that instant and do not
// show; what profiles are (attributes, merges) is that of the page's moment.
func (a *API) members(c *call) (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	from, err := peekMemberCursor(c)
	if err != nil {
		return nil, err
	}
	var s resolver.Segment
	q, err := a.askAll(c, func(v *resolver.View) error {
		var ok bool
		if s, ok = v.Segment(c.id()); !ok {
			return errNoSegment
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer q.close()
	hash := q.definitionHash(s.Root)
	if from != nil {
		if from.definition != hash {
			return nil, badField("cursor", "cursor belongs to an earlier definition of the segment; leave it out to start at the beginning")
		}
		// A clock that was set back must not show events of the future.
		q.atMs = min(q.atMs, from.asOfMs)
	}
	who, err := q.who(q.ctx, s.Root)
	if err != nil {
		return nil, err
	}
	it := who.Iterator()
	if from != nil {
		if it.AdvanceIfNeeded(from.after); it.HasNext() && it.PeekNext() == from.after {
			it.Next()
		}
	}
	ids := []string{}
	next := ""
	for last := uint32(0); it.HasNext(); {
		if len(ids) == limit {
			next = memberCursor{after: last, asOfMs: q.atMs, definition: hash}.encode()
			break
		}
		last = it.Next()
		ids = append(ids, q.snap.ProfileID(last).String())
	}
	return map[string]any{"members": ids, "next": cursorOrNull(next), "as_of": timeText(q.atMs)}, nil
}

// definitionHash is the start of a hash of the definition and of all it refers
// to.
func (q *question) definitionHash(root *segment.Node) (short [8]byte) {
	h := sha256.New()
	h.Write(root.Canonical())
	for _, n := range q.closure(root) {
		h.Write([]byte{'\n'})
		h.Write(n.Canonical())
	}
	copy(short[:], h.Sum(nil))
	return short
}
