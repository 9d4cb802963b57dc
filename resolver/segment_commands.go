package resolver

import (
	"bytes"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/segment"
)

const (
	// maxDefinitionBytes bounds a definition in canonical form.
	maxDefinitionBytes = 1 << 20
)

func (m *Machine) createSegment(tx *transaction, c SegmentSave) *Refusal {
	c.ID = feature.NewID("seg_", tx.env.ID)
	tx.reply(map[string]string{"id": c.ID})
	return m.saveSegment(tx.account, c, true, tx.out.Offset)
}

func (m *Machine) updateSegment(tx *transaction, c SegmentSave) *Refusal {
	tx.reply(map[string]string{"id": c.ID})
	return m.saveSegment(tx.account, c, false, tx.out.Offset)
}

func (m *Machine) saveSegment(a *account.State, c SegmentSave, create bool, offset int64) *Refusal {
	if r := refuse.Name(c.Name); r != nil {
		return r
	}
	old := a.Segments[c.ID]
	switch {
	case create && len(a.Segments) >= maxSegments:
		return atLimit("", "this account has %d segments, the most it can have; delete one first", maxSegments)
	case !create && old == nil:
		return notFound("id", "there is no segment with this id")
	}
	if old != nil {
		if r := feature.OtherVersion(c.IfVersion, old.Version); r != nil {
			return r
		}
	}
	root, err := segment.Parse(c.Definition, segment.Limits{})
	if err != nil {
		return invalid("definition", "%s", err)
	}
	canonical := root.Canonical()
	if len(canonical) > maxDefinitionBytes {
		return invalid("definition", "definition has %d bytes when its numbers and times are written in full, the most is %d; split it into several segments", len(canonical), maxDefinitionBytes)
	}
	if err := segment.CheckRefs(c.ID, root, a.Definition); err != nil {
		return invalid("definition", "%s", err)
	}
	if err := segment.CheckLists(root, func(id string) bool { return a.Contacts.List(id) != nil }); err != nil {
		return invalid("definition", "%s", err)
	}
	s := &Segment{ID: c.ID, Name: c.Name, Definition: canonical, CreatedMs: m.logTime, UpdatedMs: m.logTime, Root: root}
	if old != nil {
		s.CreatedMs = old.CreatedMs
	}
	if old == nil || !bytes.Equal(old.Definition, s.Definition) {
		if n := a.Engine.Leaves() + len(root.Leaves()); n > maxLeaves {
			return atLimit("definition", "definition: the segments of this account would have %d conditions, the most they can have is %d; share conditions or delete segments", n, maxLeaves)
		}
		m.define(a, s, offset)
	}
	a.Segments[s.ID] = s
	m.store.PutEntity(state.EntityKey(a.Number, state.EntitySegment, s.ID), must.PlainJSON(s))
	return nil
}

func (m *Machine) deleteSegment(tx *transaction, c SegmentDelete) *Refusal {
	a, id := tx.account, c.ID
	if a.Segments[id] == nil {
		return notFound("id", "there is no segment with this id")
	}
	now, before := a.SegmentsUsing(id)
	now = append(now, a.UsesOfSegment(id)...)
	switch {
	case len(now) > 0:
		return &Refusal{Code: "conflict", Field: "id", Message: "the segment is used by " + account.JoinUses(now) + "; change those first"}
	case len(before) > 0:
		return &Refusal{Code: "conflict", Field: "id", Message: "the segment is used by the definition that is being replaced of " + account.JoinUses(before) + "; try again when that is live"}
	}
	a.Engine.Undefine(id)
	delete(a.Segments, id)
	m.store.PutEntity(state.EntityKey(a.Number, state.EntitySegment, id), nil)
	return nil
}
