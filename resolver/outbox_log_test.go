package resolver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

// unordered makes an endpoint whose deliveries need not go out in order.
func (r *recorder) unordered(events ...string) string {
	r.t.Helper()
	url := "https://hooks.example.com/"
	return answer[struct{ ID string }](r.t, r.must(outbox.CommandWebhookCreate, outbox.WebhookSave{URL: &url, Events: &events, Secret: "whsec_1", Ordered: new(bool)})).ID
}

func (r *recorder) done(w view.OutboxWork, result string) {
	r.t.Helper()
	r.must(messages.CommandOutboxDone, outbox.Done{Seq: w.Seq, Attempt: w.Attempt, Ordinal: w.Ordinal, ItemName: w.ItemName, Result: result, DelayMs: 5000, Reason: map[bool]string{true: "500"}[result != outbox.ResultSent],
		Log: &outbox.DeliveryAnswer{Status: 500, TookMs: 3, Answer: "the answer for a1@x.io"}})
}

// TestOrderIsAChoice: an endpoint becomes ordered and unordered while items wait, and
// one of a log of before there was the choice is ordered.
func TestOrderIsAChoice(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	id := r.unordered("contact.created")
	for i := range 5 {
		r.contact(contacts.Create{Email: fmt.Sprintf("u%d@x.io", i)})
	}
	due := r.due(outbox.KindWebhook)
	if len(due) != 5 {
		t.Fatalf("%d are due, expected 5", len(due))
	}
	r.done(due[1], outbox.ResultRetry)
	r.done(due[2], outbox.ResultSent)
	set := func(ordered bool) []view.OutboxWork {
		r.must(outbox.CommandWebhookUpdate, outbox.WebhookSave{ID: id, Ordered: &ordered})
		return r.due(outbox.KindWebhook)
	}
	if got := set(true); len(got) != 1 || got[0].Seq != due[0].Seq {
		t.Fatalf("%+v", got)
	}
	r.done(due[0], outbox.ResultSent)
	if got := r.due(outbox.KindWebhook); len(got) != 0 {
		t.Fatalf("%+v overtook the one that waits", got)
	}
	if got := set(false); len(got) != 2 || got[0].Seq != due[3].Seq {
		t.Fatalf("%+v", got)
	}
	if old := endpointOf(r.m.accounts[testAccount], r.endpoint("*")); old.Unordered {
		t.Fatal("an endpoint without the choice is unordered")
	}
}

// TestErasureLeavesNothingInDeliveryLog: lines, answers and payloads of the person go,
// whatever became of the delivery; those of others stay.
func TestErasureLeavesNothingInDeliveryLog(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	id := r.unordered("contact.created")
	other := r.contact(contacts.Create{Email: "other@x.io"})
	r.done(r.due(outbox.KindWebhook)[0], outbox.ResultSent)
	person := r.contact(contacts.Create{Email: "a1@x.io"})
	w := r.due(outbox.KindWebhook)[0]
	for _, result := range []string{outbox.ResultSent, outbox.ResultRetry, outbox.ResultFailed} {
		r.done(w, result)
		if list, err := r.view().Outbox().Deliveries(id, "", 0, 10); err != nil || len(list) != 2 || list[0].Origin != w.Origin || list[0].Attempts[len(list[0].Attempts)-1].Answer == "" {
			t.Fatalf("%+v, %v", list, err)
		}
		r.now += 5000
		r.must(outbox.CommandWebhookReplay, outbox.WebhookReplay{ID: id, Origin: w.Origin})
		w = r.due(outbox.KindWebhook)[0]
	}
	r.done(w, outbox.ResultSent)
	r.must(CommandContactErase, ContactErase{ID: person})
	list, err := r.view().Outbox().Deliveries(id, "", 0, 10)
	if err != nil || len(list) != 1 || list[0].Origin == w.Origin {
		t.Fatalf("%+v, %v", list, err)
	}
	for k, b := range r.m.store.Entities {
		if strings.Contains(string(b), "a1@x.io") && !strings.Contains(string(b), string(list[0].Attempts[0].Answer)) {
			t.Errorf("%q has the person", k)
		}
	}
	if b, _ := r.view().Outbox().Payload(w.Origin); b != nil {
		t.Fatal("the payload is left behind")
	}
	if _, _, ok, err := r.view().Outbox().Delivery(id, list[0].Origin); !ok || err != nil || other == "" {
		t.Fatal("another's is gone")
	}
}
