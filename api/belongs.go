package api

import (
	"slices"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/segment"
)

// person is one profile with what its segments are worked out from.
type person struct {
	*resolver.Profile
	id       resolver.ProfileID
	ordinals []uint32
}

func (p *person) load(v *resolver.View, ordinal uint32) (err error) {
	if p.Profile, err = v.Profile(ordinal); err != nil {
		return err
	}
	p.ordinals, err = v.Ordinals(ordinal)
	return err
}

// answerProfile answers the profile that find names, with the segments that
// hold it. A history that does not answer costs the segments, not the profile.
func (a *API) answerProfile(c *call, find func(*resolver.View) (uint32, bool), none string) (any, error) {
	p := &person{}
	load := func(v *resolver.View) error {
		ordinal, ok := find(v)
		if !ok {
			return missing("%s", none)
		}
		return p.load(v, ordinal)
	}
	q, err := a.ask(c, load)
	var segments []string
	atMs := a.opts.Now().UnixMilli()
	if err == nil {
		defer q.close()
		atMs = q.atMs
		segments, err = q.segmentsOf(p)
	}
	message := ""
	if err != nil {
		if message, err = a.withoutSegments(err); err != nil {
			return nil, err
		}
		if p.Profile == nil {
			if err := a.read(c, load); err != nil {
				return nil, err
			}
		}
	}
	return note{newProfile(p.Profile, segments, atMs), message}, nil
}

// withoutSegments says that segments could not be found out because of err, if
// that is a reason to go on without them.
func (a *API) withoutSegments(err error) (message string, _ error) {
	p, ours := classify(err)
	if p.status < 500 {
		return "", err
	}
	if ours {
		a.opts.Logger.Error("the segments of a profile could not be found", "error", err)
	}
	return "segments could not be found in time; ask for the profile again", nil
}

// segmentsOf lists the segments that hold a profile, in the order they were
// made. It looks at the profile's own events, so that its cost does not depend
// on how many others there are; only a profile with very many events is looked
// up in the members of each segment.
func (q *question) segmentsOf(p *person) ([]string, error) {
	out := []string{}
	if len(q.saved) == 0 {
		return out, nil
	}
	events, whole, err := q.eventsOf(p)
	if err != nil {
		return nil, err
	}
	holds := q.judge(p, events)
	if !whole {
		err := q.takeAll(func(v *resolver.View) error {
			ordinal, _ := v.Resolve(p.ID)
			return p.load(v, ordinal)
		})
		if err != nil {
			return nil, err
		}
	}
	for _, s := range q.saved {
		var in bool
		if whole {
			in = holds(s.ID)
		} else {
			who, err := q.who(q.ctx, s.Root)
			if err != nil {
				return nil, err
			}
			in = who.Contains(p.Ordinal)
		}
		if in {
			out = append(out, s.ID)
		}
	}
	return out, nil
}

// eventsOf reads a profile's events, unless no segment asks for them; whole is
// false when it has more than may be looked at.
func (q *question) eventsOf(p *person) (events []segment.NaiveEvent, whole bool, err error) {
	if !slices.ContainsFunc(q.saved, func(s resolver.Segment) bool { return len(s.Root.Activities()) > 0 }) {
		return nil, true, nil
	}
	if err := q.api.opts.Node.WaitHistory(q.ctx, q.cut); err != nil {
		return nil, false, historyError(err)
	}
	limit := q.api.opts.TimelineEvents
	entries, err := q.api.opts.History.Timeline(q.ctx, query.TimelineQuery{
		Cut: q.cut, Account: q.account, Ordinals: p.ordinals, Limit: limit + 1,
	})
	if err != nil {
		return nil, false, historyError(err)
	}
	if len(entries) > limit {
		return nil, false, nil
	}
	events = make([]segment.NaiveEvent, len(entries))
	for i, e := range entries {
		events[i] = segment.NaiveEvent{TimeMs: e.Key.TimeMs, Type: e.EventType, Properties: []byte(e.Properties)}
	}
	return events, true, nil
}

// judge returns a function that tells whether a saved segment holds the
// profile. Answers are kept: conditions and segments are judged once, however
// many segments share them.
func (q *question) judge(p *person, events []segment.NaiveEvent) func(id string) bool {
	profile := naiveProfile(p.Profile, events)
	segments := map[string]bool{}
	leaves := map[string]bool{}
	var holds func(id string) bool
	holds = func(id string) bool {
		if in, ok := segments[id]; ok {
			return in
		}
		root, ok := q.defs[id]
		in := ok && root.Eval(func(leaf *segment.Node) bool {
			if leaf.Kind == segment.KindSegment {
				return holds(leaf.Segment.SegmentID) == leaf.Segment.Member
			}
			key := leaf.Key()
			if leaf.Negated() {
				key = "not " + key
			}
			in, ok := leaves[key]
			if !ok {
				in = leaf.Naive(profile, q.atMs, q.lookup)
				leaves[key] = in
			}
			return in
		})
		segments[id] = in
		return in
	}
	return holds
}

func naiveProfile(p *resolver.Profile, events []segment.NaiveEvent) *segment.NaiveProfile {
	out := &segment.NaiveProfile{
		FirstName: p.FirstName, LastName: p.LastName, Geo: p.Geo, Attributes: p.Attributes,
		CreatedAtMs: p.CreatedMs, Consents: map[string]segment.NaiveConsent{}, Events: events,
	}
	for _, id := range p.Identities {
		switch id.Kind {
		case resolver.IdentityEmail:
			out.Emails = append(out.Emails, id.Value)
		case resolver.IdentityExternalID:
			out.ExternalIDs = append(out.ExternalIDs, id.Value)
		case resolver.IdentityPhone:
			out.Phones = append(out.Phones, id.Value)
		}
	}
	for _, c := range p.Consents {
		consent := segment.NaiveConsent{Status: c.Status}
		if c.SinceMs != 0 {
			consent.SubscribedMs = &c.SinceMs
		}
		out.Consents[c.Channel] = consent
	}
	return out
}
