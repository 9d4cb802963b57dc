package resolver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/conversations"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/sending"
)

// TestTextsStory: texts that people write by WhatsApp open conversations, which merges and
// erasures follow; START and STOP count once, and answers go out once, and not too often.
func TestTextsStory(t *testing.T) {
	t.Parallel()
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	const ann, bob = "+491701234567", "+491707654321"
	wrote := func(phone string) uint32 {
		r.must(conversations.CommandOpen, conversations.Open{Number: r.view().Reach().ConversationNumber(phone)})
		r.events(eventlog.Event{Type: []byte(conversations.Received), Phone: []byte(phone), Properties: []byte(`{"text":"Hi"}`)})
		o, _ := r.view().Profiles().Find(IdentityPhone, phone)
		return o
	}
	// open are the instants up to which a number may be written to, and no longer.
	open := func(phone string, untilMs int64) bool {
		return untilMs == 0 && !r.view().Reach().MayWriteFreelyTo(phone, r.now) || r.view().Reach().MayWriteFreelyTo(phone, untilMs-1) && !r.view().Reach().MayWriteFreelyTo(phone, untilMs)
	}
	first := wrote(ann)
	began := r.now
	r.now += 1000
	second := wrote(bob)
	if !open(ann, began+conversations.WindowMs) || !open(bob, r.now+conversations.WindowMs) {
		t.Fatal("the conversations are not open for a day")
	}
	later := r.now + conversations.WindowMs
	annID, bobID := r.view().Profiles().ID(first).String(), r.view().Profiles().ID(second).String()
	say := func(id, kind, key string) {
		r.must(messages.CommandEngagement, messages.EngagementRecord{Profile: id, Channel: "whatsapp", Kind: kind, Source: "reply", Key: key})
	}
	consent := func(o uint32) string {
		p, err := r.view().Profiles().Get(o)
		if err != nil {
			t.Fatal(err)
		}
		return p.Consent("whatsapp").Status
	}
	say(annID, messages.EngagementSubscribed, "1")
	say(annID, messages.EngagementUnsubscribed, "2")
	say(annID, messages.EngagementSubscribed, "1") // told again
	if got := consent(first); got != "unsubscribed" {
		t.Errorf("after STOP and an old START: %s", got)
	}
	say(annID, messages.EngagementSubscribed, "3")
	say(annID, messages.EngagementSubscribed, "4") // nothing new
	if got := consent(first); got != "subscribed" {
		t.Errorf("after START: %s", got)
	}
	// A dead number is blocked; another failure is only on record.
	r.must(messages.CommandEngagement, messages.EngagementRecord{Profile: bobID, Channel: "whatsapp", Kind: messages.EngagementFailed, Reason: "undeliverable", Key: "5"})
	if p, _ := r.view().Profiles().Get(second); p.SuppressionReason("whatsapp") != "" {
		t.Errorf("a failure blocks: %s", p.SuppressionReason("whatsapp"))
	}
	r.must(messages.CommandEngagement, messages.EngagementRecord{Profile: bobID, Channel: "whatsapp", Kind: messages.EngagementFailed, Hard: true, Key: "6"})
	if p, _ := r.view().Profiles().Get(second); p.SuppressionReason("whatsapp") != "bounced" {
		t.Errorf("a dead number: %q", p.SuppressionReason("whatsapp"))
	}

	answer := func(channel, text, key string) {
		r.must(messages.CommandTextAnswer, messages.TextAnswer{Profile: annID, Channel: channel, Text: text, Key: key})
	}
	queued := func(kind string) int {
		list, err := r.view().OutboxDue(kind, r.now, 100, func(uint64) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range list {
			var x messages.Text
			if err := json.Unmarshal(w.Payload, &x); err != nil || !x.Answer {
				t.Errorf("%s: %v", w.Payload, err)
			}
		}
		return len(list)
	}
	answer("whatsapp", "Shop Ltd", "a")
	answer("whatsapp", "Shop Ltd", "a") // told again
	answer("whatsapp", "Shop Ltd", "b") // too soon
	answer("sms", "Shop Ltd", "c")
	r.now += sending.AnswerEveryMs
	answer("whatsapp", "Shop Ltd", "a")
	answer("whatsapp", "Shop Ltd", "d")
	if w, s := queued(outbox.KindWhatsApp), queued(outbox.KindSMS); w != 2 || s != 1 {
		t.Errorf("%d and %d answers", w, s)
	}
	for code, c := range map[string]messages.TextAnswer{
		"invalid":   {Profile: annID, Channel: "email", Text: "x", Key: "k"},
		"not_found": {Profile: "prf_none", Channel: "sms", Text: "x", Key: "k"},
	} {
		r.refusedWhole(code, messages.CommandTextAnswer, c)
	}
	for _, c := range []messages.TextAnswer{{Profile: annID, Channel: "sms", Key: "k"}, {Profile: annID, Channel: "sms", Text: "x"}} {
		r.refusedWhole("invalid", messages.CommandTextAnswer, c)
	}

	// The two are one person, with whom there are two conversations.
	r.events(eventlog.Event{Type: []byte("signed_in"), ExternalID: []byte("1"), Phone: []byte(ann)}, eventlog.Event{Type: []byte("signed_in"), ExternalID: []byte("1"), Phone: []byte(bob)})
	o, _ := r.view().Profiles().Find(IdentityPhone, bob)
	same, _ := r.view().Profiles().Find(IdentityPhone, ann)
	both := func() bool { return open(ann, began+conversations.WindowMs) && open(bob, later) }
	if o != same || !both() {
		t.Fatalf("profiles %d and %d", o, same)
	}
	d.reload()
	if !both() {
		t.Error("a restart changes conversations")
	}
	r.must(CommandContactErase, ContactErase{ID: r.view().Profiles().ID(o).String()})
	if !open(ann, 0) || !open(bob, 0) {
		t.Error("an erased person's conversation is open")
	}
	r.must(conversations.CommandOpen, conversations.Open{Number: r.view().Reach().ConversationNumber(bob)})
	if !open(bob, 0) {
		t.Error("an erased person begins a conversation")
	}
	d.reload()
}

// TestConversationsAreOfNumbers: what a person wrote from one number lets nobody write to
// another, and what an account's own server sends as an event opens no conversation. Under older
// rules a conversation is the profile's, and any event opens it; a newer build ends those when
// they are over.
func TestConversationsAreOfNumbers(t *testing.T) {
	t.Parallel()
	const ann, bob = "+491701234567", "+491707654321"
	event := func(r *recorder, phone string) {
		r.events(eventlog.Event{Type: []byte(conversations.Received), ExternalID: []byte("1"), Phone: []byte(phone)})
	}
	may := func(r *recorder) bool {
		o, _ := r.view().Profiles().Find(IdentityPhone, ann)
		p, err := r.view().Profiles().Get(o)
		if err != nil {
			t.Fatal(err)
		}
		return r.view().Reach().MayWriteFreely(o, p.Newest(IdentityPhone), r.now)
	}
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	event(r, ann)
	if may(r) {
		t.Error("an event that anybody may send opens a conversation")
	}
	r.must(conversations.CommandOpen, conversations.Open{Number: r.view().Reach().ConversationNumber(ann), WrittenMs: r.now})
	if !may(r) {
		t.Error("a text opens no conversation")
	}
	r.now++
	r.events(eventlog.Event{Type: []byte("moved"), ExternalID: []byte("1"), Phone: []byte(bob)})
	if may(r) {
		t.Error("the conversation with the old number is open for the new one")
	}
	d.reload()

	d = newDurableUnder(t, DefaultSettings(), 24)
	r = d.recorder
	event(r, ann)
	r.now++
	r.events(eventlog.Event{Type: []byte("moved"), ExternalID: []byte("1"), Phone: []byte(bob)})
	if !may(r) {
		t.Error("older rules do not hold")
	}
	r.rules(ApplyVersion)
	d.reload()
	if !may(r) {
		t.Error("a newer build ends a conversation")
	}
	r.now += conversations.WindowMs
	event(r, ann)
	if may(r) {
		t.Error("the rules are not the newer ones")
	}
	d.reload()
}

// TestFirstFinalStateOfATextHolds: of reports that contradict each other the first counts, for a
// campaign as for single messages; the others count nowhere and block nobody. A text that was
// read was delivered. Under older rules all of them count.
func TestFirstFinalStateOfATextHolds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		channel string
		kinds   string // of the reports
		refused string // those of them that are
		events  string // number of events delivered, opened, failed and bounced
		older   string // the same under older rules
		blocked string
	}{
		"delivered, then failed":       {"sms", "delivery failure", "failure", "1 0 0 0", "1 0 1 0", ""},
		"failed, then delivered":       {"sms", "failure delivery", "delivery", "0 0 1 0", "1 0 1 0", "bounced"},
		"failed twice":                 {"sms", "failure failure", "", "0 0 1 0", "0 0 2 0", "bounced"},
		"delivered twice":              {"im", "delivery delivery", "", "1 0 0 0", "2 0 0 0", ""},
		"read, then failed":            {"whatsapp", "open failure", "failure", "0 1 0 0", "0 1 1 0", ""},
		"read, then delivered":         {"whatsapp", "open delivery failure", "failure", "1 1 0 0", "1 1 1 0", ""},
		"delivered, then read twice":   {"whatsapp", "delivery open open failure", "failure", "1 2 0 0", "1 2 1 0", ""},
		"failed, then read":            {"whatsapp", "failure open", "open", "0 0 1 0", "0 1 1 0", "bounced"},
		"delivered, then bounced":      {"sms", "delivery bounce soft_bounce", "bounce soft_bounce", "1 0 0 0", "1 0 0 1", ""},
		"an e-mail that bounces later": {"email", "delivery bounce", "", "1 0 0 1", "1 0 0 1", "bounced"},
	} {
		for _, version := range []int{ApplyVersion, 24} {
			for _, campaign := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/%v", name, version, campaign), func(t *testing.T) {
					d := newDurableUnder(t, DefaultSettings(), version)
					r := d.recorder
					id := r.contact(contacts.Create{Email: "ann@x.io", ListID: r.list("one")})
					o := r.profile(id).Ordinal
					send := messages.OutboxSend(77, o)
					var x campaigns.Campaign
					if campaign {
						r.m.accounts[testAccount].EmailCredits = 1
						x = r.campaign()
						r.start(campaigns.Start{ID: x.ID, Plan: campaigns.Plan{ListIDs: r.profile(id).Lists}})
						send = messages.CampaignSend(x.Number, o, 0)
					}
					var refused []string
					for i, kind := range strings.Fields(c.kinds) {
						out := r.command(messages.CommandEngagement, messages.EngagementRecord{Send: send, Channel: c.channel, Kind: kind, Hard: kind == "failure", Key: fmt.Sprint(i)})
						if out.Refusal != nil {
							refused = append(refused, kind)
						}
						if i == 0 {
							d.reload()
						}
					}
					want, wantRefused := c.events, c.refused
					if version < ApplyVersion {
						want, wantRefused = c.older, ""
					}
					got := ""
					for _, verb := range []string{"_delivered", "_opened", "_failed", "_bounced"} {
						got += fmt.Sprintf(" %d", r.seen(c.channel+verb))
					}
					if got[1:] != want || strings.Join(refused, " ") != wantRefused {
						t.Errorf("events%s, expected %s; refused %s, expected %s", got, want, refused, wantRefused)
					}
					n := func(at int) uint64 { return min(1, uint64(strings.Fields(want)[at][0]-'0')) }
					if figures := r.view().Campaigns().Numbers(x); campaign && version == ApplyVersion && (figures.Delivered != max(n(0), n(1)) || figures.Bounced != max(n(2), n(3))) {
						t.Errorf("%+v", figures)
					}
					if p, _ := r.view().Profiles().Get(o); version == ApplyVersion && p.SuppressionReason(c.channel) != c.blocked {
						t.Errorf("blocked: %q", p.SuppressionReason(c.channel))
					}
				})
			}
		}
	}
}

// TestNewestOfStopAndStartHolds: a STOP or START that is delivered late does not undo one that
// was written after it, whatever the order in which they come.
func TestNewestOfStopAndStartHolds(t *testing.T) {
	t.Parallel()
	const stop, start, link = messages.EngagementUnsubscribed, messages.EngagementSubscribed, "link"
	type word struct {
		kind    string
		written int64 // seconds; 0 where the provider does not say
		came    int64
	}
	for name, c := range map[string]struct {
		words       []word
		want, older string
	}{
		"in order":                        {[]word{{stop, 1, 1}, {start, 5, 5}}, "subscribed", "subscribed"},
		"an old START":                    {[]word{{stop, 5, 5}, {start, 1, 9}}, "unsubscribed", "unsubscribed"},
		"an old STOP":                     {[]word{{start, 5, 5}, {stop, 1, 9}}, "subscribed", "unsubscribed"},
		"an old STOP of a subscriber":     {[]word{{start, 1, 1}, {start, 5, 5}, {stop, 3, 9}}, "subscribed", "unsubscribed"},
		"both late, in order":             {[]word{{stop, 1, 20}, {start, 5, 21}}, "subscribed", "unsubscribed"},
		"both late, in the other order":   {[]word{{start, 5, 20}, {stop, 1, 21}}, "subscribed", "unsubscribed"},
		"two STOPs, all late":             {[]word{{start, 1, 20}, {stop, 2, 21}, {stop, 3, 22}, {start, 5, 23}}, "subscribed", "unsubscribed"},
		"STOP, START and STOP, all late":  {[]word{{stop, 2, 21}, {stop, 3, 22}, {start, 4, 23}, {stop, 6, 24}, {start, 5, 25}}, "unsubscribed", "unsubscribed"},
		"a link, two STOPs, a late START": {[]word{{start, 1, 1}, {link, 0, 9}, {stop, 3, 10}, {stop, 4, 11}, {start, 5, 12}}, "unsubscribed", "unsubscribed"},
		"STOP last, both late":            {[]word{{start, 1, 20}, {stop, 5, 21}}, "unsubscribed", "unsubscribed"},
		"STOP last, in the other order":   {[]word{{stop, 5, 20}, {start, 1, 21}}, "unsubscribed", "unsubscribed"},
		"a link after a STOP":             {[]word{{start, 1, 1}, {link, 0, 4}, {stop, 3, 6}, {start, 2, 9}}, "unsubscribed", "unsubscribed"},
		"a START older than a link":       {[]word{{stop, 1, 1}, {start, 2, 2}, {link, 0, 9}, {start, 5, 20}}, "unsubscribed", "unsubscribed"},
		"without times":                   {[]word{{stop, 0, 1}, {start, 0, 2}}, "subscribed", "subscribed"},
		"without times, STOP last":        {[]word{{start, 0, 1}, {stop, 0, 2}}, "unsubscribed", "unsubscribed"},
		"a STOP without a time":           {[]word{{stop, 0, 9}, {start, 5, 20}}, "unsubscribed", "unsubscribed"},
		"a clock that is ahead":           {[]word{{stop, 900, 5}, {start, 7, 8}}, "subscribed", "subscribed"},
		"a STOP after one without a time": {[]word{{start, 0, 9}, {stop, 5, 20}}, "unsubscribed", "unsubscribed"},
	} {
		for _, version := range []int{ApplyVersion, 24} {
			t.Run(fmt.Sprintf("%s/%d", name, version), func(t *testing.T) {
				d := newDurableUnder(t, DefaultSettings(), version)
				r := d.recorder
				id := r.contact(contacts.Create{Email: "ann@x.io"})
				began := r.now
				for i, w := range c.words {
					r.now = began + w.came*1000
					e := messages.EngagementRecord{Profile: id, Channel: "whatsapp", Kind: w.kind, Source: "reply", Key: fmt.Sprint(i)}
					if w.written != 0 {
						e.WrittenMs = began + w.written*1000
					}
					if w.kind == link {
						e = messages.EngagementRecord{Send: messages.OutboxSend(77, r.profile(id).Ordinal), Channel: "whatsapp", Kind: stop, Source: "link"}
					}
					again := r.command(messages.CommandEngagement, e).Refusal
					if twice := r.command(messages.CommandEngagement, e).Refusal; (again == nil) != (twice == nil) {
						t.Errorf("%v: refused %v, and again %v", w, again, twice)
					}
					d.reload()
				}
				want := c.want
				if version < ApplyVersion {
					want = c.older
				}
				p, err := r.view().Profiles().Get(r.profile(id).Ordinal)
				if err != nil {
					t.Fatal(err)
				}
				if got := p.Consent("whatsapp").Status; got != want {
					t.Errorf("%s, expected %s", got, want)
				}
			})
		}
	}
}
