package resolver

import (
	"encoding/json"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/conversations"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/sending"
)

// TestTextsStory: texts that people write by WhatsApp open conversations, which merges and
// erasures follow; START and STOP count once, and answers go out once, and not too often.
func TestTextsStory(t *testing.T) {
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	const ann, bob = "+491701234567", "+491707654321"
	wrote := func(phone string) uint32 {
		r.events(eventlog.Event{Type: []byte(conversations.Received), Phone: []byte(phone), Properties: []byte(`{"text":"Hi"}`)})
		o, _ := r.view().Find(IdentityPhone, phone)
		return o
	}
	open := func(o uint32) int64 { return r.view().Conversations().OpenUntil(o) }
	first := wrote(ann)
	began := r.now
	r.now += 1000
	second := wrote(bob)
	if open(first) != began+conversations.WindowMs || open(second) != r.now+conversations.WindowMs {
		t.Fatalf("open until %d and %d", open(first), open(second))
	}
	annID, bobID := r.view().ProfileID(first).String(), r.view().ProfileID(second).String()
	say := func(id, kind, key string) {
		r.must(messages.CommandEngagement, messages.EngagementRecord{Profile: id, Channel: "whatsapp", Kind: kind, Source: "reply", Key: key})
	}
	consent := func(o uint32) string {
		p, err := r.view().Profile(o)
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
	if p, _ := r.view().Profile(second); p.Blocked("whatsapp") != "" {
		t.Errorf("a failure blocks: %s", p.Blocked("whatsapp"))
	}
	r.must(messages.CommandEngagement, messages.EngagementRecord{Profile: bobID, Channel: "whatsapp", Kind: messages.EngagementFailed, Hard: true, Key: "6"})
	if p, _ := r.view().Profile(second); p.Blocked("whatsapp") != "bounced" {
		t.Errorf("a dead number: %q", p.Blocked("whatsapp"))
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

	// The two are one person, whose conversation is the later one.
	later := open(second)
	r.events(eventlog.Event{Type: []byte("signed_in"), ExternalID: []byte("1"), Phone: []byte(ann)}, eventlog.Event{Type: []byte("signed_in"), ExternalID: []byte("1"), Phone: []byte(bob)})
	o, _ := r.view().Find(IdentityPhone, bob)
	same, _ := r.view().Find(IdentityPhone, ann)
	if o != same || open(o) != later {
		t.Fatalf("profiles %d and %d, open until %d, expected %d", o, same, open(o), later)
	}
	d.reload()
	if open(o) != later {
		t.Errorf("after a restart it is open until %d", open(o))
	}
	r.must(CommandContactErase, ContactErase{ID: r.view().ProfileID(o).String()})
	if open(o) != 0 || open(first) != 0 || open(second) != 0 {
		t.Error("an erased person's conversation is open")
	}
	d.reload()
}
