package messaging_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/resolver"
)

// TestLostMessagesKeepTheirCredit: an e-mail whose answer was lost may have arrived. It keeps
// its credit, also where a later attempt is turned down; one that was turned down at once
// gives it back.
func TestLostMessagesKeepTheirCredit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	flow := w.flowOf("after_exit", `{"id":"m","type":"email","subject":"s","body":"<p>b</p>","next":null}`)
	w.contact("ada@x.io", "+491701234567")
	var lost atomic.Bool
	_, stop := w.effects(messaging.MailerFunc(func(*email.Message) outcome.Result {
		if lost.CompareAndSwap(true, false) {
			return outcome.New(outcome.Ambiguous, "", "the connection broke")
		}
		return outcome.New(outcome.Permanent, "550", "no")
	}), func(*messaging.OutboxOptions) {})
	defer stop()
	left := func() (n int64) {
		ok(t, w.node.Read(t.Context(), w.account, func(v *resolver.View) error { n = credits(v); return nil }))
		return n
	}
	before := left()
	w.trigger(flow, "ada@x.io", `{}`)
	w.until("the e-mail is turned down", func(v *resolver.View) bool { return empty(v) && count(v, "email_failed") == 1 })
	if n := left(); n != before {
		t.Errorf("%d credits of %d are left", n, before)
	}
	lost.Store(true)
	w.trigger(flow, "ada@x.io", `{}`)
	w.until("the answer is lost", func(v *resolver.View) bool {
		l := w.waitingIn(v, "email")
		return !lost.Load() && len(l) == 1 && l[0].Handed
	})
	w.Advance(time.Hour)
	w.until("the e-mail is turned down", func(v *resolver.View) bool { return empty(v) && count(v, "email_failed") == 2 })
	if n := left(); n != before-1 {
		t.Errorf("%d credits of %d are left", n, before)
	}
}
