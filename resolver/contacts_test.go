package resolver

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/peek"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/view"
)

func (r *recorder) must(name string, args any) *Outcome {
	r.t.Helper()
	out := r.command(name, args)
	if out.Refusal != nil {
		r.t.Fatalf("%s %+v: %s", name, args, out.Refusal.Message)
	}
	return out
}

func (r *recorder) refuses(want, name string, args any) {
	r.t.Helper()
	out := r.command(name, args)
	if out.Refusal == nil || !strings.Contains(out.Refusal.Message, want) {
		r.t.Fatalf("%s %+v: %v, expected %q", name, args, out.Refusal, want)
	}
}

func (r *recorder) contact(c contacts.Create) string {
	r.t.Helper()
	var reply contacts.Reply
	if err := json.Unmarshal(r.must(contacts.CommandCreate, c).Reply, &reply); err != nil {
		r.t.Fatal(err)
	}
	return reply.ID
}

func (r *recorder) list(name string) string {
	r.t.Helper()
	var l contacts.List
	if err := json.Unmarshal(r.must(contacts.CommandListCreate, contacts.ListSave{Name: name}).Reply, &l); err != nil {
		r.t.Fatal(err)
	}
	return l.ID
}

// accountOf is the account that a view is of.
func accountOf(v *View) *account.State { return peek.Account(v).(*account.State) }

func (r *recorder) view() *View { return r.m.View(nil, testAccount) }

func (r *recorder) profile(id string) *view.Profile {
	r.t.Helper()
	v := r.view()
	pid, ok := ParseProfileID(id)
	if !ok {
		r.t.Fatalf("%q is no profile id", id)
	}
	o, ok := v.Profiles().Resolve(pid)
	if !ok {
		r.t.Fatalf("there is no profile %s", id)
	}
	p, err := v.Profiles().Get(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *recorder) segment(definition string) string {
	r.t.Helper()
	var reply struct{ ID string }
	out := r.must(CommandSegmentCreate, SegmentSave{Name: "s", Definition: json.RawMessage(definition)})
	if err := json.Unmarshal(out.Reply, &reply); err != nil {
		r.t.Fatal(err)
	}
	return reply.ID
}

func (r *recorder) countIn(segment string) int {
	r.t.Helper()
	n, ok := r.view().Segments().Count(segment, r.now)
	if !ok {
		r.t.Fatalf("segment %s is not live", segment)
	}
	return int(n)
}

func TestContactIsSubscribedAndOnItsList(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	l := r.list("news")
	onList := r.segment(fmt.Sprintf(`{"kind":"list","list_id":%q}`, l))
	bySMS := r.segment(`{"kind":"consent","channel":"sms","status":"subscribed"}`)
	joined := r.segment(`{"kind":"activity","event":"list_joined","where":[{"property":"list_id","op":"=","value":"` + l + `"}]}`)
	id := r.contact(contacts.Create{Email: " Ada@X.io ", FirstName: "Ada", Phone: "+49 30 1", ExternalID: "7", ListID: l})
	p := r.profile(id)
	if p.Newest(IdentityEmail) != " Ada@X.io " || p.Newest(IdentityPhone) != "+49 30 1" || p.FirstName != "Ada" {
		t.Errorf("fields are stored as given, have %+v", p)
	}
	if c := p.Consent("sms"); c.Status != "subscribed" || c.Source != "manual" || c.SubscribedMs != r.now {
		t.Errorf("consent to SMS: %+v", c)
	}
	if p.Status("email", r.now) != view.StatusSubscribed || !p.IsContact || len(p.Lists) != 1 || p.Lists[0] != l {
		t.Errorf("status %q, %+v", p.Status("email", r.now), p.ContactInfo)
	}
	for name, s := range map[string]string{"list": onList, "consent": bySMS, "event": joined} {
		if n := r.countIn(s); n != 1 {
			t.Errorf("the segment on the %s has %d members, expected 1", name, n)
		}
	}
	if p.LastEventMs >= 0 {
		t.Errorf("a contact without events has a last event at %d", p.LastEventMs)
	}
	if o := r.events(ev("email", "ada@x.io")); o.Events[0].Profile.String() != id {
		t.Errorf("the event of the contact went to %v", o.Events[0].Profile)
	}
	r.must(contacts.CommandListRemove, contacts.ListRemove{ListID: l, Profile: id})
	if r.countIn(onList) != 0 || len(r.profile(id).Lists) != 0 {
		t.Error("still on the list")
	}
}

func TestContactNeedsNothing(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	a, b := r.contact(contacts.Create{}), r.contact(contacts.Create{FirstName: "Ada"})
	if a == b {
		t.Fatal("two contacts without identifiers are two")
	}
	if p := r.profile(a); len(p.Identities) != 0 || !p.IsContact || p.Status("email", r.now) != "" {
		t.Errorf("%+v", p)
	}
	// Any text is an e-mail, also one that events may not use.
	if p := r.profile(r.contact(contacts.Create{Email: "guest"})); p.Newest(IdentityEmail) != "guest" {
		t.Errorf("%+v", p)
	}
	r.refuses("external_id \"0\" is a placeholder", contacts.CommandCreate, contacts.Create{ExternalID: "0"})
	r.refuses("phone has no digits", contacts.CommandCreate, contacts.Create{Phone: "call me"})
	r.refuses("email must have at most 512 bytes", contacts.CommandCreate, contacts.Create{Email: strings.Repeat("x", 513)})
	r.refuses("there is no such list", contacts.CommandCreate, contacts.Create{Email: "z@x.io", ListID: "lst_1"})
	if _, ok := r.view().Profiles().Find(IdentityEmail, "z@x.io"); ok {
		t.Error("a refused contact was made")
	}
}

func TestEmailIsUniqueEverywhere(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.contact(contacts.Create{Email: "ada@x.io"})
	r.events(ev("email", "grace@x.io"))
	for _, email := range []string{"ada@x.io", " ADA@x.io", "Grace@X.io"} {
		r.refuses(contacts.MessageDuplicateEmail, contacts.CommandCreate, contacts.Create{Email: email})
	}
	// In another account only the e-mails of contacts are taken.
	const other = 9
	e := r.m.accounts[testAccount].Entity
	if err := r.m.addAccount(other).Install(e); err != nil {
		t.Fatal(err)
	}
	in := func(name string, args any) *Refusal {
		env := r.envelope(eventlog.KindCommand)
		env.Account = other
		r.apply(eventlog.AppendCommand(env.Append(nil), name, must.JSON(args)))
		return r.out.Refusal
	}
	if got := in(contacts.CommandCreate, contacts.Create{Email: "Ada@x.io"}); got == nil || got.Message != contacts.MessageDuplicateEmail {
		t.Errorf("another account made the contact too: %v", got)
	}
	if got := in(contacts.CommandCreate, contacts.Create{Email: "grace@x.io"}); got != nil {
		t.Errorf("events of one account block contacts of another: %v", got)
	}
	env := r.envelope(eventlog.KindEvents)
	env.Account = other
	r.apply(appendEvents(env.Append(nil), []eventlog.Event{ev("email", "ada@x.io")}))
	if r.out.Events[0].Status != EventAccepted {
		t.Errorf("contacts of one account block events of another: %+v", r.out.Events[0])
	}
}

func TestAddToListMakesWhoIsMissing(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	l := r.list("news")
	r.events(ev("email", "ada@x.io"))
	for range 2 {
		r.must(contacts.CommandListAdd, contacts.ListAdd{ListID: l, Create: contacts.Create{Email: "ADA@x.io", FirstName: "Ada"}})
		r.must(contacts.CommandListAdd, contacts.ListAdd{ListID: l, Create: contacts.Create{Email: "grace@x.io", FirstName: "Grace"}})
	}
	v := r.view()
	list, _ := v.Contacts().Find(l)
	if n := v.Contacts().Members(list).GetCardinality(); n != 2 || accountOf(v).Profiles.Headers.Count != 2 {
		t.Fatalf("%d members, %d profiles", n, accountOf(v).Profiles.Headers.Count)
	}
	if got := v.Contacts().MembersPage(list, 1, 5); len(got) != 1 || got[0] != 1 {
		t.Errorf("members from 1 on: %v", got)
	}
	o, _ := v.Profiles().Find(IdentityEmail, "ada@x.io")
	p, err := v.Profiles().Get(o)
	if err != nil || p.FirstName != "Ada" || p.Consent("email").Status != "never_subscribed" {
		t.Errorf("the contact that was on file: %+v %v", p, err)
	}
	if r.m.accounts[testAccount].Types.Get("list_joined").Count != 2 {
		t.Error("joining twice is one event")
	}
}

func TestListInUseIsNotDeleted(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	l := r.list("news")
	id := r.contact(contacts.Create{Email: "ada@x.io", ListID: l})
	s := r.segment(fmt.Sprintf(`{"kind":"list","list_id":%q}`, l))
	r.refuses(`used by segment "s" (`+s, contacts.CommandListDelete, contacts.ListDelete{ID: l})
	r.must(CommandSegmentDelete, SegmentDelete{ID: s})
	r.must(contacts.CommandListDelete, contacts.ListDelete{ID: l})
	if len(r.profile(id).Lists) != 0 {
		t.Error("the contact is on a list that is gone")
	}
	r.refuses("there is no such list", contacts.CommandListAdd, contacts.ListAdd{ListID: l, Create: contacts.Create{Email: "b@x.io"}})
	if second := r.list("again"); second == l || len(r.profile(id).Lists) != 0 {
		t.Error("a new list has old members")
	}
	r.refuses(`conditions[0].list_id must be the id of a list, there is no "lst_x"`, CommandSegmentCreate, SegmentSave{Name: "s", Definition: json.RawMessage(`{"match":"any","conditions":[{"kind":"list","list_id":"lst_x"}]}`)})
}

func TestMergeCarriesListsConsentsAndBlocks(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	l := r.list("news")
	onList := r.segment(fmt.Sprintf(`{"kind":"list","list_id":%q}`, l))
	a := r.contact(contacts.Create{Email: "ada@x.io"})
	r.now += 1000
	b := r.contact(contacts.Create{ExternalID: "7", Phone: "+49 30 1", ListID: l})
	r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: b, Channel: "email", Reason: "complained"})
	r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: a, Channel: "email", Reason: "bounced"})
	r.events(ev("email", "ada@x.io", "external_id", "7"))
	p := r.profile(b)
	if p.ID.String() != a || len(p.Lists) != 1 || p.SuppressionReason("email") != "complained" || p.Consent("sms").Status != "subscribed" {
		t.Fatalf("%+v", p.ContactInfo)
	}
	v := r.view()
	list, _ := v.Contacts().Find(l)
	if got := v.Contacts().MembersPage(list, 0, 9); len(got) != 1 || got[0] != p.Ordinal || r.countIn(onList) != 1 {
		t.Errorf("members %v, %d in the segment", got, r.countIn(onList))
	}
}

func TestConsentAndStatus(t *testing.T) {
	t.Parallel()
	s := DefaultSettings()
	s.DoubleOptIn = true
	r := newRecorder(t, s)
	subscribed := r.segment(`{"kind":"consent","channel":"email","status":"subscribed"}`)
	id := r.contact(contacts.Create{Email: "ada@x.io"})
	status := func(want string) {
		t.Helper()
		if got := r.profile(id).Status("email", r.now); got != want {
			t.Fatalf("status %q, expected %q", got, want)
		}
	}
	status(view.StatusPending)
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "subscribed", Source: "link", Confirm: true})
	status(view.StatusSubscribed)
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "unsubscribed", Source: "link"})
	status(view.StatusUnsubscribed)
	if p := r.profile(id); p.Consent("email").SubscribedMs == 0 || r.countIn(subscribed) != 0 {
		t.Errorf("%+v, %d subscribed", p.Consents, r.countIn(subscribed))
	}
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "subscribed", Source: "form"})
	status(view.StatusPending)
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "subscribed", Source: "link", Confirm: true})
	for _, x := range []struct{ reason, status string }{{"bounced", view.StatusBounced}, {"complained", view.StatusComplained}, {"bounced", view.StatusComplained}, {"suppressed", view.StatusSuppressed}, {"", view.StatusSubscribed}} {
		r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "email", Reason: x.reason})
		status(x.status)
	}
	r.refuses("channel Input should be email, sms, push, whatsapp, im or in_app", contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "fax", Status: "subscribed"})
	r.refuses("status Input should be subscribed or unsubscribed", contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "maybe"})
	r.refuses("there is no contact", contacts.CommandConsentSet, contacts.ConsentSet{ID: "prf_1", Channel: "email", Status: "subscribed"})
}

func TestEngagementDecidesTheStatus(t *testing.T) {
	t.Parallel()
	const now = int64(1_000_000) * dayMs
	subscribed := []view.Consent{{Channel: "email", Status: "subscribed", SubscribedMs: now - 400*dayMs}}
	for _, x := range []struct {
		name string
		e    view.Engagement
		want string
		rate int
	}{
		{"never sent to", view.Engagement{}, view.StatusSubscribed, 0},
		{"opened today", view.Engagement{Sent: 9, Opened: 1, LastOpenMs: now}, view.StatusEngaged, 5},
		{"opened 30 days ago", view.Engagement{Sent: 9, Opened: 1, Clicked: 1, LastOpenMs: now - 30*dayMs}, view.StatusSubscribed, 10},
		{"clicked 90 days ago", view.Engagement{Sent: 9, Clicked: 50, LastClickMs: now - 90*dayMs}, view.StatusAtRisk, 12},
		{"no reaction to five", view.Engagement{Sent: 5}, view.StatusAtRisk, 0},
		{"no reaction to four", view.Engagement{Sent: 4}, view.StatusSubscribed, 0},
	} {
		p := view.Profile{Consents: subscribed, ContactInfo: view.ContactInfo{Engagement: x.e}}
		if got := p.Status("email", now); got != x.want {
			t.Errorf("%s: %q, expected %q", x.name, got, x.want)
		}
		if got := x.e.Score(now); got != x.rate {
			t.Errorf("%s: score %d, expected %d", x.name, got, x.rate)
		}
	}
}

func TestUpdateContact(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	text := func(s string) *string { return &s }
	id := r.contact(contacts.Create{Email: "ada@x.io"})
	r.contact(contacts.Create{Email: "grace@x.io", Phone: "+1 2"})
	r.must(contacts.CommandUpdate, contacts.Update{ID: id, Phone: text("+49 30 1"), FirstName: text("Ada"), Attributes: json.RawMessage(`{"plan":"pro"}`)})
	p := r.profile(id)
	if p.Consent("sms").Source != "manual" || p.Newest(IdentityPhone) != "+49 30 1" || string(p.Attributes) != `{"plan":"pro"}` {
		t.Fatalf("%+v", p)
	}
	before := hashOf(t, r.m)
	r.refuses(contacts.MessageDuplicateEmail, contacts.CommandUpdate, contacts.Update{ID: id, Email: text("Grace@x.io"), FirstName: text("Eve")})
	r.refuses("phone: another contact has this value", contacts.CommandUpdate, contacts.Update{ID: id, Phone: text("+12")})
	if r.profile(id).FirstName != "Ada" || before == "" {
		t.Error("a refused change changed something")
	}
	r.must(contacts.CommandUpdate, contacts.Update{ID: id, FirstName: text(""), Email: text("lovelace@x.io")})
	if p := r.profile(id); p.FirstName != "" || p.Newest(IdentityEmail) != "lovelace@x.io" {
		t.Errorf("%+v", p)
	}
	if o := r.events(ev("email", "ada@x.io")); o.Events[0].Profile.String() != id {
		t.Error("the first e-mail leads elsewhere")
	}
}

func hashOf(t *testing.T, m *Machine) string {
	t.Helper()
	h, err := m.Hash()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestOrdinalSet: a set read back from its pieces is the same, whatever was
// added and removed between two times it was stored.
func TestOrdinalSet(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	rng := rand.New(rand.NewPCG(1, 7))
	kept := map[string][]byte{}
	for range 200 {
		s := a.Sets.Set("x/" + string(rune('a'+rng.IntN(3))))
		for range rng.IntN(50) {
			o := uint32(rng.IntN(1000)) * 997 * uint32(1+rng.IntN(4))
			if rng.IntN(3) == 0 {
				s.Remove(o)
			} else {
				s.Add(o)
			}
		}
		if rng.IntN(20) == 0 {
			a.DropSet(r.m.store, "x/a")
		}
		if rng.IntN(3) == 0 {
			a.StoreSets(r.m.store)
			_, entities := r.m.store.Freeze()
			for k, b := range entities {
				if b == nil {
					delete(kept, k)
				} else {
					kept[k] = b
				}
			}
			back := account.New(testAccount, 0)
			for k, b := range kept {
				if kind := k[state.KeyHead]; kind == state.EntitySet {
					if err := back.LoadSet(k[state.KeyHead+1:], b); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, name := range []string{"x/a", "x/b", "x/c"} {
				if !back.Sets.Members(name).Equals(a.Sets.Members(name)) {
					t.Fatalf("set %s was read back otherwise", name)
				}
			}
		}
	}
}
