package messaging_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/messages"
)

// TestAnswersToKeywordsRespectSuppression: STOP and HELP are answered also to people who have
// unsubscribed, START only to people who may be sent to, and nobody who is suppressed.
func TestAnswersToKeywordsRespectSuppression(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var want []string
	for i, c := range []struct {
		status, reason string
		start, sent    bool
	}{
		{"unsubscribed", "", false, true}, {"unsubscribed", "", true, false},
		{"subscribed", "", false, true}, {"subscribed", "", true, true},
		{"subscribed", "suppressed", false, false}, {"subscribed", "suppressed", true, false},
		{"subscribed", "complained", false, false}, {"unsubscribed", "bounced", false, false},
	} {
		phone := fmt.Sprintf("+4930%d", i)
		id := w.contact(fmt.Sprintf("p%d@x.io", i), phone)
		w.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "sms", Status: c.status, Source: "reply"})
		w.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "sms", Reason: c.reason})
		w.must(messages.CommandTextAnswer, messages.TextAnswer{Profile: id, Channel: "sms", Text: "Shop Ltd", Start: c.start, Key: phone})
		if c.sent {
			want = append(want, phone)
		}
	}
	store, err := capture.Open(capture.Options{Dir: t.TempDir(), MaxBytes: 1 << 20})
	ok(t, err)
	t.Cleanup(func() { ok(t, store.Close()) })
	w.effects(accepts, func(o *messaging.OutboxOptions) { o.Capture = store })
	w.until("all answers are on record", func(v *resolver.View) bool { return empty(v) && count(v, "sms_sent")+count(v, "sms_failed") == 8 })
	list, _, err := store.List(capture.Filter{}, 0, 0)
	ok(t, err)
	var got []string
	for _, m := range list {
		got = append(got, m.To)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("answered: %q, expected %q", got, want)
	}
}
