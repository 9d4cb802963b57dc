package evaluation

import (
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
	// ExplainEvents is how many events of a profile are read. With more, its
	// activity conditions are judged by history and answered without facts.
	ExplainEvents = 100_000
	// explainPage is how many are read at once.
	explainPage = 2000
	// explainActivities is how many different activity conditions a segment and
	// those it refers to may have.
	explainActivities = 10_000
)

// Explanation is why a definition holds for a profile, or does not.
type Explanation struct {
	SegmentID string `json:"segment_id,omitempty"` // of a saved segment
	// ProfileID is the profile's present id, whichever of its ids was asked for.
	ProfileID  string         `json:"profile_id"`
	Member     bool           `json:"member"`
	AsOf       string         `json:"as_of"`
	Definition *ExplainedNode `json:"definition"`
}

// ExplainTo answers why the definition that find finds holds for a profile, or does not. The
// profile and the definition are of one state. segmentID is "" for one that is not saved.
func (e *Evaluator) ExplainTo(c *handler.Call, segmentID, profileID string, find func(*Question, *resolver.View) (*segment.Node, error)) (any, error) {
	var p *Profile
	var root *segment.Node
	q, err := e.Ask(c, func(q *Question, v *resolver.View) (err error) {
		if root, err = find(q, v); err != nil {
			return err
		}
		if profileID == "" {
			return handler.BadField("profile_id", "profile_id is missing; name the profile to explain the segment for")
		}
		ordinal, ok := v.Profiles().ResolveText(profileID)
		if !ok {
			return handler.ErrNoProfile
		}
		p, err = q.Profile(v, ordinal)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer q.Close()
	x, message, err := q.Explain(root, p, ExplainEvents)
	x.SegmentID = segmentID
	return handler.Note{Data: x, Message: message}, err
}

// ExplainAt is [Question.Explain] at another instant, with what is known now.
func (q *Question) ExplainAt(atMs int64, root *segment.Node, p *Profile) (Explanation, error) {
	at := *q
	at.AtMs = atMs
	x, _, err := at.Explain(root, p, ExplainEvents)
	return x, err
}

// Explain explains a definition for a profile, of which most events are read at most. The
// message says what the explanation lacks.
//
// All nodes are judged, also those that the answer does not depend on. Segments referred to
// are explained inside, each once, where the tree first comes to it. A profile with very
// many events has no facts at its activity conditions, and a definition that refers to very
// much is not nested to the end; the answers are right all the same.
func (q *Question) Explain(root *segment.Node, p *Profile, most int) (out Explanation, message string, err error) {
	answer, message, err := q.activityAnswers(root, p, most)
	if err != nil {
		return out, "", err
	}
	tree, whole := segment.Explain(root, segment.Explaining{AtMs: q.AtMs, Facts: p.facts, Segments: q.Lookup, Activity: answer})
	if !whole {
		if message != "" {
			message += "; "
		}
		message += "the segments referred to are too many or too deep to be shown whole: some are without their definition"
	}
	names := make(map[string]string, len(q.Saved))
	for _, other := range q.Saved {
		names[other.ID] = other.Name
	}
	return Explanation{
		ProfileID: p.Profile.ID.String(), Member: tree.Holds, AsOf: record.Time(q.AtMs), Definition: newExplainedNode(tree, q.AtMs, names),
	}, message, nil
}

// activityAnswers finds the answers to all activity conditions that a
// definition asks for, itself and through others.
func (q *Question) activityAnswers(root *segment.Node, p *Profile, most int) (answer activityAnswer, message string, err error) {
	tallies := segment.NewTallies(q.activities(root), q.AtMs)
	switch n := tallies.Len(); {
	case n == 0:
		return tallies.Answer, "", nil
	case n > explainActivities:
		return nil, "", &handler.Problem{Status: http.StatusConflict, Message: fmt.Sprintf(
			"the segment and those it refers to have %d different activity conditions, more than the %d that can be explained", n, explainActivities)}
	}
	if err := q.ev.opts.Node.WaitHistory(q.Ctx, q.cut); err != nil {
		return nil, "", HistoryError(err)
	}
	switch err := q.tally(tallies, p, most); {
	case err == nil:
		return tallies.Answer, "", nil
	case errors.Is(err, errTooManyEvents):
		message = fmt.Sprintf("the profile has more than %d events that may count: activity conditions are answered without their facts", most)
	case errors.Is(err, segment.ErrTallyFull):
		message = "the profile's events have too many different values: activity conditions are answered without their facts"
	default:
		return nil, "", HistoryError(err)
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
func (q *Question) tally(tallies *segment.Tallies, p *Profile, most int) error {
	afterMs, bounded := tallies.AfterMs()
	tq := query.TimelineQuery{Cut: q.cut, Account: q.account, Ordinals: p.ordinals, Limit: explainPage}
	for read := 0; ; {
		entries, err := q.ev.opts.History.Timeline(q.Ctx, tq)
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
			if err := q.Ctx.Err(); err != nil {
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
func (q *Question) withoutFacts(root *segment.Node, p *Profile) (activityAnswer, error) {
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
func (q *Question) satisfies(ordinal uint32, leaf *segment.Activity) (bool, error) {
	// A profile without matching events is in neither answer: the one is asked for
	// in which that is right.
	negate := leaf.HoldsForNone()
	who, err := q.ev.opts.History.Activity(q.Ctx, query.ActivityQuery{Cut: q.cut, Account: q.account, Leaf: leaf, AtMs: q.AtMs, Negate: negate})
	if err != nil {
		return false, HistoryError(err)
	}
	return who.Contains(ordinal) != negate, nil
}
