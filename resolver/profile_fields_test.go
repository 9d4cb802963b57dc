package resolver

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/segment"
)

// profileFieldDefinitions has a segment for each way in which a definition looks
// at a field that the service keeps itself.
func profileFieldDefinitions() (list []string) {
	field := func(name, rest string) {
		list = append(list, fmt.Sprintf(`{"kind":"attribute","field":%q,%s}`, name, rest))
	}
	for _, s := range segment.ContactStatuses {
		field("status", fmt.Sprintf(`"op":"=","value":%q`, s))
	}
	field("status", `"op":"not_exists"`)
	field("status.sms", `"op":"=","value":"Unsubscribed"`)
	field("status.push", `"op":"in","value":["Subscribed","Suppressed"]`)
	field("subscribed", `"op":"=","value":true`)
	field("suppressed.email", `"op":"=","value":true`)
	field("suppressed.sms", `"op":"!=","value":true`)
	for _, name := range []string{"first_seen_at", "last_event_at"} {
		field(name, `"op":"in_last_days","value":30`)
		field(name, `"op":"not_in_last_days","value":7`)
		field(name, `"op":"before","value":"2001-10-01"`)
		field(name, `"op":"exists"`)
	}
	for _, n := range []int{0, 5, 20, 50} {
		field("engagement_score", fmt.Sprintf(`"op":">","value":%d`, n))
		field("engagement_score", fmt.Sprintf(`"op":"=","value":%d`, n))
	}
	field("push_devices", `"op":"exists"`)
	field("push_devices", `"op":"=","value":"apns"`)
	field("push_devices", `"op":"not_in","value":["fcm","webpush"]`)
	field("tags", `"op":"=","value":"vip"`)
	for _, status := range []string{"subscribed", "pending", "unsubscribed", "never_subscribed"} {
		list = append(list, fmt.Sprintf(`{"kind":"consent","channel":"email","status":%q}`, status))
	}
	return list
}

// TestS1ProfileFieldsAreLive does everything that changes such a field to a few
// profiles, in random order, and asks after each record, at its instant and
// later ones, whether the engine's members are those found naively.
func TestS1ProfileFieldsAreLive(t *testing.T) {
	t.Parallel()
	const world = 6
	met := map[string]bool{}
	for seed := range testlevel.Count[uint64](6, 12) {
		rng := rand.New(rand.NewPCG(seed, 45))
		s := DefaultSettings()
		s.DoubleOptIn = seed%2 == 0
		r := newRecorder(t, s)
		r.must(CommandCreditsAdd, CreditsAdd{Amount: 1000})
		template := answer[campaigns.Template](t, r.must(campaigns.CommandTemplateSave, campaigns.Template{Name: "t", Source: campaigns.TemplateList, Subject: "s", Text: "x"})).ID
		definitions, ids, roots := profileFieldDefinitions(), []string{}, map[string]*segment.Node{}
		for _, d := range definitions {
			id := r.segment(d)
			ids, roots[id] = append(ids, id), mustDefinition(t, d)
		}
		refs := func(id string) (*segment.Node, bool) { n, ok := roots[id]; return n, ok }
		for range 120 {
			what := r.somethingHappens(rng, world, template)
			for _, later := range []int64{0, rng.Int64N(40 * dayMs), int64(rng.IntN(8)) * 30 * dayMs} {
				at := max(r.now, r.m.logTime) + later
				v := r.view()
				for _, id := range ids {
					members, ok := v.Segments().Members(id, at)
					if !ok {
						t.Fatalf("seed %d: %s is not live", seed, roots[id].Canonical())
					}
					for it := v.Profiles().All().Iterator(); it.HasNext(); {
						o := it.Next()
						f, err := v.Profiles().Facts(o)
						if err != nil {
							t.Fatal(err)
						}
						is := roots[id].Naive(segment.NaiveOf(f, nil), at, refs)
						if is != members.Contains(o) {
							t.Fatalf("S1: seed %d: after %s, %d ms later, profile %d: engine says %v, naive %v of %s",
								seed, what, later, o, members.Contains(o), is, roots[id].Canonical())
						}
						met[fmt.Sprint(is, " ", string(roots[id].Canonical()))] = true
					}
				}
			}
		}
		for _, typ := range r.m.accounts[testAccount].Types.Keys() {
			if typ != "viewed" && !segment.OwnEvent(typ) {
				t.Errorf("event_count takes %s for an event that was sent: name it in segment/own_events.go", typ)
			}
		}
	}
	for _, typ := range []string{automation.EventEntered, automation.EventCompleted, automation.EventExited, contacts.EventListJoined, contacts.EventListLeft} {
		if !segment.OwnEvent(typ) {
			t.Errorf("event_count takes %s for an event that was sent: name it in segment/own_events.go", typ)
		}
	}
	for _, d := range profileFieldDefinitions() {
		for _, is := range []bool{true, false} {
			text := fmt.Sprint(is, " ", string(mustDefinition(t, d).Canonical()))
			if !met[text] && text != `false {"kind":"attribute","field":"first_seen_at","op":"exists"}` {
				t.Errorf("never met: %s", text)
			}
		}
	}
}

func mustDefinition(t *testing.T, text string) *segment.Node {
	t.Helper()
	n, err := segment.Parse([]byte(text), segment.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// somethingHappens does one random thing that changes what is known of profiles,
// and says what.
func (r *recorder) somethingHappens(rng *rand.Rand, world int, template string) string {
	if rng.IntN(3) == 0 {
		r.now += rng.Int64N(20 * dayMs)
	}
	a := r.m.accounts[testAccount]
	person := "prf_0"
	if a.Profiles.Headers.Count > 0 {
		person = a.Profiles.Headers.Get(rng.Uint32N(a.Profiles.Headers.Count)).ID.String()
	}
	channel := pick(rng, "email", "email", "sms", "push")
	email := fmt.Sprintf("u%d@x.io", rng.IntN(world))
	switch rng.IntN(12) {
	case 0, 1:
		x := eventlog.Event{Type: []byte("viewed"), Email: []byte(email)}
		if rng.IntN(3) == 0 { // may bring two together
			x.Phone = fmt.Appendf(nil, "+49 30 %d", rng.IntN(world))
		}
		if rng.IntN(4) == 0 {
			x.Email, x.Phone = nil, fmt.Appendf(nil, "+49 30 %d", rng.IntN(world))
		}
		if rng.IntN(3) == 0 {
			x.HasTime, x.TimeMs = true, r.now-rng.Int64N(60*dayMs)
		}
		if rng.IntN(4) == 0 {
			x.Attributes = []byte(pick(rng, `{"tags":["vip","x"]}`, `{"tags":["x"]}`, `{"tags":null}`))
		}
		r.events(x)
		return "an event"
	case 2:
		c := contacts.Create{Email: email}
		if rng.IntN(3) == 0 {
			c = contacts.Create{Phone: fmt.Sprintf("+49 30 %d", rng.IntN(world))}
		}
		r.command(contacts.CommandCreate, c)
		return "contact.create"
	case 3:
		r.command(contacts.CommandUpdate, contacts.Update{ID: person})
		return "contact.update"
	case 4:
		r.command(contacts.CommandConsentSet, contacts.ConsentSet{ID: person, Channel: channel, Status: pick(rng, "subscribed", "subscribed", "unsubscribed"), Source: "form", Confirm: rng.IntN(3) == 0})
		return "consent.set"
	case 5:
		r.command(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: person, Channel: channel, Reason: pick(rng, "", "", "bounced", "complained", "suppressed")})
		return "block.set"
	case 6, 7:
		kind := pick(rng, messages.EngagementOpen, messages.EngagementOpen, messages.EngagementClick, messages.EngagementBounce, messages.EngagementSoftBounce, messages.EngagementComplaint, messages.EngagementUnsubscribed)
		for range 1 + rng.IntN(4) {
			r.command(messages.CommandEngagement, messages.EngagementRecord{Profile: person, Channel: channel, Kind: kind})
		}
		return kind
	case 8:
		r.command(contacts.CommandDeviceAdd, contacts.DeviceAdd{Profile: person, Device: fmt.Sprint(rng.IntN(3)), Kind: pick(rng, profile.DeviceKinds...), Address: fmt.Sprint("token", rng.IntN(4))})
		return "device.add"
	case 9:
		r.command(contacts.CommandDeviceRemove, contacts.DeviceRemove{Profile: person, Device: fmt.Sprint(rng.IntN(3))})
		return "device.remove"
	case 10:
		if rng.IntN(4) == 0 {
			r.command(CommandContactErase, ContactErase{ID: person})
			for range 2 { // and let the person come back
				r.command(erasure.CommandLift, erasure.Lift{Kind: "email", Value: email})
			}
			return "contact.erase"
		}
	}
	for range 1 + rng.IntN(4) {
		r.command(messages.CommandEmailSend, messages.EmailSend{Mail: messages.Mail{To: email, TemplateID: template}})
	}
	work, err := r.view().OutboxDue(outbox.KindEmail, 1<<60, 5, func(uint64) bool { return false })
	if err != nil {
		r.t.Fatal(err)
	}
	for _, w := range work {
		r.command(messages.CommandOutboxDone, outbox.Done{Seq: w.Seq, Attempt: w.Attempt, Result: pick(rng, outbox.ResultSent, outbox.ResultSent, outbox.ResultSent, outbox.ResultSent, outbox.ResultSent, outbox.ResultSent, outbox.ResultSent, outbox.ResultFailed)})
	}
	return "e-mails"
}
