package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/segment"
)

// The bounds of an explanation; those of its text are in [segment.Explain].
const (
	// explainEvents is how many events of a profile are read. With more, its
	// activity conditions are judged by history and answered without facts.
	explainEvents = 100_000
	// explainPage is how many are read at once.
	explainPage = 2000
	// explainActivities is how many different activity conditions a segment and
	// those it refers to may have.
	explainActivities = 10_000
)

// explanation is what explain and explainDefinition answer.
type explanation struct {
	SegmentID string `json:"segment_id,omitempty"` // of a saved segment
	// ProfileID is the profile's present id, whichever of its ids was asked for.
	ProfileID  string         `json:"profile_id"`
	Member     bool           `json:"member"`
	AsOf       string         `json:"as_of"`
	Definition *explainedNode `json:"definition"`
}

// explain answers GET /segments/{id}/explain?profile_id=: why a profile is, or
// is not, a member of a segment at one instant. The answer has the tree of the
// definition. A node of it has
//
//   - kind, and holds: whether the node holds for the profile, with did and
//     member taken into account;
//   - of a group, match and conditions;
//   - of all others, condition (the condition itself in its canonical form) and
//     facts, by kind as in explain_facts.go.
//
// All nodes are judged, also those that the answer does not depend on. Segments
// referred to are explained inside, each once, where the tree first comes to it.
//
// A profile with very many events has null facts at its activity conditions,
// and a definition that refers to very much is not nested to the end; the
// message says so, and holds and member are right all the same.
func (a *API) explain(c *handler.Call) (any, error) {
	return a.explainTo(c, c.PathID(), string(c.QueryArgs().Peek("profile_id")), func(_ *question, v *resolver.View) (*segment.Node, error) {
		s, ok := v.Segment(c.PathID())
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
	root, _, err := parseDefinition(in.Definition)
	if err != nil {
		return nil, err
	}
	return a.explainTo(c, "", in.ProfileID, func(q *question, v *resolver.View) (*segment.Node, error) {
		return root, q.checkDefinition(v, root)
	})
}

// explainTo explains the definition that find finds for the profile of an id.
func (a *API) explainTo(c *handler.Call, segmentID, profileID string, find func(*question, *resolver.View) (*segment.Node, error)) (any, error) {
	p := &person{}
	var root *segment.Node
	q, err := a.ask(c, func(q *question, v *resolver.View) (err error) {
		if root, err = find(q, v); err != nil {
			return err
		}
		if profileID == "" {
			return handler.BadField("profile_id", "profile_id is missing; name the profile to explain the segment for")
		}
		ordinal, ok := v.ResolveText(profileID)
		if !ok {
			return handler.ErrNoProfile
		}
		return p.load(nil, v, ordinal, q.atMs)
	})
	if err != nil {
		return nil, err
	}
	defer q.close()
	x, message, err := q.explainOne(root, p, explainEvents)
	x.SegmentID = segmentID
	return handler.Note{Data: x, Message: message}, err
}

// explainOne explains a definition for one profile, of whom most events are read at most.
func (q *question) explainOne(root *segment.Node, p *person, most int) (out explanation, message string, err error) {
	answer, message, err := q.activityAnswers(root, p, most)
	if err != nil {
		return out, "", err
	}
	tree, whole := segment.Explain(root, segment.Explaining{AtMs: q.atMs, Facts: p.facts, Segments: q.lookup, Activity: answer})
	if !whole {
		if message != "" {
			message += "; "
		}
		message += "the segments referred to are too many or too deep to be shown whole: some are without their definition"
	}
	names := make(map[string]string, len(q.saved))
	for _, other := range q.saved {
		names[other.ID] = other.Name
	}
	return explanation{
		ProfileID: p.Profile.ID.String(), Member: tree.Holds, AsOf: record.Time(q.atMs), Definition: newExplainedNode(tree, q.atMs, names),
	}, message, nil
}

// activityAnswers finds the answers to all activity conditions that a
// definition asks for, itself and through others.
func (q *question) activityAnswers(root *segment.Node, p *person, most int) (answer activityAnswer, message string, err error) {
	tallies := segment.NewTallies(q.activities(root), q.atMs)
	switch n := tallies.Len(); {
	case n == 0:
		return tallies.Answer, "", nil
	case n > explainActivities:
		return nil, "", &handler.Problem{Status: http.StatusConflict, Message: fmt.Sprintf(
			"the segment and those it refers to have %d different activity conditions, more than the %d that can be explained", n, explainActivities)}
	}
	if err := q.api.opts.Node.WaitHistory(q.ctx, q.cut); err != nil {
		return nil, "", historyError(err)
	}
	switch err := q.tally(tallies, p, most); {
	case err == nil:
		return tallies.Answer, "", nil
	case errors.Is(err, errTooManyEvents):
		message = fmt.Sprintf("the profile has more than %d events that may count: activity conditions are answered without their facts", most)
	case errors.Is(err, segment.ErrTallyFull):
		message = "the profile's events have too many different values: activity conditions are answered without their facts"
	default:
		return nil, "", historyError(err)
	}
	answer, err = q.withoutFacts(root, p)
	return answer, message, err
}

// activityAnswer is how an activity condition is answered: see
// [segment.Explaining].
type activityAnswer = func(*segment.Activity) (holds bool, facts *segment.ActivityFacts)

var errTooManyEvents = errors.New("too many events")

// tally reads the profile's events, most at most, the newest first and as far back as
// they count.
func (q *question) tally(tallies *segment.Tallies, p *person, most int) error {
	afterMs, bounded := tallies.AfterMs()
	tq := query.TimelineQuery{Cut: q.cut, Account: q.account, Ordinals: p.ordinals, Limit: explainPage}
	for read := 0; ; {
		entries, err := q.api.opts.History.Timeline(q.ctx, tq)
		if err != nil {
			return err
		}
		for i := range entries {
			e := &entries[i]
			if bounded && e.Key.TimeMs <= afterMs {
				return nil
			}
			if read++; read > most {
				return errTooManyEvents
			}
			// One event may be judged by thousands of conditions.
			if err := q.ctx.Err(); err != nil {
				return err
			}
			if err := tallies.Add(e.EventType, e.Sent, e.Key.TimeMs, []byte(e.Properties)); err != nil {
				return err
			}
		}
		if len(entries) < explainPage {
			return nil
		}
		tq.Before = &entries[len(entries)-1].Key
	}
}

// withoutFacts asks history who satisfies each condition.
func (q *question) withoutFacts(root *segment.Node, p *person) (activityAnswer, error) {
	holds := map[string]bool{}
	for _, leaf := range q.activities(root) {
		key := leaf.Key()
		if _, ok := holds[key]; ok {
			continue
		}
		in, err := q.satisfies(p.Ordinal, leaf)
		if err != nil {
			return nil, err
		}
		holds[key] = in
	}
	return func(a *segment.Activity) (bool, *segment.ActivityFacts) { return holds[a.Key()], nil }, nil
}

// satisfies reports whether the positive form of a condition holds for a profile,
// by a question over all profiles.
func (q *question) satisfies(ordinal uint32, leaf *segment.Activity) (bool, error) {
	// Who has no matching events is in neither answer: the one is asked for in
	// which that is right.
	negate := leaf.HoldsForNone()
	who, err := q.api.opts.History.Activity(q.ctx, query.ActivityQuery{Cut: q.cut, Account: q.account, Leaf: leaf, AtMs: q.atMs, Negate: negate})
	if err != nil {
		return false, historyError(err)
	}
	return who.Contains(ordinal) != negate, nil
}
