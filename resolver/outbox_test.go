package resolver

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/sending"
	"github.com/musterhq/muster/resolver/view"
	"github.com/musterhq/muster/segment"
)

func (r *recorder) template() string {
	r.t.Helper()
	return answer[campaigns.Template](r.t, r.must(campaigns.CommandTemplateSave, campaigns.Template{Name: "t", Source: campaigns.TemplateList, Subject: "s", HTML: "<p>{{confirm_url}}"})).ID
}

func (r *recorder) endpoint(events ...string) string {
	r.t.Helper()
	url := "https://hooks.example.com/"
	return answer[struct{ ID string }](r.t, r.must(outbox.CommandWebhookCreate, outbox.WebhookSave{URL: &url, Events: &events, Secret: "whsec_1"})).ID
}

// due lists what is due now, by kind.
func (r *recorder) due(kind string) []view.OutboxWork {
	r.t.Helper()
	list, err := r.view().OutboxDue(kind, r.now, 1000, func(uint64) bool { return false })
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

// heard empties an endpoint and lists the payloads.
func (r *recorder) heard() (names []string, payloads []map[string]any) {
	r.t.Helper()
	for list := r.due(outbox.KindWebhook); len(list) > 0; list = r.due(outbox.KindWebhook) {
		for _, w := range list {
			var p struct {
				Type string
				Data map[string]any
			}
			if err := json.Unmarshal(w.Payload, &p); err != nil {
				r.t.Fatal(err)
			}
			names, payloads = append(names, p.Type), append(payloads, p.Data)
			r.must(messages.CommandOutboxDone, outbox.Done{Seq: w.Seq, Attempt: w.Attempt, Result: outbox.ResultSent})
		}
	}
	return names, payloads
}

func (r *recorder) count(typ string) uint64 {
	if t := r.m.accounts[testAccount].Types.Get(typ); t != nil {
		return t.Count
	}
	return 0
}

func mailTo(to, template string) messages.EmailSend {
	return messages.EmailSend{Mail: messages.Mail{To: to, TemplateID: template}}
}

func TestTransactionalMailGoesToAllWhoCanBeReached(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	a.EmailCredits = 3
	tpl := r.template()
	gone := r.contact(contacts.Create{Email: "left@x.io"})
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: gone, Channel: "email", Status: "unsubscribed"})
	for i, reason := range messages.Undeliverable {
		address := fmt.Sprintf("b%d@x.io", i)
		r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: r.contact(contacts.Create{Email: address}), Channel: "email", Reason: reason})
		r.refuses("to: the address is blocked ("+reason+")", messages.CommandEmailSend, mailTo(address, tpl))
	}
	r.refuses("there is no such template", messages.CommandEmailSend, mailTo("a@x.io", "tpl_0"))
	r.refuses("to Field required", messages.CommandEmailSend, mailTo(" ", tpl))
	r.refuses("to \"null\" is a placeholder", messages.CommandEmailSend, mailTo("null", tpl))
	bad := mailTo("a@x.io", tpl)
	bad.Sender = "a@elsewhere.com"
	r.refuses("is not verified", messages.CommandEmailSend, bad)
	if a.EmailCredits != 3 || a.Profiles.Headers.Count != 4 || a.Outbox.Len() != 0 {
		t.Fatalf("what was refused changed something: %d credits, %d profiles, %d items", a.EmailCredits, a.Profiles.Headers.Count, a.Outbox.Len())
	}

	// Marketing does not go to people who have unsubscribed.
	r.refuses("to: the person has unsubscribed from e-mail; only templates that are marked transactional", messages.CommandEmailSend, mailTo("left@x.io", tpl))
	if a.EmailCredits != 3 || a.Outbox.Len() != 0 {
		t.Fatalf("what was refused changed something: %d credits, %d items", a.EmailCredits, a.Outbox.Len())
	}
	r.must(campaigns.CommandTemplateSave, campaigns.Template{ID: tpl, Name: "Receipt", Source: campaigns.TemplateList, Subject: "s", HTML: "<p>h</p>", Transactional: true})
	r.must(messages.CommandEmailSend, mailTo("Left@X.io", tpl))
	fresh := answer[messages.EmailSendReply](t, r.must(messages.CommandEmailSend, mailTo("new@x.io", tpl)))
	p := r.profile(fresh.Profile)
	if p.IsContact || len(p.Consents) != 0 || p.Newest(IdentityEmail) != "new@x.io" || fresh.Sender != "no-reply@muster.local" {
		t.Fatalf("%+v, %+v", p, fresh)
	}
	// A key makes a repeat harmless.
	keyed := mailTo("left@x.io", tpl)
	keyed.Key = "k"
	first := answer[messages.EmailSendReply](t, r.must(messages.CommandEmailSend, keyed))
	if again := answer[messages.EmailSendReply](t, r.must(messages.CommandEmailSend, keyed)); again != first || a.EmailCredits != 0 || a.Outbox.Len() != 3 {
		t.Fatalf("%+v after %+v, %d credits", again, first, a.EmailCredits)
	}
	other := keyed
	other.To = "new@x.io"
	r.refuses("idempotency_key was used for another message", messages.CommandEmailSend, other)
	r.refuses("out of e-mail credits", messages.CommandEmailSend, mailTo("new@x.io", tpl))
}

func TestOutboxResultsAreRecordedOnce(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	a.EmailCredits = 10
	tpl := r.template()
	send := func() view.OutboxWork {
		r.must(messages.CommandEmailSend, mailTo("a@x.io", tpl))
		return r.due(outbox.KindEmail)[0]
	}
	w := send()
	for range 2 {
		r.must(messages.CommandOutboxDone, outbox.Done{Seq: w.Seq, Result: outbox.ResultRetry, DelayMs: 1000})
	}
	if it := itemOf(a, w.Seq); it.Attempt != 1 || len(r.due(outbox.KindEmail)) != 0 {
		t.Fatalf("%+v", it)
	}
	r.now += 1000
	if later := r.due(outbox.KindEmail); len(later) != 1 || later[0].Send() != w.Send() || string(later[0].Payload) != string(w.Payload) {
		t.Fatalf("%+v", later)
	}
	for range 2 {
		r.must(messages.CommandOutboxDone, outbox.Done{Seq: w.Seq, Attempt: 1, Result: outbox.ResultSent, ProviderID: "p1"})
	}
	if r.count("email_sent") != 1 || a.Outbox.Len() != 0 || a.EmailCredits != 9 {
		t.Fatalf("%d events, %d items, %d credits", r.count("email_sent"), a.Outbox.Len(), a.EmailCredits)
	}
	w = send()
	r.must(messages.CommandOutboxDone, outbox.Done{Seq: w.Seq, Result: outbox.ResultRefused, Reason: "no login"})
	w = send()
	r.must(messages.CommandOutboxDone, outbox.Done{Seq: w.Seq, Result: outbox.ResultMoot})
	if r.count("email_failed") != 1 || a.EmailCredits != 9 {
		t.Fatalf("%d events, %d credits", r.count("email_failed"), a.EmailCredits)
	}
	w = send()
	r.must(messages.CommandOutboxDone, outbox.Done{Seq: w.Seq, Result: outbox.ResultFailed, Reason: "the answer was lost", Handed: true})
	if a.EmailCredits != 8 {
		t.Fatalf("%d credits: what may have gone out costs one", a.EmailCredits)
	}
	w = send()
	r.must(messages.CommandOutboxDone, outbox.Done{Seq: w.Seq, Result: outbox.ResultBounced, Reason: "550"})
	if a.EmailCredits != 8 {
		t.Fatalf("%d credits: what no relay took costs none", a.EmailCredits)
	}
	p, err := r.view().Profiles().Get(w.Root)
	if err != nil || p.SuppressionReason("email") != "bounced" || r.count("email_bounced") != 1 || p.Sent != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	if b, _ := a.Outbox.Payload(w.Origin); b != nil {
		t.Fatal("a payload is left behind")
	}
	// What a provider reports later finds the profile by the message's id.
	r.must(messages.CommandEngagement, messages.EngagementRecord{Send: w.Send(), Channel: "email", Kind: messages.EngagementOpen})
	if p, _ = r.view().Profiles().Get(w.Root); p.Opened != 1 {
		t.Fatalf("%+v", p)
	}
}

func TestOutboxItemFollowsItsProfileThroughAMerge(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.m.accounts[testAccount].EmailCredits = 1
	r.must(messages.CommandEmailSend, mailTo("a@x.io", r.template()))
	r.events(ev("external_id", "7"))
	r.events(ev("external_id", "7", "email", "a@x.io"))
	w := r.due(outbox.KindEmail)[0]
	r.must(messages.CommandOutboxDone, outbox.Done{Seq: w.Seq, Result: outbox.ResultSent})
	p, err := r.view().Profiles().Get(w.Root)
	if err != nil || p.Sent != 1 || p.Newest(IdentityExternalID) != "7" {
		t.Fatalf("%+v, %v", p, err)
	}
}

func TestDoubleOptInAsksOnceAnHour(t *testing.T) {
	t.Parallel()
	s := DefaultSettings()
	s.DoubleOptIn = true
	r := newRecorder(t, s)
	a := r.m.accounts[testAccount]
	a.EmailCredits = 0
	broke := r.contact(contacts.Create{Email: "broke@x.io"})
	if r.count("email_failed") != 1 || r.profile(broke).SuppressionReason("email") != "pending" {
		t.Fatal("without credits the contact's history must say so")
	}
	a.EmailCredits = 10
	id := r.contact(contacts.Create{Email: "a@x.io"})
	list := r.due(outbox.KindEmail)
	if len(list) != 1 || list[0].Ref != messages.RefConfirmation || !strings.Contains(string(list[0].Payload), `"confirm":true`) {
		t.Fatalf("%+v", list)
	}
	flip := func() {
		for _, status := range []string{"unsubscribed", "subscribed"} {
			r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: status, Source: "form"})
		}
	}
	flip()
	if len(r.due(outbox.KindEmail)) != 1 || r.profile(id).SuppressionReason("email") != "pending" {
		t.Fatal("asked twice within the hour")
	}
	r.now += sending.ConfirmEveryMs
	flip()
	if len(r.due(outbox.KindEmail)) != 2 {
		t.Fatal("not asked again after an hour")
	}
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "subscribed", Source: "double_opt_in", Confirm: true})
	if r.profile(id).SuppressionReason("email") != "" {
		t.Fatal("still pending")
	}
	// The template of one's own must have the link, and stays while it is used.
	plain := answer[campaigns.Template](t, r.must(campaigns.CommandTemplateSave, campaigns.Template{Name: "p", Source: campaigns.TemplateList, Subject: "s", HTML: "<p>"})).ID
	s.ConfirmTemplateID = plain
	r.refuses("put {{confirm_url}} into it", CommandSettingsSet, s)
	s.ConfirmTemplateID = r.template()
	r.must(CommandSettingsSet, s)
	r.refuses("confirm_template_id", campaigns.CommandTemplateDelete, campaigns.TemplateDelete{ID: s.ConfirmTemplateID})
}

func TestWebhooksTellWhatTheirEndpointsAskFor(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	a.EmailCredits = 10
	before := r.contact(contacts.Create{Email: "before@x.io"})
	r.endpoint("*")
	l := r.list("news")
	r.contact(contacts.Create{Email: "a@x.io", ListID: l})
	r.must(contacts.CommandUpdate, contacts.Update{ID: before, FirstName: &[]string{"Ada"}[0]})
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: before, Channel: "email", Status: "unsubscribed", Source: "form"})
	r.must(messages.CommandEmailSend, mailTo("a@x.io", r.template()))
	w := r.due(outbox.KindEmail)[0]
	r.must(messages.CommandOutboxDone, outbox.Done{Seq: w.Seq, Result: outbox.ResultSent})
	r.must(messages.CommandEngagement, messages.EngagementRecord{Send: w.Send(), Channel: "email", Kind: messages.EngagementSoftBounce, Reason: "full"})
	names, payloads := r.heard()
	want := []string{"contact.subscribed", "list.joined", "contact.created", "contact.updated", "contact.unsubscribed", "email.sent", "email.bounced"}
	if !slices.Equal(names, want) {
		t.Fatalf("%v, expected %v", names, want)
	}
	if p := payloads[1]; p["list_id"] != l || p["email"] != "a@x.io" || !strings.HasPrefix(p["profile_id"].(string), "prf_") {
		t.Fatalf("%v", p)
	}
	if p := payloads[6]; p["hard"] != false || p["reason"] != "full" {
		t.Fatalf("%v", p)
	}
}

func TestWebhooksTellWhoEntersASegment(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	r.endpoint("segment.*")
	l := r.list("l")
	onList := r.segment(fmt.Sprintf(`{"kind":"list","list_id":%q}`, l))
	id := r.contact(contacts.Create{Email: "a@x.io", ListID: l})
	r.must(contacts.CommandListRemove, contacts.ListRemove{ListID: l, Profile: id})
	names, payloads := r.heard()
	if !slices.Equal(names, []string{"segment.entered", "segment.exited"}) {
		t.Fatalf("%v", names)
	}
	if p := payloads[0]; p["segment_id"] != onList || p["profile_id"] != id || p["cause"] != "profile" {
		t.Fatalf("%v", p)
	}
	// A change of a definition notifies of no transition; what people do does.
	r.m.notifyTransition(a, &query.Transition{Segment: onList, Entered: true, Cause: segment.CauseDefinition})
	if names, _ = r.heard(); len(names) != 0 {
		t.Fatalf("%v", names)
	}
}

func TestErasedPersonLeavesTheOutbox(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	a.EmailCredits = 3
	r.endpoint("contact.*")
	id := r.contact(contacts.Create{Email: "a@x.io"})
	tpl := r.template()
	r.must(messages.CommandEmailSend, mailTo("a@x.io", tpl))
	w := r.due(outbox.KindEmail)[0]
	hook := r.due(outbox.KindWebhook)[0]
	r.must(messages.CommandOutboxDone, outbox.Done{Seq: hook.Seq, Result: outbox.ResultFailed, Reason: "500"})
	r.must(CommandContactErase, ContactErase{ID: id})
	names, payloads := r.heard()
	if !slices.Equal(names, []string{webhookevent.ContactErased}) || payloads[0]["profile_id"] != id || len(payloads[0]) != 1 {
		t.Fatalf("%v %v", names, payloads)
	}
	if _, dead := r.view().Outbox().EndpointQueue(hook.Endpoint); dead != 0 || a.Outbox.Len() != 0 {
		t.Fatalf("%d dead letters, %d items", dead, a.Outbox.Len())
	}
	// What is reported late changes nothing, and stops nothing.
	r.must(messages.CommandOutboxDone, outbox.Done{Seq: w.Seq, Result: outbox.ResultSent})
	r.command(messages.CommandEngagement, messages.EngagementRecord{Send: w.Send(), Channel: "email", Kind: messages.EngagementOpen})
	r.refuses("to: this person was erased", messages.CommandEmailSend, mailTo("a@x.io", tpl))
}

func TestWebhookNamesAreKnown(t *testing.T) {
	t.Parallel()
	for typ, name := range hookNames {
		if !webhookevent.Known(name) {
			t.Errorf("%s is notified as %s, which is no event", typ, name)
		}
	}
}

func TestEndpointIsALane(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	one, two := r.endpoint("contact.created"), r.endpoint("contact.created")
	for i := range 3 {
		r.contact(contacts.Create{Email: fmt.Sprintf("u%d@x.io", i)})
	}
	due := r.due(outbox.KindWebhook)
	if len(due) != 2 || due[0].Endpoint != one || due[1].Endpoint != two {
		t.Fatalf("%+v", due)
	}
	first := due[0]
	r.must(messages.CommandOutboxDone, outbox.Done{Seq: first.Seq, Result: outbox.ResultRetry, DelayMs: 5000, Reason: "500"})
	for range 3 { // the other continues
		for _, w := range r.due(outbox.KindWebhook) {
			if w.Endpoint != two {
				t.Fatalf("a delivery overtook the one that failed: %+v", w)
			}
			r.must(messages.CommandOutboxDone, outbox.Done{Seq: w.Seq, Result: outbox.ResultSent})
		}
	}
	if e := endpointOf(a, one); e.Failing != 1 || e.LastError != "500" || endpointOf(a, two).Delivered != 3 {
		t.Fatalf("%+v", e)
	}
	r.now += 5000
	r.must(messages.CommandOutboxDone, outbox.Done{Seq: first.Seq, Attempt: 1, Result: outbox.ResultFailed, Reason: "500 again"})
	second := r.due(outbox.KindWebhook)[0]
	if second.Seq <= first.Seq || second.Endpoint != one {
		t.Fatalf("%+v", second)
	}
	r.must(messages.CommandOutboxDone, outbox.Done{Seq: second.Seq, Result: outbox.ResultGone, Reason: "410"})
	if endpointOf(a, one).Status != outbox.EndpointGone || len(r.due(outbox.KindWebhook)) != 0 {
		t.Fatalf("%+v", endpointOf(a, one))
	}
	r.contact(contacts.Create{Email: "later@x.io"}) // is not queued for endpoints that want no more
	if waiting, dead := r.view().Outbox().EndpointQueue(one); waiting != 1 || dead != 2 {
		t.Fatalf("%d waiting, %d dead", waiting, dead)
	}
	r.heard()
	r.refuses("not active", outbox.CommandWebhookReplay, outbox.WebhookReplay{ID: one})
	active := outbox.EndpointActive
	r.must(outbox.CommandWebhookUpdate, outbox.WebhookSave{ID: one, Status: &active})
	letters, err := r.view().Outbox().DeadLetters(one, 0, 10)
	if err != nil || len(letters) != 2 || letters[0].Reason != "500 again" || letters[0].Attempt != 2 || letters[0].Origin != first.Origin {
		t.Fatalf("%+v, %v", letters, err)
	}
	if rest, _ := r.view().Outbox().DeadLetters(one, letters[0].Seq, 10); len(rest) != 1 || rest[0].Seq != letters[1].Seq {
		t.Fatalf("%+v", rest)
	}
	if _, payload, ok, err := r.view().Outbox().DeadLetter(one, letters[1].Seq); !ok || err != nil || string(payload) != string(second.Payload) {
		t.Fatalf("%s, %v, %v", payload, ok, err)
	}
	r.refuses("no dead letter", outbox.CommandWebhookReplay, outbox.WebhookReplay{ID: one, Seq: 1})
	if reply := answer[outbox.ReplayReply](t, r.must(outbox.CommandWebhookReplay, outbox.WebhookReplay{ID: one, Seq: letters[0].Seq})); reply != (outbox.ReplayReply{Replayed: 1, Left: 1}) {
		t.Fatalf("%+v", reply)
	}
	r.must(outbox.CommandWebhookReplay, outbox.WebhookReplay{ID: one})
	var origins []uint64
	for list := r.due(outbox.KindWebhook); len(list) > 0; list = r.due(outbox.KindWebhook) {
		origins = append(origins, list[0].Origin)
		r.must(messages.CommandOutboxDone, outbox.Done{Seq: list[0].Seq, Result: outbox.ResultSent})
	}
	if len(origins) != 3 || !slices.Equal(origins[1:], []uint64{first.Origin, second.Origin}) {
		t.Fatalf("what was replayed keeps its id and goes last: %v", origins)
	}
	r.must(outbox.CommandWebhookTest, outbox.WebhookRef{ID: one})
	if names, _ := r.heard(); !slices.Equal(names, []string{webhookevent.EndpointTest}) {
		t.Fatalf("%v", names)
	}
}

func TestDailyTotals(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.contact(contacts.Create{Email: "before@x.io"})
	r.endpoint("analytics.daily")
	l := r.list("l")
	for i := range 3 {
		r.contact(contacts.Create{Email: fmt.Sprintf("u%d@x.io", i), ListID: l})
	}
	midnight := r.now - r.now%dayMs + dayMs
	if due, ok := r.m.NextDue(); !ok || due != midnight {
		t.Fatalf("due at %d, %v", due, ok)
	}
	date := time.UnixMilli(r.now).UTC().Format(time.DateOnly)
	r.now = midnight - 1
	r.tick()
	if len(r.due(outbox.KindWebhook)) != 0 {
		t.Fatal("the day has not ended")
	}
	r.now = midnight
	r.tick()
	r.tick()
	names, payloads := r.heard()
	if len(names) != 1 || payloads[0]["date"] != date || fmt.Sprint(payloads[0]["counts"]) != "map[list_joined:3 subscribed:3]" {
		t.Fatalf("%v %v", names, payloads)
	}
	// A record that comes before the tick belongs to the next day.
	r.now += dayMs
	r.contact(contacts.Create{Email: "next@x.io"})
	if _, payloads = r.heard(); len(payloads) != 1 || fmt.Sprint(payloads[0]["counts"]) != "map[]" {
		t.Fatalf("%v", payloads)
	}
}

func (r *recorder) tick() {
	r.t.Helper()
	env := r.envelope(eventlog.KindTick)
	env.Account = 0
	r.apply(env.Append(nil))
}

// TestL3EndpointIsRemovedInPieces: continue records remove what waited for a deleted
// endpoint.
func TestL3EndpointIsRemovedInPieces(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	id := r.endpoint("*")
	for i := range 2010 {
		_, refusal := a.Outbox.Queue(r.m.tx.on(a), outbox.Item{Kind: outbox.KindWebhook, Ordinal: outbox.NoProfile, Endpoint: id, Ref: "x"}, fmt.Appendf(nil, "%d", i))
		if refusal != nil {
			t.Fatal(refusal)
		}
	}
	r.must(messages.CommandOutboxDone, outbox.Done{Seq: r.due(outbox.KindWebhook)[0].Seq, Result: outbox.ResultFailed})
	r.must(outbox.CommandWebhookDelete, outbox.WebhookRef{ID: id})
	if len(r.due(outbox.KindWebhook)) != 0 || r.m.Pending() != 1 {
		t.Fatal("what is left must wait to be removed, and not be delivered")
	}
	steps := 0
	for ; r.m.Pending() > 0; steps++ {
		env := r.envelope(eventlog.KindContinue)
		env.Account = 0
		r.apply(env.Append(nil))
	}
	if steps != 2 || a.Outbox.Len() != 0 {
		t.Fatalf("%d steps, %d items", steps, a.Outbox.Len())
	}
}

// TestFullOutboxCostsNothing: a message that finds no room costs no credit.
func TestFullOutboxCostsNothing(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	a.EmailCredits = 1
	for seq := range uint64(outbox.MaxItems) {
		name := string(binary.BigEndian.AppendUint64(nil, 1_000+seq))
		if _, err := a.Outbox.Load(state.EntityOutbox, name, fmt.Appendf(nil, `{"seq":%d}`, 1_000+seq)); err != nil {
			t.Fatal(err)
		}
	}
	r.refuses("wait to be sent", messages.CommandEmailSend, mailTo("a@x.io", r.template()))
	if a.EmailCredits != 1 {
		t.Fatal("a refusal cost a credit")
	}
}

// TestR1OutboxSurvivesARestart: what is queued, dead or waits for a retry is the
// same after a checkpoint and after a replay.
func TestR1OutboxSurvivesARestart(t *testing.T) {
	t.Parallel()
	n := newServedFixture(t, testBootstrap(DefaultSettings()))
	ctx := context.Background()
	command := func(name string, args any) []byte {
		t.Helper()
		b, err := n.Command(ctx, testAccount, name, args)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	command(CommandCreditsAdd, CreditsAdd{Amount: 5})
	var tpl campaigns.Template
	if err := json.Unmarshal(command(campaigns.CommandTemplateSave, campaigns.Template{Name: "t", Source: campaigns.TemplateList, Subject: "s", Text: "x"}), &tpl); err != nil {
		t.Fatal(err)
	}
	url, events := "https://hooks.example.com/", []string{"contact.*", "analytics.daily"}
	command(outbox.CommandWebhookCreate, outbox.WebhookSave{URL: &url, Events: &events, Secret: "whsec_1"})
	for i := range 4 {
		command(contacts.CommandCreate, contacts.Create{Email: fmt.Sprintf("u%d@x.io", i)})
		command(messages.CommandEmailSend, mailTo(fmt.Sprintf("u%d@x.io", i), tpl.ID))
	}
	state := func() (out []string) {
		t.Helper()
		err := n.Read(ctx, testAccount, func(v *View) error {
			for _, kind := range []string{outbox.KindEmail, outbox.KindWebhook} {
				list, err := v.OutboxDue(kind, 1<<60, 100, func(uint64) bool { return false })
				if err != nil {
					return err
				}
				for _, w := range list {
					out = append(out, fmt.Sprintf("%s %s", must.JSON(w.Item), w.Payload))
				}
			}
			for _, e := range v.Outbox().Endpoints() {
				waiting, dead := v.Outbox().EndpointQueue(e.ID)
				letters, err := v.Outbox().DeadLetters(e.ID, 0, 10)
				if err != nil {
					return err
				}
				out = append(out, fmt.Sprintf("%s %d %d %+v", must.JSON(e), waiting, dead, letters))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	var due []view.OutboxWork
	if err := n.Read(ctx, testAccount, func(v *View) (err error) {
		due, err = v.OutboxDue(outbox.KindWebhook, 1<<60, 1, func(uint64) bool { return false })
		return err
	}); err != nil {
		t.Fatal(err)
	}
	command(messages.CommandOutboxDone, outbox.Done{Seq: due[0].Seq, Result: outbox.ResultFailed, Reason: "500"})
	for range 2 {
		want := state()
		_, sum, err := n.StateHash(0)
		if err != nil {
			t.Fatal(err)
		}
		n.restart()
		if got := state(); !slices.Equal(got, want) {
			t.Fatalf("after a restart\n%s\nbefore\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		next, again, err := n.StateHash(0)
		if err != nil || again != sum {
			t.Fatalf("%s, before %s, %v", again, sum, err)
		}
		m, _ := replay(t, n.log, next)
		if fresh, err := m.Hash(); err != nil || fresh != sum {
			t.Fatalf("a replay makes %s of %s, %v", fresh, sum, err)
		}
	}
	n.stop()
}
