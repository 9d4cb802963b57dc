package evaluation

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/view"
	"github.com/musterhq/muster/segment"
)

// Profile is one profile with what its segments are worked out from.
type Profile struct {
	*view.Profile
	facts    *segment.Facts
	ordinals []uint32
	// held says of each segment whose members the engine has whether it holds
	// the profile at atMs.
	held map[string]bool
	// flows are those it is or was in.
	flows []string
	atMs  int64
}

// load reads the profile and where it belongs from one state.
func (p *Profile) load(saved []resolver.Segment, v *resolver.View, ordinal uint32, atMs int64) (err error) {
	if p.Profile, err = v.Profiles().Get(ordinal); err != nil {
		return err
	}
	if p.facts, err = v.Profiles().Facts(ordinal); err != nil {
		return err
	}
	p.flows = v.Flows().IDsOf(ordinal)
	p.held, p.atMs = make(map[string]bool, len(saved)), atMs
	for i := range saved {
		if in, ok := v.Segments().Has(saved[i].ID, ordinal, atMs); ok {
			p.held[saved[i].ID] = in
		}
	}
	p.ordinals, err = v.Profiles().Ordinals(ordinal)
	return err
}

// Profile reads a profile from the state of the question, to explain definitions for it.
func (q *Question) Profile(v *resolver.View, ordinal uint32) (*Profile, error) {
	p := &Profile{}
	return p, p.load(nil, v, ordinal, q.AtMs)
}

// RecordOf is the record of a profile at an instant, with those of some segments that hold
// it as far as the engine knows their members.
func RecordOf(v *resolver.View, saved []resolver.Segment, ordinal uint32, atMs int64) (record.Profile, error) {
	p := &Profile{}
	if err := p.load(saved, v, ordinal, atMs); err != nil {
		return record.Profile{}, err
	}
	return record.NewProfile(p.Profile, holding(saved, p.held), p.flows, p.atMs), nil
}

// AnswerProfile answers the profile that find names, with the segments that
// hold it. Only segments that are building make it ask history; a history that
// does not answer costs the segments, not the profile.
func (e *Evaluator) AnswerProfile(c *handler.Call, find func(*resolver.View) (uint32, bool), none error) (any, error) {
	p := &Profile{}
	load := func(v *resolver.View, saved []resolver.Segment, atMs int64) error {
		ordinal, ok := find(v)
		if !ok {
			return none
		}
		return p.load(saved, v, ordinal, atMs)
	}
	var saved []resolver.Segment
	err := c.Read(func(v *resolver.View) error {
		saved = v.Segments().All()
		return load(v, saved, e.opts.Chain.Instant(v))
	})
	if err != nil {
		return nil, err
	}
	if len(p.held) == len(saved) {
		return record.NewProfile(p.Profile, holding(saved, p.held), p.flows, p.atMs), nil
	}
	var segments []string
	q, err := e.Ask(c, func(q *Question, v *resolver.View) error { return load(v, q.Saved, q.AtMs) })
	if err == nil {
		defer q.Close()
		segments, err = q.segmentsOf(p)
	}
	message := ""
	if err != nil {
		if message, err = e.withoutSegments(err); err != nil {
			return nil, err
		}
	}
	return handler.Note{Data: record.NewProfile(p.Profile, segments, p.flows, p.atMs), Message: message}, nil
}

// holding lists the segments that hold a profile, in the order they were made.
func holding(saved []resolver.Segment, in map[string]bool) []string {
	out := []string{}
	for i := range saved {
		if in[saved[i].ID] {
			out = append(out, saved[i].ID)
		}
	}
	return out
}

// withoutSegments reports that segments could not be found out because of err, if
// that is a reason to continue without them.
func (e *Evaluator) withoutSegments(err error) (message string, _ error) {
	p, ours := handler.Classify(err)
	if p.Status < 500 {
		return "", err
	}
	if ours {
		e.opts.Logger.Error("the segments of a profile could not be found", "error", err)
	}
	return "segments could not be found in time; ask for the profile again", nil
}

// segmentsOf lists the segments that hold a profile, in the order they were
// made. What the engine does not know is worked out from the profile's own
// events, so that its cost does not depend on how many others there are; only a
// profile with very many events is looked up in the members of each segment.
func (q *Question) segmentsOf(p *Profile) ([]string, error) {
	if len(p.held) == len(q.Saved) {
		return holding(q.Saved, p.held), nil
	}
	events, whole, err := q.eventsOf(p)
	if err != nil {
		return nil, err
	}
	if !whole {
		return q.lookUp(p)
	}
	holds := q.judge(p, events)
	in := make(map[string]bool, len(q.Saved))
	for _, s := range q.Saved {
		in[s.ID] = holds(s.ID)
	}
	return holding(q.Saved, in), nil
}

// lookUp looks for a profile in the members of the segments that the engine
// does not know, at a state of its own.
func (q *Question) lookUp(p *Profile) ([]string, error) {
	all := &Question{ev: q.ev, Ctx: q.Ctx, account: q.account, held: q.held}
	defer all.drop()
	erased := false
	err := all.take(func(all *Question, v *resolver.View) error {
		ordinal, ok := v.Profiles().Resolve(p.ID)
		if erased = !ok; erased {
			return nil
		}
		if err := p.load(all.Saved, v, ordinal, all.AtMs); err != nil {
			return err
		}
		var roots []*segment.Node
		for _, s := range all.Saved {
			if _, ok := p.held[s.ID]; !ok {
				roots = append(roots, s.Root)
			}
		}
		all.Gather(v, roots...)
		return nil
	})
	if err != nil || erased {
		return []string{}, err
	}
	in := maps.Clone(p.held)
	for _, s := range all.Saved {
		if _, ok := p.held[s.ID]; ok {
			continue
		}
		who, err := all.Who(q.Ctx, s.Root)
		if err != nil {
			return nil, err
		}
		in[s.ID] = who.Contains(p.Ordinal)
	}
	return holding(all.Saved, in), nil
}

// eventsOf reads a profile's events, unless no segment that is building asks for
// them; whole is false when it has more than may be looked at.
func (q *Question) eventsOf(p *Profile) (events []segment.NaiveEvent, whole bool, err error) {
	held := func(leaf *segment.Node) bool {
		if leaf.Kind != segment.KindSegment {
			return false
		}
		_, ok := p.held[leaf.Segment.SegmentID]
		return ok
	}
	asks := func(s resolver.Segment) bool {
		_, ok := p.held[s.ID]
		return !ok && q.needsEvents(s.Root, held)
	}
	if !slices.ContainsFunc(q.Saved, asks) {
		return nil, true, nil
	}
	if err := q.ev.opts.Node.WaitHistory(q.Ctx, q.cut); err != nil {
		return nil, false, HistoryError(err)
	}
	limit := q.ev.opts.TimelineEvents
	entries, err := q.ev.opts.History.Timeline(q.Ctx, query.TimelineQuery{
		Cut: q.cut, Account: q.account, Ordinals: p.ordinals, Limit: limit + 1,
	})
	if err != nil {
		return nil, false, HistoryError(err)
	}
	if len(entries) > limit {
		return nil, false, nil
	}
	events = make([]segment.NaiveEvent, len(entries))
	for i, e := range entries {
		events[i] = segment.NaiveEvent{TimeMs: e.Key.TimeMs, Type: e.EventType, Sent: e.Sent, Properties: []byte(e.Properties)}
	}
	return events, true, nil
}

// judge returns a function that reports whether a saved segment holds the
// profile. Answers are kept, those of the engine first: conditions and segments
// are judged once, however many segments share them.
func (q *Question) judge(p *Profile, events []segment.NaiveEvent) func(id string) bool {
	profile := segment.NaiveOf(p.facts, events)
	segments := make(map[string]bool, len(q.Saved))
	maps.Copy(segments, p.held)
	leaves := map[string]bool{}
	var holds func(id string) bool
	holds = func(id string) bool {
		if in, ok := segments[id]; ok {
			return in
		}
		root, ok := q.defs[id]
		in := ok && root.Admits(profile.Anonymous) && root.Eval(func(leaf *segment.Node) bool {
			if leaf.Kind == segment.KindSegment {
				return holds(leaf.Segment.SegmentID) == leaf.Segment.Member
			}
			key := leaf.Key()
			if leaf.Negated() {
				key = "not " + key
			}
			in, ok := leaves[key]
			if !ok {
				in = leaf.NaiveCondition(profile, q.AtMs, q.Lookup)
				leaves[key] = in
			}
			return in
		})
		segments[id] = in
		return in
	}
	return holds
}

// Describe reads the profiles of a sample, and which segments hold them, from
// one state. It may be later than that of the sample: a profile's own as_of says
// so. Of one that was merged since the winner is shown, and one that was erased is not.
func (q *Question) Describe(ordinals []uint32) (found []*Profile, out []record.Profile, message string, err error) {
	out = []record.Profile{}
	load := func(q *Question, v *resolver.View) error {
		found = nil
		for _, o := range ordinals {
			winner, ok := v.Profiles().Resolve(v.Profiles().ID(o))
			if !ok || slices.ContainsFunc(found, func(p *Profile) bool { return p.Ordinal == winner }) {
				continue
			}
			p := &Profile{}
			if err := p.load(q.Saved, v, winner, q.AtMs); err != nil {
				return err
			}
			found = append(found, p)
		}
		return nil
	}
	if err := q.take(load); err != nil {
		return nil, nil, "", err
	}
	if slices.ContainsFunc(found, func(p *Profile) bool { return len(p.held) < len(q.Saved) }) && !q.mayAsk() {
		err := q.toHistory()
		if err == nil {
			err = q.take(load)
		}
		if err != nil {
			if message, err = q.ev.withoutSegments(err); err != nil {
				return nil, nil, "", err
			}
		}
	}
	for _, p := range found {
		var segments []string
		var err error
		if message == "" {
			segments, err = q.segmentsOf(p)
		}
		if err != nil {
			if message, err = q.ev.withoutSegments(err); err != nil {
				return nil, nil, "", err
			}
		}
		out = append(out, record.NewProfile(p.Profile, segments, p.flows, p.atMs))
	}
	return found, out, message, nil
}
