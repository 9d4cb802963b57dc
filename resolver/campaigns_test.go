package resolver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

func answer[T any](t testing.TB, out *Outcome) (v T) {
	t.Helper()
	if err := json.Unmarshal(out.Reply, &v); err != nil {
		t.Fatalf("reply %s: %v", out.Reply, err)
	}
	return v
}

func (r *recorder) campaign() campaigns.Campaign {
	r.t.Helper()
	return answer[campaigns.Campaign](r.t, r.must(campaigns.CommandSave, campaigns.Campaign{Name: "news", Channel: 2, Type: 1, Date: "2026-01-01"}))
}

// content is one that may be sent.
var content = campaigns.Content{Subject: "s", HTML: "<p>", Sender: "news@" + domains.Development, Links: []string{"https://a", "https://b"}}

func (r *recorder) start(c campaigns.Start) campaigns.Run {
	r.t.Helper()
	if c.Variants == nil {
		c.Variants = []campaigns.Content{content}
	}
	if c.BatchSize == 0 {
		c.BatchSize = 2
	}
	return answer[campaigns.Run](r.t, r.must(campaigns.CommandStart, c))
}

func (r *recorder) batch(id string, run int) campaigns.BatchReply {
	r.t.Helper()
	return answer[campaigns.BatchReply](r.t, r.must(campaigns.CommandBatch, campaigns.Batch{ID: id, Run: run}))
}

func (r *recorder) run(id string) campaigns.Run {
	r.t.Helper()
	run, ok := r.view().Campaigns().Run(id)
	if !ok {
		r.t.Fatalf("campaign %s was never sent", id)
	}
	return run
}

func TestCampaignReachesEachOnceAndNobodyWhoMayNotBeSent(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	a.EmailCredits = 100
	l, second := r.list("one"), r.list("two")
	for i := range 5 {
		r.contact(contacts.Create{Email: fmt.Sprintf("u%d@x.io", i), ListID: l})
	}
	r.must(contacts.CommandListAdd, contacts.ListAdd{ListID: second, Create: contacts.Create{Email: "u1@x.io"}})
	unreachable := map[string]func(id string){
		"unsubscribed": func(id string) {
			r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "unsubscribed"})
		},
		"bounced": func(id string) {
			r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "email", Reason: "bounced"})
		},
		"complained": func(id string) {
			r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "email", Reason: "complained"})
		},
		"suppressed": func(id string) {
			r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "email", Reason: "suppressed"})
		},
	}
	for reason, do := range unreachable {
		do(r.contact(contacts.Create{Email: reason + "@x.io", ListID: l}))
	}
	r.contact(contacts.Create{Phone: "+49 1", ListID: second})
	c := r.campaign()
	run := r.start(campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l, second}}})
	if run.Total != 10 {
		t.Fatalf("%d recipients", run.Total)
	}
	r.refuses("is being sent", campaigns.CommandStart, campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}, BatchSize: 1}, Variants: []campaigns.Content{content}})
	seen := map[uint32]bool{}
	for range 20 {
		b := r.batch(c.ID, 1)
		for _, x := range b.Recipients {
			if seen[x.Ordinal] {
				t.Fatalf("profile %d twice", x.Ordinal)
			}
			seen[x.Ordinal] = true
			for range 2 { // a result that comes twice counts once
				r.must(campaigns.CommandResult, campaigns.Result{ID: c.ID, Run: 1, Ordinal: x.Ordinal, Result: outbox.ResultSent})
			}
		}
		if b.Left == 0 {
			break
		}
	}
	done := answer[campaigns.Run](t, r.must(campaigns.CommandFinish, campaigns.Finish{ID: c.ID, Run: 1}))
	if len(seen) != 5 || done.Sent != 5 || done.Status != campaigns.RunDone || a.EmailCredits != 95 {
		t.Fatalf("%d recipients, %+v, %d credits left", len(seen), done, a.EmailCredits)
	}
	for reason := range unreachable {
		if done.Skipped[reason] != 1 {
			t.Errorf("skipped: %v", done.Skipped)
		}
	}
	if done.Skipped["no e-mail"] != 1 || a.Types.Get("email_sent").Count != 5 {
		t.Errorf("skipped %v, %d events", done.Skipped, a.Types.Get("email_sent").Count)
	}
	// Again: those who had it are left out.
	late := r.contact(contacts.Create{Email: "late@x.io", ListID: l})
	if again := r.start(campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}}}); again.Run != 2 || again.Total != 5 {
		t.Fatalf("%+v", again)
	}
	b := r.batch(c.ID, 2)
	if len(b.Recipients) != 1 || r.view().Profiles().ID(b.Recipients[0].Ordinal).String() != late {
		t.Fatalf("%+v", b)
	}
}

func TestCampaignNeedsAVerifiedSenderAndCredits(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	a.EmailCredits = 1
	l := r.list("one")
	for i := range 3 {
		r.contact(contacts.Create{Email: fmt.Sprintf("u%d@x.io", i), ListID: l})
	}
	c := r.campaign()
	x := content
	x.Sender = "news@Example.com"
	r.refuses("the domain example.com is not verified", campaigns.CommandStart, campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}, BatchSize: 1}, Variants: []campaigns.Content{x}})
	r.must(domains.CommandAdd, domains.Domain{Name: "EXAMPLE.com"})
	r.refuses("is not verified", campaigns.CommandStart, campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}, BatchSize: 1}, Variants: []campaigns.Content{x}})
	r.must(domains.CommandVerify, domains.Name{Name: "example.com", By: "dns"})
	r.start(campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}, BatchSize: 5}, Variants: []campaigns.Content{x}})
	b := r.batch(c.ID, 1)
	if len(b.Recipients) != 1 || !strings.Contains(b.Stopped, "out of e-mail credits") || b.Left != 2 {
		t.Fatalf("%+v", b)
	}
	if run := r.run(c.ID); run.Status != campaigns.RunStopped || len(run.Errors) != 1 {
		t.Fatalf("%+v", run)
	}
	// What was handed out may still be reported, and is not sent again.
	r.must(campaigns.CommandResult, campaigns.Result{ID: c.ID, Run: 1, Ordinal: b.Recipients[0].Ordinal, Result: outbox.ResultSent})
	a.EmailCredits = 9
	if again := r.start(campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}, BatchSize: 5}}); again.Total != 2 {
		t.Fatalf("%+v", again)
	}
}

func TestMergeWhileACampaignIsSent(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.m.accounts[testAccount].EmailCredits = 100
	l := r.list("one")
	first := r.contact(contacts.Create{ExternalID: "7", Email: "", ListID: l})
	r.must(contacts.CommandUpdate, contacts.Update{ID: first})
	r.contact(contacts.Create{Email: "ada@x.io", ListID: l})
	c := r.campaign()
	r.start(campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}}})
	b := r.batch(c.ID, 1) // ada; the other has no e-mail
	if len(b.Recipients) != 1 {
		t.Fatalf("%+v", b)
	}
	r.must(campaigns.CommandResult, campaigns.Result{ID: c.ID, Run: 1, Ordinal: b.Recipients[0].Ordinal, Result: outbox.ResultSent})
	r.must(campaigns.CommandFinish, campaigns.Finish{ID: c.ID, Run: 1})
	r.events(ev("email", "ada@x.io", "external_id", "7"))
	r.start(campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}}})
	if b := r.batch(c.ID, 2); len(b.Recipients) != 0 {
		t.Fatalf("sent again after a merge: %+v", b)
	}
}

func TestABTestSendsTheWinnerToTheRest(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.m.accounts[testAccount].EmailCredits = 1000
	l := r.list("one")
	for i := range 40 {
		r.contact(contacts.Create{Email: fmt.Sprintf("u%d@x.io", i), ListID: l})
	}
	c := r.campaign()
	r.start(campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}, BatchSize: 100}, Variants: []campaigns.Content{content, content}, AB: &campaigns.ABTest{Percent: 50, Metric: "opens", WaitMs: 60_000}})
	b := r.batch(c.ID, 1)
	if len(b.Recipients) != 20 || b.Left != 20 {
		t.Fatalf("%d tested, %d left", len(b.Recipients), b.Left)
	}
	if wait := r.batch(c.ID, 1); wait.WaitMs == 0 || len(wait.Recipients) != 0 {
		t.Fatalf("the test is not out, yet %+v", wait)
	}
	of := [2]int{}
	for _, x := range b.Recipients {
		of[x.Variant]++
		r.must(campaigns.CommandResult, campaigns.Result{ID: c.ID, Run: 1, Ordinal: x.Ordinal, Variant: x.Variant, Result: outbox.ResultSent})
		if x.Variant == 1 {
			r.must(messages.CommandEngagement, messages.EngagementRecord{Send: messages.CampaignSend(c.Number, x.Ordinal, 1), Channel: "email", Kind: messages.EngagementOpen})
		}
	}
	if of[0] < 3 || of[1] < 3 {
		t.Fatalf("variants went to %v", of)
	}
	if wait := r.batch(c.ID, 1); wait.WaitMs != 60_000 {
		t.Fatalf("%+v", wait)
	}
	r.now += 59_999
	if wait := r.batch(c.ID, 1); wait.WaitMs != 1 {
		t.Fatalf("%+v", wait)
	}
	r.now++
	rest := r.batch(c.ID, 1)
	if len(rest.Recipients) != 20 || slices.ContainsFunc(rest.Recipients, func(x campaigns.Recipient) bool { return x.Variant != 1 }) {
		t.Fatalf("the rest: %+v", rest)
	}
}

func TestEngagementCounts(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	a.EmailCredits = 10
	l := r.list("one")
	id := r.contact(contacts.Create{Email: "ada@x.io", ListID: l})
	opened := r.segment(`{"kind":"activity","event":"email_opened","count":{"op":">=","value":2}}`)
	c := r.campaign()
	r.start(campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}}})
	o := r.batch(c.ID, 1).Recipients[0].Ordinal
	r.must(campaigns.CommandResult, campaigns.Result{ID: c.ID, Run: 1, Ordinal: o, Result: outbox.ResultSent})
	send := messages.CampaignSend(c.Number, o, 0)
	for range 2 {
		r.must(messages.CommandEngagement, messages.EngagementRecord{Send: send, Channel: "email", Kind: messages.EngagementOpen})
		r.must(messages.CommandEngagement, messages.EngagementRecord{Send: send, Channel: "email", Kind: messages.EngagementClick, Link: 1, URL: "https://b"})
		r.must(messages.CommandEngagement, messages.EngagementRecord{Send: send, Channel: "email", Kind: messages.EngagementDelivery, Key: "d1"})
		r.must(messages.CommandEngagement, messages.EngagementRecord{Send: send, Channel: "email", Kind: messages.EngagementUnsubscribed, Key: "u1", Source: "link"})
	}
	run, n := r.run(c.ID), r.view().Campaigns().Numbers(c)
	if run.Opens != 2 || run.Clicks != 2 || run.ByLink[1] != 2 || n.Opened != 1 || n.Clicked != 1 || n.Delivered != 1 || n.Unsubscribed != 1 {
		t.Fatalf("%+v %+v", run, n)
	}
	if r.countIn(opened) != 1 || a.Types.Get("email_delivered").Count != 1 {
		t.Errorf("%d in the segment, %d deliveries", r.countIn(opened), a.Types.Get("email_delivered").Count)
	}
	if p := r.profile(id); p.Status("email", r.now) != view.StatusUnsubscribed || p.Opened != 2 || p.Clicked != 2 {
		t.Errorf("%+v", p.ContactInfo)
	}
	list := r.view().Campaigns().Recipients(c, 0, 10)
	if len(list) != 1 || !list[0].Opened || !list[0].Clicked || list[0].Bounced {
		t.Errorf("%+v", list)
	}
	r.refuses("kind Input should be", messages.CommandEngagement, messages.EngagementRecord{Send: send, Channel: "email", Kind: "sneeze"})
	r.refuses("there is no contact", messages.CommandEngagement, messages.EngagementRecord{Send: messages.CampaignSend(9, 0, 0), Channel: "email", Kind: messages.EngagementOpen})
}

func TestCampaignInputs(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	for want, c := range map[string]campaigns.Campaign{
		"channel Input should be 1 or 2":    {Name: "n", Channel: 3},
		"type Input should be 1, 2, 3 or 4": {Name: "n", Channel: 2, Date: "x"},
		"date Field required":               {Name: "n", Channel: 2, Type: 1},
		"name must not be empty":            {Channel: 1},
		"there is no such template":         {Name: "n", Channel: 1, Message: campaigns.Message{TemplateID: "tpl_1"}},
		"there is no list":                  {Name: "n", Channel: 1, ListIDs: []string{"lst_1"}},
		"there is no segment":               {Name: "n", Channel: 1, SegmentIDs: []string{"seg_1"}},
	} {
		r.refuses(want, campaigns.CommandSave, c)
	}
	tpl := answer[campaigns.Template](t, r.must(campaigns.CommandTemplateSave, campaigns.Template{Name: "t", Source: "LIST"}))
	c := answer[campaigns.Campaign](t, r.must(campaigns.CommandSave, campaigns.Campaign{Name: "n", Channel: 1, Message: campaigns.Message{TemplateID: tpl.ID}}))
	r.refuses(`used by campaign "n"`, campaigns.CommandTemplateDelete, campaigns.TemplateDelete{ID: tpl.ID})
	r.must(campaigns.CommandDelete, campaigns.Ref{ID: c.ID})
	r.must(campaigns.CommandTemplateDelete, campaigns.TemplateDelete{ID: tpl.ID})
	if next := r.campaign(); next.Number != c.Number+1 {
		t.Errorf("number %d after %d", next.Number, c.Number)
	}
}

// TestC3CreditsAreForWhatWentOut: a message that no relay took costs nothing,
// whatever kept it; one that may have been taken does (C3, docs/behaviour/messages.md).
func TestC3CreditsAreForWhatWentOut(t *testing.T) {
	t.Parallel()
	results := []struct {
		result campaigns.Result
		cost   int64
	}{
		{campaigns.Result{Result: outbox.ResultSent}, 1},
		{campaigns.Result{Result: outbox.ResultFailed, Reason: "temporary: network: the relay is down"}, 0},
		{campaigns.Result{Result: outbox.ResultFailed, Reason: "subject: line break"}, 0},
		{campaigns.Result{Result: outbox.ResultFailed, Reason: "permanent: 554"}, 0},
		{campaigns.Result{Result: outbox.ResultBounced, Reason: "permanent: 550 5.1.1"}, 0},
		{campaigns.Result{Result: outbox.ResultFailed, Reason: "ambiguous: the answer was lost", Handed: true}, 1},
		{campaigns.Result{Result: outbox.ResultRefused, Reason: "refused: 535"}, 0},
	}
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	a.EmailCredits = 100
	l := r.list("one")
	for i := range results {
		r.contact(contacts.Create{Email: fmt.Sprintf("u%d@x.io", i), ListID: l})
	}
	c := r.campaign()
	r.start(campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}, BatchSize: 100}})
	b := r.batch(c.ID, 1)
	if len(b.Recipients) != len(results) || a.EmailCredits != 100-int64(len(results)) {
		t.Fatalf("%d recipients, %d credits", len(b.Recipients), a.EmailCredits)
	}
	left := a.EmailCredits
	for i, x := range results {
		x.result.ID, x.result.Run, x.result.Ordinal = c.ID, 1, b.Recipients[i].Ordinal
		for range 2 {
			r.must(campaigns.CommandResult, x.result)
		}
		if left += 1 - x.cost; a.EmailCredits != left {
			t.Fatalf("after %q: %d credits, expected %d", x.result.Reason, a.EmailCredits, left)
		}
	}
}

// TestC3AStoppedRunCostsWhatItSent: what a run that is stopped has not sent is
// given back once, and paid again when it turns out to have gone out, or when the
// campaign is sent again (C3).
func TestC3AStoppedRunCostsWhatItSent(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	a.EmailCredits = 100
	l := r.list("one")
	for i := range 6 {
		r.contact(contacts.Create{Email: fmt.Sprintf("u%d@x.io", i), ListID: l})
	}
	c := r.campaign()
	r.start(campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}, BatchSize: 6}})
	b := r.batch(c.ID, 1)
	result := func(i int, what string) {
		r.must(campaigns.CommandResult, campaigns.Result{ID: c.ID, Run: 1, Ordinal: b.Recipients[i].Ordinal, Result: what})
	}
	expect := func(want int64) {
		t.Helper()
		if a.EmailCredits != want {
			t.Fatalf("%d credits, expected %d", a.EmailCredits, want)
		}
	}
	result(0, outbox.ResultSent)
	r.must(campaigns.CommandFinish, campaigns.Finish{ID: c.ID, Run: 1, Stopped: "the relay is down"})
	expect(99)
	result(1, outbox.ResultSent) // reported late
	expect(98)
	result(2, outbox.ResultFailed)
	expect(98)
	if again := r.start(campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}, BatchSize: 6}}); again.Total != 4 {
		t.Fatalf("%+v", again)
	}
	expect(98)
	b = r.batch(c.ID, 2)
	expect(94)
	// The provider refuses the account, which stops the run: the next start gives back.
	r.must(campaigns.CommandResult, campaigns.Result{ID: c.ID, Run: 2, Ordinal: b.Recipients[0].Ordinal, Result: outbox.ResultRefused})
	expect(95)
	r.start(campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}, BatchSize: 6}})
	expect(98)
}

// TestCampaignsAndTheOutboxShareResults: a sender reports messages of both in the same words.
func TestCampaignsAndTheOutboxShareResults(t *testing.T) {
	t.Parallel()
	for of, in := range map[string]string{campaigns.ResultSent: outbox.ResultSent, campaigns.ResultBounced: outbox.ResultBounced, campaigns.ResultRefused: outbox.ResultRefused} {
		if of != in {
			t.Errorf("%q and %q", of, in)
		}
	}
}
