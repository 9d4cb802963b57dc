package evaluation

import (
	"encoding/json"
	"strconv"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/segment"
)

// ExplainedNode is a node of a definition with its answer and the facts behind
// it.
type ExplainedNode struct {
	Kind  segment.Kind `json:"kind"`
	Holds bool         `json:"holds"`
	// Anonymous says, at the root of a definition, that it holds for no anonymous profile, and
	// that the profile is one.
	Anonymous bool `json:"anonymous,omitempty"`
	// Match and Conditions are set for groups, Condition and Facts for all
	// others.
	Match      segment.Match    `json:"match,omitempty"`
	Conditions []*ExplainedNode `json:"conditions,omitempty"`
	Condition  json.RawMessage  `json:"condition,omitempty"`
	// Facts has one of the types below. It is null for an activity condition of
	// which only the answer is known: a nil pointer, which is written, unlike
	// the nil of a group.
	Facts any `json:"facts,omitempty"`
}

// activityFacts are behind an activity condition.
type activityFacts struct {
	// MatchingEvents is the number of events of the type and window that pass
	// the filters.
	MatchingEvents uint64 `json:"matching_events"`
	// Value is the number that is compared, exact: see
	// [segment.Quotient.MarshalJSON]; null where avg, min and max have nothing to
	// look at.
	Value *segment.Quotient `json:"value"`
	// Values is how many of the events' values the aggregate is made of; the
	// other events have none, or one it does not take. Absent for counts.
	Values *uint64 `json:"values,omitempty"`
	// NewestAt and OldestAt are the times of the last and first matching event,
	// null without any.
	NewestAt *string `json:"newest_at"`
	OldestAt *string `json:"oldest_at"`
	// WindowStart is the instant after which events count; absent for all time.
	WindowStart *string `json:"window_start,omitempty"`
}

// attributeFacts are behind an attribute condition.
type attributeFacts struct {
	// Value is what the profile has there, null for nothing; of the identifiers
	// of a kind it is the list.
	Value json.RawMessage `json:"value"`
	// ValueBytes is the length of a value that is too long to be shown and for
	// which Value is null.
	ValueBytes int `json:"value_bytes,omitempty"`
}

// consentFacts are behind a consent condition.
type consentFacts struct {
	Status       string  `json:"status"`
	SubscribedAt *string `json:"subscribed_at"`
}

// listFacts are behind a list condition.
type listFacts struct {
	Member bool `json:"member"`
}

// segmentFacts are behind a segment condition.
type segmentFacts struct {
	// Name is null when there is no such segment; it has no members.
	Name   *string `json:"name"`
	Member bool    `json:"member"`
	// Definition explains the segment. It is absent when the segment is
	// explained elsewhere in the answer, or too much is.
	Definition *ExplainedNode `json:"definition,omitempty"`
}

func newExplainedNode(x *segment.Explanation, atMs int64, names map[string]string) *ExplainedNode {
	n := x.Node
	out := &ExplainedNode{Kind: n.Kind, Holds: x.Holds, Anonymous: x.Anonymous}
	if n.Kind == segment.KindGroup {
		out.Match = n.Match
		for _, c := range x.Conditions {
			out.Conditions = append(out.Conditions, newExplainedNode(c, atMs, names))
		}
		return out
	}
	out.Condition = n.Canonical()
	switch n.Kind {
	case segment.KindActivity:
		if n.Activity.Event == segment.AnyEvent { // the attribute event_count
			out.Kind, out.Facts = segment.KindAttribute, newCountFacts(x.Activity)
			break
		}
		out.Facts = newActivityFacts(x.Activity, n.Activity, atMs)
	case segment.KindAttribute:
		out.Facts = attributeFacts{x.Attribute.Value, x.Attribute.Bytes}
	case segment.KindConsent:
		facts := consentFacts{Status: x.Consent.Status}
		if x.Consent.HasDate {
			facts.SubscribedAt = timeOf(x.Consent.SubscribedMs)
		}
		out.Facts = facts
	case segment.KindList:
		out.Facts = listFacts{x.Member}
	case segment.KindSegment:
		facts := segmentFacts{Member: x.Member}
		if name, ok := names[n.Segment.SegmentID]; ok {
			facts.Name = &name
		}
		if x.Definition != nil {
			facts.Definition = newExplainedNode(x.Definition, atMs, names)
		}
		out.Facts = facts
	}
	return out
}

// newCountFacts is nil without facts.
func newCountFacts(f *segment.ActivityFacts) *attributeFacts {
	if f == nil {
		return nil
	}
	return &attributeFacts{Value: strconv.AppendUint(nil, f.Matching, 10)}
}

// newActivityFacts is nil without facts.
func newActivityFacts(f *segment.ActivityFacts, a *segment.Activity, atMs int64) *activityFacts {
	if f == nil {
		return nil
	}
	out := &activityFacts{MatchingEvents: f.Matching, Value: f.Value}
	if a.Aggregate != nil {
		out.Values = &f.Values
	}
	if f.Matching > 0 {
		out.NewestAt, out.OldestAt = timeOf(f.NewestMs), timeOf(f.OldestMs)
	}
	if a.WindowMs > 0 {
		out.WindowStart = timeOf(atMs - a.WindowMs)
	}
	return out
}

func timeOf(ms int64) *string {
	text := record.Time(ms)
	return &text
}
