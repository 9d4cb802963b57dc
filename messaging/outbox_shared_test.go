package messaging_test

import (
	"testing"

	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/reach"
)

// TestFlowsDoNotReachARefusedNumber: an SMS of a flow does not go to a number that
// identifies another contact, who refused SMS.
func TestFlowsDoNotReachARefusedNumber(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	flow := w.flow(`{"id":"m","type":"sms","text":"Hello","next":null}`)
	holder := w.contact("holder@x.io", "+49 30 1")
	w.contact("other@x.io", "+49301")
	w.contact("own@x.io", "+49302")
	w.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: holder, Channel: "sms", Status: "unsubscribed", Source: "form"})
	store, err := capture.Open(capture.Options{Dir: t.TempDir(), MaxBytes: 1 << 20})
	ok(t, err)
	t.Cleanup(func() { ok(t, store.Close()) })
	w.effects(accepts, func(o *messaging.OutboxOptions) { o.Capture = store })
	w.trigger(flow, "other@x.io", `{}`)
	w.trigger(flow, "own@x.io", `{}`)
	w.until("both are on record", func(v *resolver.View) bool {
		return empty(v) && count(v, "sms_sent") == 1 && count(v, "sms_failed") == 1
	})
	w.recorded("sms_failed", reach.ReasonNumberRefused)
	list, _, err := store.List(capture.Filter{}, 0, 0)
	ok(t, err)
	if len(list) != 1 || list[0].To != "+49302" {
		t.Errorf("%+v", list)
	}
}
