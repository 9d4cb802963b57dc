package api

import (
	"encoding/json"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/segment"
)

// sampleSize is how many profiles a preview shows.
const sampleSize = 10

// preview answers POST /segments/preview: who would belong to a segment, without
// saving it.
func (a *API) preview(c *call) (any, error) {
	var in struct {
		Definition json.RawMessage `json:"definition"`
	}
	if err := a.decode(c, &in); err != nil {
		return nil, err
	}
	if len(in.Definition) == 0 || string(in.Definition) == "null" {
		return nil, badField("definition", "definition is missing; send a group or a condition")
	}
	root, err := segment.Parse(in.Definition, segment.Limits{})
	if err != nil {
		return nil, badField("definition", "%s", err)
	}
	q, err := a.askAll(c, nil)
	if err != nil {
		return nil, err
	}
	defer q.close()
	if err := segment.CheckRefs("", root, q.lookup); err != nil {
		return nil, badField("definition", "%s", err)
	}
	who, err := q.who(q.ctx, root)
	if err != nil {
		return nil, err
	}
	var found []*person
	it := who.Iterator()
	for it.HasNext() && len(found) < sampleSize {
		found = append(found, &person{id: q.snap.ProfileID(it.Next())})
	}
	sample, message, err := q.describe(found)
	if err != nil {
		return nil, err
	}
	return note{map[string]any{"count": who.GetCardinality(), "as_of": timeText(q.atMs), "sample": sample}, message}, nil
}

// describe reads the profiles of a sample and which segments hold them.
func (q *question) describe(found []*person) ([]profile, string, error) {
	err := q.api.opts.Node.Read(q.ctx, q.account, func(v *resolver.View) error {
		for _, p := range found {
			// One of them may have been merged since: then the winner is shown.
			ordinal, _ := v.Resolve(p.id)
			if err := p.load(v, ordinal); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	out, message := []profile{}, ""
	for _, p := range found {
		segments, err := q.segmentsOf(p)
		if err != nil {
			if message, err = q.api.withoutSegments(err); err != nil {
				return nil, "", err
			}
		}
		out = append(out, newProfile(p.Profile, segments, q.atMs))
	}
	return out, message, nil
}
