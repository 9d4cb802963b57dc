package resolver

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// epoch begins an epoch of a node and returns its number.
func (r *recorder) epoch(node string) uint64 {
	r.t.Helper()
	r.wants(r.partition(EpochBegin{Node: node, Address: node + ":1", ApplyVersion: ApplyVersion}), "")
	e := r.m.epoch
	if e.Number != uint64(r.m.next) || e.Node != node || e.Address != node+":1" || len(e.Session) != 32 || e.BeganMs != r.m.logTime {
		r.t.Fatalf("%+v", e)
	}
	return e.Number
}

// partition applies the record of an epoch.
func (r *recorder) partition(c EpochBegin) *Refusal {
	r.t.Helper()
	env := r.envelope(eventlog.KindCommand)
	env.Account = 0
	r.apply(eventlog.AppendCommand(env.Append(nil), CommandPartitionEpoch, must.JSON(c)))
	return r.out.Refusal
}

// wants compares a refusal with a piece of its message, "" for none.
func (r *recorder) wants(got *Refusal, want string) {
	r.t.Helper()
	if (got == nil) != (want == "") || got != nil && !strings.Contains(got.Message, want) {
		r.t.Fatalf("refused with %+v, expected %q", got, want)
	}
}

// sum is the hash of the account alone: what of it a refusal may not change.
func (r *recorder) sum() string {
	r.t.Helper()
	h := sha256.New()
	if err := r.m.accounts[testAccount].Hash(h, func(b []byte) { h.Write(b); h.Write([]byte{0}) }); err != nil {
		r.t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func TestEpochRecords(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	if b := must.JSON(r.m.Freeze().Manifest); strings.Contains(string(b), "epoch") {
		t.Fatalf("embedded there is none: %s", b)
	}
	plain, _ := r.m.Hash()
	one := r.epoch("one")
	if two := r.epoch("two"); two <= one {
		t.Fatalf("%d after %d", two, one)
	}
	before := r.m.epoch
	r.wants(r.partition(EpochBegin{ApplyVersion: 1}), "node must have")
	r.wants(r.partition(EpochBegin{Node: strings.Repeat("x", maxNodeText+1)}), "node must have")
	r.wants(r.partition(EpochBegin{Node: "x", Address: strings.Repeat("x", maxNodeText+1)}), "address must have")
	env := r.envelope(eventlog.KindCommand)
	r.apply(eventlog.AppendCommand(env.Append(nil), CommandPartitionEpoch, must.JSON(EpochBegin{Node: "three"})))
	r.wants(r.out.Refusal, "a partition's")
	if r.m.epoch != before {
		t.Fatalf("%+v", r.m.epoch)
	}
	if f := r.m.Freeze(); f.Epoch == nil || *f.Epoch != before {
		t.Fatalf("%+v", f.Epoch)
	}
	with, _ := r.m.Hash()
	r.m.epoch = Epoch{}
	if without, _ := r.m.Hash(); with == without || with == plain {
		t.Error("the epoch is not part of the state's hash")
	}
	env = r.envelope(eventlog.KindCommand)
	env.Account = 0
	err := r.m.Apply(r.m.next, eventlog.AppendCommand(env.Append(nil), CommandPartitionEpoch, must.JSON(EpochBegin{Node: "new", ApplyVersion: ApplyVersion + 1})), &r.rows, &r.out)
	if !errors.Is(err, ErrNewer) {
		t.Errorf("a newer build's epoch: %v", err)
	}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	a.EmailCredits = 10
	hook := r.endpoint("contact.created")
	tpl := r.template()
	for _, to := range []string{"a@x.io", "b@x.io", "c@x.io"} {
		r.must(messages.CommandEmailSend, mailTo(to, tpl))
	}
	r.contact(contacts.Create{Email: "d@x.io"})
	r.contact(contacts.Create{Email: "e@x.io"})
	mails, hooks := r.due(outbox.KindEmail), r.due(outbox.KindWebhook)
	if len(mails) != 3 || len(hooks) != 1 {
		t.Fatalf("%d mails, %d webhooks", len(mails), len(hooks))
	}
	r.must(messages.CommandOutboxDone, outbox.Done{Seq: mails[1].Seq, Result: outbox.ResultRetry, DelayMs: 1000})
	r.must(messages.CommandOutboxDone, outbox.Done{Seq: mails[2].Seq, Result: outbox.ResultSent})
	older, newest := r.epoch("one"), r.epoch("two")
	behind := uint64(0)
	for seq, it := range waitingItems(r.m) {
		if it.Endpoint == hook && seq != hooks[0].Seq {
			behind = max(behind, seq)
		}
	}
	item := func(seq uint64, attempt int) ClaimItem { return ClaimItem{seq, attempt} }
	for name, c := range map[string]struct {
		claim   OutboxClaim
		denied  []uint64
		refused string
	}{
		"what waits":                  {OutboxClaim{newest, []ClaimItem{item(mails[0].Seq, 0), item(hooks[0].Seq, 0)}}, nil, ""},
		"again":                       {OutboxClaim{newest, []ClaimItem{item(mails[0].Seq, 0)}}, nil, ""},
		"nothing":                     {OutboxClaim{newest, nil}, nil, ""},
		"another attempt":             {OutboxClaim{newest, []ClaimItem{item(mails[1].Seq, 0), item(mails[1].Seq, 1)}}, []uint64{mails[1].Seq}, ""},
		"what is done":                {OutboxClaim{newest, []ClaimItem{item(mails[2].Seq, 0)}}, []uint64{mails[2].Seq}, ""},
		"what never was":              {OutboxClaim{newest, []ClaimItem{item(1<<40, 0)}}, []uint64{1 << 40}, ""},
		"what stands behind":          {OutboxClaim{newest, []ClaimItem{item(behind, 0)}}, []uint64{behind}, ""},
		"under the older epoch":       {OutboxClaim{older, []ClaimItem{item(mails[0].Seq, 0)}}, nil, "is over: epoch"},
		"nothing under the older one": {OutboxClaim{older, nil}, nil, "is over: epoch"},
		"under none":                  {OutboxClaim{0, []ClaimItem{item(mails[0].Seq, 0)}}, nil, "is over: epoch"},
		"under one to come":           {OutboxClaim{newest + 1, []ClaimItem{item(mails[0].Seq, 0)}}, nil, "is over: epoch"},
		"too much":                    {OutboxClaim{newest, make([]ClaimItem, MaxClaims+1)}, nil, "items must have"},
	} {
		t.Run(name, func(t *testing.T) {
			before := r.sum()
			out := r.command(CommandOutboxClaim, c.claim)
			r.wants(out.Refusal, c.refused)
			if over := strings.Contains(c.refused, "is over"); over != (out.Refusal != nil && IsSuperseded(out.Refusal)) {
				t.Errorf("%+v", out.Refusal)
			}
			if out.Refusal == nil {
				if got := answer[OutboxClaimReply](t, out); !slices.Equal(got.Denied, c.denied) {
					t.Errorf("denied %v, expected %v", got.Denied, c.denied)
				}
			}
			if r.sum() != before {
				t.Error("a claim changed the state")
			}
		})
	}
	disabled := outbox.EndpointDisabled
	r.must(outbox.CommandWebhookUpdate, outbox.WebhookSave{ID: hook, Status: &disabled})
	if got := answer[OutboxClaimReply](t, r.must(CommandOutboxClaim, OutboxClaim{newest, []ClaimItem{item(hooks[0].Seq, 0)}})); len(got.Denied) != 1 {
		t.Error("the endpoint rests")
	}
}

// TestOutcomesOfAnOlderEpoch: that something was sent is noted whichever node
// reports it; anything else would make the attempt that is under way another one.
func TestOutcomesOfAnOlderEpoch(t *testing.T) {
	t.Parallel()
	for _, result := range []string{outbox.ResultSent, outbox.ResultRetry, outbox.ResultFailed, outbox.ResultBounced, outbox.ResultRefused, outbox.ResultGone, outbox.ResultMoot} {
		for _, kind := range []string{outbox.KindEmail, outbox.KindWebhook} {
			t.Run(kind+" "+result, func(t *testing.T) {
				r := newRecorder(t, DefaultSettings())
				a := r.m.accounts[testAccount]
				a.EmailCredits = 10
				r.endpoint("contact.created")
				r.contact(contacts.Create{Email: "d@x.io"})
				r.must(messages.CommandEmailSend, mailTo("a@x.io", r.template()))
				w := r.due(kind)[0]
				older := r.epoch("one")
				newest := r.epoch("two")
				before := r.sum()
				done := outbox.Done{Seq: w.Seq, Result: result, DelayMs: 1000, Epoch: older}
				got := r.command(messages.CommandOutboxDone, done).Refusal
				if result == outbox.ResultSent {
					r.wants(got, "")
					if itemOf(a, w.Seq) != nil {
						t.Fatal("it was sent, and waits")
					}
					before = r.sum()
					r.must(messages.CommandOutboxDone, outbox.Done{Seq: w.Seq, Result: outbox.ResultSent, Epoch: newest})
					if r.sum() != before {
						t.Fatal("it counts twice")
					}
					return
				}
				if !IsSuperseded(got) || r.sum() != before {
					t.Fatalf("%+v", got)
				}
				r.must(messages.CommandOutboxDone, outbox.Done{Seq: w.Seq, Result: outbox.ResultSent, Epoch: newest})
				if itemOf(a, w.Seq) != nil {
					t.Fatal("what the owner has sent waits")
				}
			})
		}
	}
}

func TestCampaignUnderEpochs(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	a.EmailCredits = 100
	l := r.list("one")
	for _, to := range []string{"a@x.io", "b@x.io", "c@x.io", "d@x.io"} {
		r.contact(contacts.Create{Email: to, ListID: l})
	}
	c := r.campaign()
	older := r.epoch("one")
	r.start(campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}, BatchSize: 2}})
	batch := func(name string, epoch uint64) campaigns.BatchReply {
		t.Helper()
		return answer[campaigns.BatchReply](t, r.must(name, campaigns.Batch{ID: c.ID, Run: 1, Epoch: epoch}))
	}
	first := batch(campaigns.CommandBatch, older).Recipients
	if len(first) != 2 {
		t.Fatalf("%+v", first)
	}
	newest := r.epoch("two")
	result := func(o uint32, result string, epoch uint64) campaigns.Result {
		return campaigns.Result{ID: c.ID, Run: 1, Ordinal: o, Result: result, Epoch: epoch}
	}
	for _, x := range []struct {
		name string
		args any
	}{
		{campaigns.CommandBatch, campaigns.Batch{ID: c.ID, Run: 1, Epoch: older}},
		{campaigns.CommandBatch, campaigns.Batch{ID: c.ID, Run: 1}},
		{campaigns.CommandResume, campaigns.Batch{ID: c.ID, Run: 1, Epoch: older}},
		{campaigns.CommandFinish, campaigns.Finish{ID: c.ID, Run: 1, Epoch: older, Stopped: "the zombie's relay is away"}},
		{campaigns.CommandFinish, campaigns.Finish{ID: c.ID, Run: 1, Epoch: older}},
		{campaigns.CommandResult, result(first[0].Ordinal, outbox.ResultFailed, older)},
		{campaigns.CommandResult, result(first[0].Ordinal, outbox.ResultBounced, older)},
		{campaigns.CommandResult, result(first[0].Ordinal, outbox.ResultRefused, older)},
	} {
		before := r.sum()
		if got := r.command(x.name, x.args).Refusal; !IsSuperseded(got) || r.sum() != before {
			t.Errorf("%s %+v: %+v", x.name, x.args, got)
		}
	}
	// Both in flight continue at the new owner; one of them had been sent.
	if again := batch(campaigns.CommandResume, newest).Recipients; !slices.Equal(again, first) {
		t.Fatalf("%+v, were %+v", again, first)
	}
	r.must(campaigns.CommandResult, result(first[0].Ordinal, outbox.ResultSent, older))
	before := r.sum()
	r.must(campaigns.CommandResult, result(first[0].Ordinal, outbox.ResultSent, newest))
	if r.sum() != before {
		t.Error("it counts twice")
	}
	r.must(campaigns.CommandResult, result(first[1].Ordinal, outbox.ResultSent, newest))
	for _, x := range batch(campaigns.CommandBatch, newest).Recipients {
		r.must(campaigns.CommandResult, result(x.Ordinal, outbox.ResultSent, newest))
	}
	r.must(campaigns.CommandFinish, campaigns.Finish{ID: c.ID, Run: 1, Epoch: newest})
	if run := r.run(c.ID); run.Sent != 4 || run.Status != campaigns.RunDone {
		t.Errorf("%+v", run)
	}
}
