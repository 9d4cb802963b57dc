package segments

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/musterhq/muster/api/internal/evaluation"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/segment"
)

// membersPage is a page of members at one instant.
type membersPage struct {
	root   *segment.Node
	behind []*segment.Node // the definitions that root refers to
	rows   []record.ProfileRow
	next   uint32 // where the next page begins, if there is more
	more   bool
	atMs   int64
}

// members answers GET /segments/{id}/members in the order in which profiles
// came to be. Every page is of its own instant, its as_of. Profiles keep their
// place, so a profile that is a member all the time is on exactly one page; one
// that enters or leaves between may be on none, or on one though gone since.
func (a *API) members(c *handler.Call) (any, error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	cursor, err := peekMemberCursor(c)
	if err != nil {
		return nil, err
	}
	from := uint32(0)
	if cursor != nil {
		from = cursor.from
	}
	var p membersPage
	live := false
	err = c.Read(func(v *resolver.View) error {
		s, ok := v.Segments().Get(c.PathID())
		if !ok {
			return handler.ErrNoSegment
		}
		p = membersPage{root: s.Root, atMs: a.opts.Chain.Instant(v)}
		var ordinals []uint32
		// One more reports whether there is another page.
		if ordinals, live = v.Segments().Page(s.ID, from, limit+1, p.atMs); live {
			p.behind = evaluation.Closure(s.Root, func(id string) (*segment.Node, bool) {
				other, ok := v.Segments().Get(id)
				return other.Root, ok
			})
			return p.take(v, ordinals, limit)
		}
		return nil
	})
	if err == nil && !live {
		p, err = a.membersByHistory(c, from, limit)
	}
	if err != nil {
		return nil, err
	}
	hash := definitionHash(p.root, p.behind)
	if cursor != nil && cursor.definition != hash {
		return nil, handler.BadField("cursor", "cursor belongs to an earlier definition of the segment; leave it out to start at the beginning")
	}
	ids := make([]string, len(p.rows))
	for i := range p.rows {
		ids[i] = p.rows[i].ProfileID
	}
	next := ""
	if p.more {
		next = memberCursor{from: p.next, definition: hash}.encode()
	}
	return map[string]any{"members": ids, "profiles": p.rows, "next": handler.CursorOrNull(next), "as_of": record.Time(p.atMs)}, nil
}

// membersByHistory is a page of the members of a segment that is building.
func (a *API) membersByHistory(c *handler.Call, from uint32, limit int) (p membersPage, err error) {
	q, err := a.opts.Evaluation.Ask(c, func(q *evaluation.Question, v *resolver.View) error {
		s, ok := v.Segments().Get(c.PathID())
		if !ok {
			return handler.ErrNoSegment
		}
		p = membersPage{root: s.Root, behind: q.Closure(s.Root), atMs: q.AtMs}
		q.Gather(v, s.Root)
		return nil
	})
	if err != nil {
		return p, err
	}
	defer q.Close()
	who, err := q.Who(q.Ctx, p.root)
	if err != nil {
		return p, err
	}
	it := who.Iterator()
	it.AdvanceIfNeeded(from)
	var ordinals []uint32
	for it.HasNext() && len(ordinals) <= limit {
		ordinals = append(ordinals, it.Next())
	}
	// The id of an ordinal never changes: a later state will do. Profiles erased or
	// merged since are left out.
	err = a.opts.Node.Read(q.Ctx, c.Account, func(v *resolver.View) error {
		return p.take(v, ordinals, limit)
	})
	return p, err
}

// take takes the profiles of a page, limit at most.
func (p *membersPage) take(v *resolver.View, ordinals []uint32, limit int) error {
	if p.more = len(ordinals) > limit; p.more {
		ordinals = ordinals[:limit]
		p.next = ordinals[limit-1] + 1
	}
	p.rows = []record.ProfileRow{}
	var room paging.Room
	for _, o := range ordinals {
		if !v.Profiles().Has(o) {
			continue
		}
		x, err := v.Profiles().Get(o)
		if err != nil {
			return err
		}
		row := record.NewProfileRow(x, p.atMs)
		if !room.Take(row) {
			p.more, p.next = true, o
			break
		}
		p.rows = append(p.rows, row)
	}
	return nil
}

// definitionHash is the start of a hash of a definition and of those behind it.
func definitionHash(root *segment.Node, behind []*segment.Node) (short [8]byte) {
	h := sha256.New()
	h.Write(root.Canonical())
	for _, n := range behind {
		h.Write([]byte{'\n'})
		h.Write(n.Canonical())
	}
	copy(short[:], h.Sum(nil))
	return short
}

// memberCursor names a place in a segment's members, under one definition.
type memberCursor struct {
	from       uint32  // the first ordinal of the page
	definition [8]byte // start of the definition's hash
}

const memberCursorBytes = 4 + 8

func (m memberCursor) encode() string {
	b := binary.LittleEndian.AppendUint32(nil, m.from)
	return paging.Encode(paging.Members, append(b, m.definition[:]...))
}

func peekMemberCursor(c *handler.Call) (*memberCursor, error) {
	b, err := c.Cursor(paging.Members, memberCursorBytes)
	if b == nil {
		return nil, err
	}
	return &memberCursor{binary.LittleEndian.Uint32(b), [8]byte(b[4:])}, nil
}
