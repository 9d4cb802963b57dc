package segments

import (
	"encoding/json"

	"github.com/musterhq/muster/api/internal/evaluation"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/segment"
)

// explain answers GET /segments/{id}/explain?profile_id=: why a profile is, or
// is not, a member of a segment at one instant. The answer has the tree of the
// definition. A node of it has
//
//   - kind, and holds: whether the node holds for the profile, with did and
//     member taken into account;
//   - of a group, match and conditions;
//   - of all others, condition (the condition itself in its canonical form) and
//     facts, by kind as in package evaluation.
//
// [evaluation.Question.Explain] says what it leaves out of large definitions and of profiles
// with many events; the message of the answer says so.
func (a *API) explain(c *handler.Call) (any, error) {
	return a.opts.Evaluation.ExplainTo(c, c.PathID(), string(c.QueryArgs().Peek("profile_id")), func(_ *evaluation.Question, v *resolver.View) (*segment.Node, error) {
		s, ok := v.Segments().Get(c.PathID())
		if !ok {
			return nil, handler.ErrNoSegment
		}
		return s.Root, nil
	})
}

// explainDefinition answers POST /segments/explain: the same of a definition that is
// not saved, while it is being edited.
func (a *API) explainDefinition(c *handler.Call) (any, error) {
	var in struct {
		Definition json.RawMessage `json:"definition"`
		ProfileID  string          `json:"profile_id"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	root, _, err := evaluation.ParseDefinition(in.Definition)
	if err != nil {
		return nil, err
	}
	return a.opts.Evaluation.ExplainTo(c, "", in.ProfileID, func(q *evaluation.Question, v *resolver.View) (*segment.Node, error) {
		return root, q.CheckDefinition(v, root)
	})
}
