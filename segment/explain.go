package segment

// Explaining is what [Explain] judges a profile by.
type Explaining struct {
	// AtMs is the instant, in Unix milliseconds.
	AtMs int64
	// Facts are what attribute, consent and list conditions look at.
	Facts *Facts
	// Segments finds the definitions that others refer to. A segment that is not
	// there has no members.
	Segments func(id string) (*Node, bool)
	// Activity reports whether the positive form of an activity condition holds,
	// and the facts behind it, nil when only the answer is known.
	Activity func(a *Activity) (holds bool, facts *ActivityFacts)
}

// Explanation is one node of a definition with the answer for one profile and
// the facts behind it. Which of the fields below Conditions is set follows from
// the node's kind.
type Explanation struct {
	Node *Node
	// Holds is the node's answer, its negation included.
	Holds bool
	// Anonymous says, at the root of a definition, that it holds for no anonymous profile,
	// and that this profile is one.
	Anonymous bool
	// Conditions are those of a group, all of them judged.
	Conditions []*Explanation
	// Activity is nil when only the answer is known.
	Activity  *ActivityFacts
	Attribute *AttributeFacts
	Consent   *ConsentFact
	// Member says of list and segment conditions whether the profile is on the
	// list or in the segment.
	Member bool
	// Definition explains the segment that a segment condition refers to. It is
	// set once for each segment, where the explanation first comes to it; nil
	// everywhere else, for a segment that is not there, and beyond the bounds.
	Definition *Explanation
}

// The bounds of the definitions that an explanation nests. The definition that
// is explained is not counted: [Limits] bound it.
const (
	maxNestedDepth = 16
	maxNestedNodes = 2000
	maxNestedBytes = 1 << 20
)

// Explain judges a profile by every node of a definition. Segments that the
// definition refers to are explained within it, each once, up to 16 deep, 2,000
// nodes and 1 MiB of definitions; whole is false when some were left out for
// that. Those are judged all the same. References that lead back to where they
// came from, which no saved definition has, end there without members.
func Explain(root *Node, by Explaining) (x *Explanation, whole bool) {
	e := explainer{Explaining: by, members: map[string]bool{}, nested: map[string]bool{}, large: map[string]bool{}}
	x = e.definition(root)
	return x, !e.cut
}

type explainer struct {
	Explaining
	// members has the segments judged so far. One whose judgement is under way
	// is there as false, so that a cycle ends.
	members map[string]bool
	// nested has the segments whose definition is part of the explanation, large
	// those for which there was no room: there never will be more.
	nested, large       map[string]bool
	depth, nodes, bytes int
	cut                 bool
}

// definition is explain of the root of a definition.
func (e *explainer) definition(root *Node) *Explanation {
	x := e.explain(root)
	if !root.Admits(e.Facts.Fields.Anonymous) {
		x.Holds, x.Anonymous = false, true
	}
	return x
}

func (e *explainer) explain(n *Node) *Explanation {
	x := &Explanation{Node: n}
	switch n.Kind {
	case KindGroup:
		holding := 0
		for _, c := range n.Conditions {
			child := e.explain(c)
			x.Conditions = append(x.Conditions, child)
			if child.Holds {
				holding++
			}
		}
		x.Holds = holding == len(n.Conditions) || n.Match == MatchAny && holding > 0
		return x
	case KindActivity:
		x.Holds, x.Activity = e.Activity(n.Activity)
	case KindAttribute:
		x.Holds, x.Attribute = e.Facts.Holds(n, e.AtMs), n.Attribute.facts(e.Facts, e.AtMs)
	case KindConsent:
		x.Holds, x.Consent = e.Facts.Holds(n, e.AtMs), e.Facts.consent(n.Consent.Channel)
	case KindList:
		x.Member = e.Facts.Holds(n, e.AtMs)
		x.Holds = x.Member
	case KindSegment:
		e.refer(n.Segment.SegmentID, x)
		x.Holds = x.Member
	}
	x.Holds = x.Holds != n.Negated()
	return x
}

// refer answers a reference to a segment, with its explanation if there is
// none yet.
func (e *explainer) refer(id string, x *Explanation) {
	definition, ok := e.Segments(id)
	if !ok || e.nested[id] || !e.fits(id, definition) {
		x.Member = e.member(id)
		return
	}
	e.nested[id] = true
	e.members[id] = false
	e.depth++
	x.Definition = e.definition(definition)
	e.depth--
	x.Member = x.Definition.Holds
	e.members[id] = x.Member
}

// fits reports whether a definition may be nested, and counts it if so.
func (e *explainer) fits(id string, definition *Node) bool {
	if e.depth >= maxNestedDepth || e.large[id] {
		e.cut = true
		return false
	}
	nodes := 0
	definition.Walk(func(string, *Node) { nodes++ })
	bytes := len(definition.Canonical())
	if e.nodes+nodes > maxNestedNodes || e.bytes+bytes > maxNestedBytes {
		e.large[id], e.cut = true, true
		return false
	}
	e.nodes += nodes
	e.bytes += bytes
	return true
}

// member judges a segment without explaining it, and once only. The recursion
// is as deep as there are segments.
func (e *explainer) member(id string) bool {
	if in, ok := e.members[id]; ok {
		return in
	}
	e.members[id] = false
	definition, ok := e.Segments(id)
	in := ok && definition.Admits(e.Facts.Fields.Anonymous) && definition.Eval(func(leaf *Node) bool {
		var holds bool
		switch leaf.Kind {
		case KindActivity:
			holds, _ = e.Activity(leaf.Activity)
		case KindSegment:
			holds = e.member(leaf.Segment.SegmentID)
		default:
			holds = e.Facts.Holds(leaf, e.AtMs)
		}
		return holds != leaf.Negated()
	})
	e.members[id] = in
	return in
}

// consent is the state of a channel; without a record it is never subscribed. An
// unconfirmed subscription is shown as such.
func (f *Facts) consent(channel string) *ConsentFact {
	out := ConsentFact{Channel: channel, Status: StatusNeverSubscribed}
	if c := f.consentOf(channel); c != nil {
		out = *c
	}
	switch {
	case out.Status == "":
		out.Status = StatusNeverSubscribed
	case out.Status == StatusSubscribed && f.SuppressionReason(channel) == SuppressionPending:
		out.Status = StatusPending
	}
	return &out
}
