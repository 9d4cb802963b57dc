package resolver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver/internal/state"
)

// unordered makes an endpoint whose deliveries need not go out in order.
func (r *recorder) unordered(events ...string) string {
	r.t.Helper()
	url := "https://hooks.example.com/"
	return answer[struct{ ID string }](r.t, r.must(CommandWebhookCreate, WebhookSave{URL: &url, Events: &events, Secret: "whsec_1", Ordered: new(bool)})).ID
}

func (r *recorder) done(w OutboxWork, result string) {
	r.t.Helper()
	r.must(CommandOutboxDone, OutboxDone{Seq: w.Seq, Attempt: w.Attempt, Ordinal: w.Ordinal, ItemName: w.ItemName, Result: result, DelayMs: 5000, Reason: map[bool]string{true: "500"}[result != ResultSent],
		Log: &DeliveryAnswer{Status: 500, TookMs: 3, Answer: "the answer for a1@x.io"}})
}

// TestOrderIsAChoice: an endpoint becomes ordered and unordered while items wait, and
// one of a log of before there was the choice is ordered.
func TestOrderIsAChoice(t *testing.T) {
	r := newRecorder(t, DefaultSettings())
	id := r.unordered("contact.created")
	for i := range 5 {
		r.contact(ContactCreate{Email: fmt.Sprintf("u%d@x.io", i)})
	}
	due := r.due(OutboxWebhook)
	if len(due) != 5 {
		t.Fatalf("%d are due, expected 5", len(due))
	}
	r.done(due[1], ResultRetry)
	r.done(due[2], ResultSent)
	set := func(ordered bool) []OutboxWork {
		r.must(CommandWebhookUpdate, WebhookSave{ID: id, Ordered: &ordered})
		return r.due(OutboxWebhook)
	}
	if got := set(true); len(got) != 1 || got[0].Seq != due[0].Seq {
		t.Fatalf("%+v", got)
	}
	r.done(due[0], ResultSent)
	if got := r.due(OutboxWebhook); len(got) != 0 {
		t.Fatalf("%+v overtook the one that waits", got)
	}
	if got := set(false); len(got) != 2 || got[0].Seq != due[3].Seq {
		t.Fatalf("%+v", got)
	}
	if old := r.m.accounts[testAccount].endpoints[r.endpoint("*")]; old.Unordered {
		t.Fatal("an endpoint without the choice is unordered")
	}
}

// TestDeliveryLogIsBounded: failures outlast what was delivered, and payloads leave
// with their lines.
func TestDeliveryLogIsBounded(t *testing.T) {
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	id := r.unordered("*")
	put := func(bytes int) OutboxWork {
		payload := []byte(strings.Repeat("x", bytes))
		seq, refusal := r.m.queue(a, OutboxItem{Kind: OutboxWebhook, Ordinal: NoProfile, Endpoint: id, Ref: "x"}, payload)
		if refusal != nil {
			t.Fatal(refusal)
		}
		return OutboxWork{OutboxItem: *a.outbox.items[seq]}
	}
	payloads := func() (n int) {
		for k, b := range r.m.store.Entities {
			if k[0] == state.TablePayload && b != nil {
				n++
			}
		}
		return n
	}
	for range 10 {
		r.done(put(1), ResultRetry)
	}
	first := put(1)
	r.done(first, ResultSent)
	for range maxDeliveries + 5 {
		r.done(put(1), ResultSent)
	}
	g := a.outbox.logs[id]
	if len(g.lines) != maxDeliveries || g.delivered != maxDeliveries-10 || payloads() != maxDeliveries || a.outbox.line(id, first.Origin) != nil {
		t.Fatalf("%d lines, %d delivered, %d payloads", len(g.lines), g.delivered, payloads())
	}
	for range maxDeliveries {
		r.done(put(1), ResultRetry)
	}
	if g.delivered != maxDeliveredKept || len(g.lines) != maxDeliveries {
		t.Fatalf("%d lines, %d delivered", len(g.lines), g.delivered)
	}
	for range 2 * maxDeliveryBytes / maxOutboxPayload {
		r.done(put(maxOutboxPayload), ResultSent)
	}
	if g.bytes > maxDeliveryBytes {
		t.Fatalf("payloads of %d bytes", g.bytes)
	}
	// Each waiting item still has its payload.
	for seq, it := range a.outbox.items {
		if b, err := r.m.store.Entity(payloadKey(testAccount, it.Origin)); err != nil || b == nil {
			t.Fatalf("item %d has no payload", seq)
		}
	}
}

// TestErasureLeavesNothingInDeliveryLog: lines, answers and payloads of the person go,
// whatever became of the delivery; those of others stay.
func TestErasureLeavesNothingInDeliveryLog(t *testing.T) {
	r := newRecorder(t, DefaultSettings())
	id := r.unordered("contact.created")
	other := r.contact(ContactCreate{Email: "other@x.io"})
	r.done(r.due(OutboxWebhook)[0], ResultSent)
	person := r.contact(ContactCreate{Email: "a1@x.io"})
	w := r.due(OutboxWebhook)[0]
	for _, result := range []string{ResultSent, ResultRetry, ResultFailed} {
		r.done(w, result)
		if list, err := r.view().Deliveries(id, "", 0, 10); err != nil || len(list) != 2 || list[0].Origin != w.Origin || list[0].Attempts[len(list[0].Attempts)-1].Answer == "" {
			t.Fatalf("%+v, %v", list, err)
		}
		r.now += 5000
		r.must(CommandWebhookReplay, WebhookReplay{ID: id, Origin: w.Origin})
		w = r.due(OutboxWebhook)[0]
	}
	r.done(w, ResultSent)
	r.must(CommandContactErase, ContactErase{ID: person})
	list, err := r.view().Deliveries(id, "", 0, 10)
	if err != nil || len(list) != 1 || list[0].Origin == w.Origin {
		t.Fatalf("%+v, %v", list, err)
	}
	for k, b := range r.m.store.Entities {
		if strings.Contains(string(b), "a1@x.io") && !strings.Contains(string(b), string(list[0].Attempts[0].Answer)) {
			t.Errorf("%q has the person", k)
		}
	}
	if b, _ := r.m.store.Entity(payloadKey(testAccount, w.Origin)); b != nil {
		t.Fatal("the payload is left behind")
	}
	if _, _, ok, err := r.view().Delivery(id, list[0].Origin); !ok || err != nil || other == "" {
		t.Fatal("another's is gone")
	}
}
