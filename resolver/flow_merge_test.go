package resolver

import (
	"fmt"
	"slices"
	"testing"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/identrules"
)

// stitch is two profiles, a contact and a visitor, and what is about to show that
// they are one person.
type stitch struct {
	*recorder
	cust, visitor ProfileID
	seg           string
}

// newStitch makes them, behind a segment.
func newStitch(t *testing.T, definition string) *stitch {
	s := &stitch{recorder: newRecorder(t, DefaultSettings())}
	s.seg = s.segment(definition)
	return s.people()
}

// people makes the two. Segments come first: they need no history then.
func (s *stitch) people() *stitch {
	s.cust, _ = ParseProfileID(s.contact(contacts.Create{Email: "cust@x.com"}))
	s.visitor = s.events(ev("type", "page_viewed", "external_id", "visitor-1")).Events[0].Profile
	return s
}

// onSegment is a live flow on a segment.
func (s *stitch) onSegment(trigger, id string) string {
	s.t.Helper()
	return s.flow(fmt.Sprintf(`{"name":"x","trigger":{"type":%q,"segment_id":%q},"steps":[{"id":"t","type":"tag","add":["x"],"next":null}]}`, trigger, id))
}

// merging sends an event that carries identifiers of both.
func (s *stitch) merging(more ...string) {
	s.t.Helper()
	s.rows.Reset()
	s.events(ev(append([]string{"email", "cust@x.com", "external_id", "visitor-1"}, more...)...))
	s.mergedInto(s.cust)
}

func (s *stitch) mergedInto(p ProfileID) {
	s.t.Helper()
	if o, _ := s.view().Profiles().Resolve(s.visitor); o != p.Ordinal() {
		s.t.Fatal("the two are not one")
	}
}

// enrolled checks how often the flow was entered, and by whom.
func (s *stitch) enrolled(flow string, p ProfileID, want uint64) {
	s.t.Helper()
	way := "none"
	if want > 0 {
		way = "#1 t:done completed"
	}
	s.expectEnrolment(flow, p, way)
	if n := s.flowState(flow).Counts.Entered; n != want {
		s.t.Fatalf("F1: %d have entered the flow, expected %d", n, want)
	}
}

// said checks the transitions of a segment in the newest record (S2): who, in or
// out, and why, in order, numbered as they come.
func (s *stitch) said(id string, want ...string) {
	s.t.Helper()
	var got []string
	last := uint32(0)
	for _, x := range s.rows.Transitions {
		if x.Key.Offset != s.m.next-1 || x.Key.Seq <= last {
			s.t.Fatalf("S2: transition %+v comes behind number %d of record %d", x, last, s.m.next-1)
		}
		last = x.Key.Seq
		if x.Segment == id {
			got = append(got, s.describe(&x))
		}
	}
	if !slices.Equal(got, want) {
		s.t.Fatalf("S2: transitions %q, expected %q", got, want)
	}
}

func (s *stitch) describe(x *query.Transition) string {
	who, how := "cust", "left"
	if x.Ordinal == s.visitor.Ordinal() {
		who = "visitor"
	}
	if x.Entered {
		how = "entered"
	}
	return who + " " + how + " by " + x.Cause.String()
}

const (
	signedUp  = `{"kind":"activity","event":"signed_up"}`
	noSignUp  = `{"kind":"activity","event":"signed_up","did":false}`
	isPro     = `{"kind":"attribute","field":"attributes.plan","op":"=","value":"pro"}`
	threeSeen = `{"kind":"activity","event":"page_viewed","count":{"op":">=","value":3}}`
)

// TestF1MergingEventEnrols: an event that makes a profile match a segment enrols,
// also when it brings two profiles together.
func TestF1MergingEventEnrols(t *testing.T) {
	t.Parallel()
	s := newStitch(t, signedUp)
	flow := s.onSegment("segment_entered", s.seg)
	s.merging("type", "signed_up")
	s.said(s.seg, "cust entered by event")
	s.enrolled(flow, s.cust, 1)
	// Once is once.
	s.events(ev("type", "signed_up", "email", "cust@x.com"))
	s.enrolled(flow, s.cust, 1)
}

// TestF1MergingEventThatReachesACountEnrols: the events of both count, and the
// merging one is the third.
func TestF1MergingEventThatReachesACountEnrols(t *testing.T) {
	t.Parallel()
	s := newStitch(t, threeSeen)
	s.events(ev("type", "page_viewed", "email", "cust@x.com"))
	flow := s.onSegment("segment_entered", s.seg)
	s.merging("type", "page_viewed")
	s.said(s.seg, "cust entered by event")
	s.enrolled(flow, s.cust, 1)
}

// TestF1AttributeOfMergingEventEnrols: what the event sets is its own doing.
func TestF1AttributeOfMergingEventEnrols(t *testing.T) {
	t.Parallel()
	s := newStitch(t, isPro)
	flow := s.onSegment("segment_entered", s.seg)
	s.merging("type", "other", "attributes", `{"plan":"pro"}`)
	s.said(s.seg, "cust entered by profile")
	s.enrolled(flow, s.cust, 1)
}

// TestF1IdentifierOfMergingEventEnrols: an identifier that neither had is the
// event's, those of the visitor come by the merge.
func TestF1IdentifierOfMergingEventEnrols(t *testing.T) {
	t.Parallel()
	s := &stitch{recorder: newRecorder(t, DefaultSettings())}
	phone := s.segment(`{"kind":"attribute","field":"phone","op":"exists"}`)
	both := s.segment(`{"match":"all","conditions":[{"kind":"attribute","field":"email","op":"exists"},{"kind":"attribute","field":"external_id","op":"exists"}]}`)
	s.people()
	on, off := s.onSegment("segment_entered", phone), s.onSegment("segment_entered", both)
	s.merging("type", "other", "phone", "+49 30 1")
	s.said(phone, "cust entered by profile")
	s.said(both, "cust entered by merge")
	s.enrolled(on, s.cust, 1)
	if n := s.flowState(off).Counts.Entered; n != 0 {
		t.Fatalf("F1: a merge enrols %d", n)
	}
}

// TestF1MergingEventByPhoneEnrols: any two identifiers bring profiles together.
func TestF1MergingEventByPhoneEnrols(t *testing.T) {
	t.Parallel()
	s := newStitch(t, signedUp)
	s.visitor = s.events(ev("type", "page_viewed", "phone", "+49 30 7")).Events[0].Profile
	flow := s.onSegment("segment_entered", s.seg)
	s.rows.Reset()
	s.events(ev("type", "signed_up", "email", "cust@x.com", "phone", "+49 30 7"))
	s.mergedInto(s.cust)
	s.said(s.seg, "cust entered by event")
	s.enrolled(flow, s.cust, 1)
}

// TestF1MergingEventOfThreeEnrols: one event may bring three together.
func TestF1MergingEventOfThreeEnrols(t *testing.T) {
	t.Parallel()
	s := newStitch(t, signedUp)
	third := s.events(ev("type", "page_viewed", "phone", "+49 30 7")).Events[0].Profile
	flow := s.onSegment("segment_entered", s.seg)
	s.merging("type", "signed_up", "phone", "+49 30 7")
	if o, _ := s.view().Profiles().Resolve(third); o != s.cust.Ordinal() {
		t.Fatal("the three are not one")
	}
	s.said(s.seg, "cust entered by event")
	s.enrolled(flow, s.cust, 1)
}

// TestF1MergingEventEnrolsWhoLeaves: the same for flows on exits. The visitor
// leaves by the merge, which does not enrol.
func TestF1MergingEventEnrolsWhoLeaves(t *testing.T) {
	t.Parallel()
	s := newStitch(t, noSignUp)
	flow := s.onSegment("segment_exited", s.seg)
	s.merging("type", "signed_up")
	s.said(s.seg, "visitor left by merge", "cust left by event")
	s.enrolled(flow, s.cust, 1)
}

// TestF1MergingEventEnrolsAtResume: a profile that entered by it while the flow was
// paused is enrolled at resume.
func TestF1MergingEventEnrolsAtResume(t *testing.T) {
	t.Parallel()
	for _, on := range []struct{ trigger, definition string }{{"segment_entered", signedUp}, {"segment_exited", noSignUp}} {
		s := newStitch(t, on.definition)
		flow := s.onSegment(on.trigger, s.seg)
		s.must(automation.CommandPause, automation.ID{ID: flow})
		s.merging("type", "signed_up")
		s.enrolled(flow, s.cust, 0)
		s.must(automation.CommandResume, automation.ID{ID: flow})
		s.rest()
		s.enrolled(flow, s.cust, 1)
	}
}

// TestF1MergingContactEnrols: creating a contact brought two together as well before
// version 8 of the rules, and gave consents and put on a list.
func TestF1MergingContactEnrols(t *testing.T) {
	t.Parallel()
	s := &stitch{recorder: newRecorder(t, DefaultSettings())}
	l := s.list("l")
	consent := s.segment(`{"kind":"consent","channel":"sms","status":"subscribed"}`)
	onList := s.segment(fmt.Sprintf(`{"kind":"list","list_id":%q}`, l))
	told := s.segment(`{"kind":"activity","event":"list_joined"}`)
	s.people()
	seen := s.events(ev("type", "page_viewed", "phone", "+49 30 7")).Events[0].Profile
	var live []string
	for _, id := range []string{consent, onList, told} {
		live = append(live, s.onSegment("segment_entered", id))
	}
	s.rows.Reset()
	s.must(identrules.CommandContactCreate1, contacts.Create{Email: "new@x.com", ExternalID: "visitor-1", Phone: "+49 30 7", ListID: l})
	if o, _ := s.view().Profiles().Resolve(seen); o != s.visitor.Ordinal() {
		t.Fatal("the two are not one")
	}
	for i, id := range []string{consent, onList, told} {
		s.said(id, "visitor entered by event")
		s.enrolled(live[i], s.visitor, 1)
	}
}

// TestF1MergeAloneEnrolsNobody: a profile that matches by the merge is enrolled by
// nothing, whatever the event does beside.
func TestF1MergeAloneEnrolsNobody(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{"other", "page_viewed", "bought"} {
		s := newStitch(t, `{"match":"all","conditions":[{"kind":"activity","event":"page_viewed"},{"kind":"activity","event":"bought"}]}`)
		s.events(ev("type", "bought", "email", "cust@x.com"))
		flow := s.onSegment("segment_entered", s.seg)
		s.merging("type", typ)
		s.said(s.seg, "cust entered by merge")
		s.enrolled(flow, s.cust, 0)
	}
}

// TestF1MergingEventEnrolsNobodyTwice: where either was in the flow, the event
// does not enrol; nor does it while an enrolment is in progress.
func TestF1MergingEventEnrolsNobodyTwice(t *testing.T) {
	t.Parallel()
	s := newStitch(t, isPro)
	flow := s.onSegment("segment_entered", s.seg)
	s.events(ev("type", "other", "external_id", "visitor-1", "attributes", `{"plan":"pro"}`))
	s.enrolled(flow, s.visitor, 1)
	s.events(ev("type", "other", "email", "cust@x.com", "attributes", `{"plan":"free"}`))
	s.merging("type", "other", "attributes", `{"plan":"pro"}`)
	s.said(s.seg, "visitor left by merge", "cust entered by profile")
	s.enrolled(flow, s.cust, 1)
}

// TestF1MergingEventTellsBothInOrder: a profile may leave by the merge and enter by
// the event of the same record (S2); the entry enrols.
func TestF1MergingEventTellsBothInOrder(t *testing.T) {
	t.Parallel()
	s := newStitch(t, `{"match":"any","conditions":[{"kind":"activity","event":"page_viewed","count":{"op":"=","value":1}},`+signedUp+`]}`)
	s.events(ev("type", "page_viewed", "email", "cust@x.com"))
	id := s.seg
	if n := s.countIn(id); n != 2 {
		t.Fatalf("%d members, expected both", n)
	}
	in, out := s.onSegment("segment_entered", id), s.onSegment("segment_exited", id)
	if n := s.flowState(in).Counts.Entered; n != 2 {
		t.Fatalf("%d members were enrolled, expected both", n)
	}
	again := s.flow(fmt.Sprintf(`{"name":"y","reentry":"after_exit","trigger":{"type":"segment_entered","segment_id":%q},"steps":[{"id":"t","type":"tag","add":["x"],"next":null}]}`, id))
	s.merging("type", "signed_up")
	s.said(s.seg, "visitor left by merge", "cust left by merge", "cust entered by event")
	s.expectEnrolment(again, s.cust, "#3 t:done completed")
	s.enrolled(out, s.cust, 0)
	if n := s.flowState(in).Counts.Entered; n != 2 {
		t.Fatalf("F1: %d have entered the flow, expected the two", n)
	}
	if n := s.countIn(id); n != 1 {
		t.Fatalf("S2: %d members, expected one", n)
	}
}

// TestMergedFactsAreOfTheMergeAlone: what is judged of a merge has the identifiers
// of all in their order, without those of the event, and no field that it sets.
func TestMergedFactsAreOfTheMergeAlone(t *testing.T) {
	t.Parallel()
	s := newStitch(t, signedUp)
	s.events(ev("type", "other", "external_id", "visitor-1", "attributes", `{"a":1}`), ev("type", "other", "email", "cust@x.com", "attributes", `{"b":2}`))
	s.merging("type", "other", "email", "CUST@x.com", "phone", "+49 30 1", "attributes", `{"c":3}`)
	f := &s.m.tx.profiles.MergedFacts().Fields
	if got, want := fmt.Sprintf("%s %s %s %s", f.Emails, f.ExternalIDs, f.Phones, f.Attributes), `[cust@x.com] [visitor-1] [] {"b":2,"a":1}`; got != want {
		t.Fatalf("%s, expected %s", got, want)
	}
}

// TestF1ExitsOfTheMergedWaitAsOne has two leave a segment by its new definition, while the flow
// on it is paused. That they are one person is shown before the exits are told: one person
// waits for the flow to continue.
func TestF1ExitsOfTheMergedWaitAsOne(t *testing.T) {
	t.Parallel()
	const member = `{"kind":"segment","segment_id":%q,"member":%v}`
	s := &stitch{recorder: newRecorder(t, DefaultSettings())}
	pro := s.segment(proPlan)
	s.seg = s.segment(fmt.Sprintf(member, pro, true))
	s.people()
	id := s.onSegment("segment_exited", s.seg)
	s.must(automation.CommandPause, automation.ID{ID: id})
	s.events(ev("email", "cust@x.com", "attributes", `{"plan":"pro"}`), ev("external_id", "visitor-1", "attributes", `{"plan":"pro"}`))
	s.must(CommandSegmentUpdate, SegmentSave{ID: s.seg, Name: "s", Definition: fmt.Appendf(nil, member, pro, false)})
	s.merging()
	s.rest()
	s.expectFlow(id, automation.Paused, 0, 1)
	s.must(automation.CommandResume, automation.ID{ID: id})
	s.rest()
	s.enrolled(id, s.cust, 1)
}
