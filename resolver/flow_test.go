package resolver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// bounds are those of a record's work on flows.
var bounds = automation.StandardBounds()

// flow makes a flow and takes it live.
func (r *recorder) flow(definition string) string {
	r.t.Helper()
	id := r.draft(definition)
	r.publish(id)
	return id
}

func (r *recorder) draft(definition string) string {
	r.t.Helper()
	var x automation.Reply
	if err := json.Unmarshal(r.must(automation.CommandCreate, automation.Save{Definition: json.RawMessage(definition)}).Reply, &x); err != nil {
		r.t.Fatal(err)
	}
	return x.ID
}

func (r *recorder) publish(id string) {
	r.t.Helper()
	r.must(automation.CommandPublish, automation.ID{ID: id})
	r.rest()
	if f := r.flowState(id); f.Status != automation.Live {
		r.t.Fatalf("the flow is %s: %s", f.Status, f.PublishError)
	}
}

// rest appends continue records until nothing is left to do.
func (r *recorder) rest() {
	r.t.Helper()
	for n := 0; r.m.Pending() > 0; n++ {
		if n == 10_000 {
			r.t.Fatal("work without an end")
		}
		r.continueOnce()
	}
}

// continueOnce appends a continue record.
func (r *recorder) continueOnce() {
	r.t.Helper()
	env := r.envelope(eventlog.KindContinue)
	r.apply(env.Append(nil))
}

func (r *recorder) flowState(id string) automation.FlowState {
	r.t.Helper()
	f, ok := r.view().Flows().Find(id)
	if !ok {
		r.t.Fatalf("there is no flow %s", id)
	}
	return f
}

// newestEnrolment writes the newest enrolment of a profile in a flow: steps with results.
func (r *recorder) newestEnrolment(flow string, p ProfileID) string {
	r.t.Helper()
	o, ok := r.view().Profiles().Resolve(p)
	if !ok {
		r.t.Fatalf("there is no profile %s", p)
	}
	enrolments, err := r.view().Flows().EnrolmentsOf(flow, o)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(enrolments) == 0 {
		return "none"
	}
	e := &enrolments[len(enrolments)-1]
	def := r.flowState(flow).Def
	out := []string{fmt.Sprintf("#%d", e.Number)}
	for _, v := range e.Path {
		out = append(out, def.Steps[v.Step].ID+":"+v.Result.String())
	}
	out = append(out, e.Status.String())
	if e.Reason != 0 {
		out = append(out, e.Reason.String())
	}
	return strings.Join(out, " ")
}

func (r *recorder) expectEnrolment(flow string, p ProfileID, want string) {
	r.t.Helper()
	if got := r.newestEnrolment(flow, p); got != want {
		r.t.Fatalf("the enrolment is %q, want %q", got, want)
	}
}

const signUpFlow = `{"name":"Welcome","trigger":{"type":"event","event":"signed_up","where":[{"property":"plan","op":"=","value":"pro"}]},"steps":[
	{"id":"tag","type":"tag","add":["new"],"next":"set"},
	{"id":"set","type":"update_contact","set":{"attributes.greeting":"Hi {{first_name | you}} of {{event.plan}}"},"next":"wait"},
	{"id":"wait","type":"wait","seconds":60,"next":"if"},
	{"id":"if","type":"condition","if":{"kind":"activity","event":"bought"},"yes":"end","no":"mail"},
	{"id":"mail","type":"email","subject":"Hello","body":"<p>Hello {{first_name}}</p>","next":null},
	{"id":"end","type":"exit"}]}`

func TestF1EventEnrolsBeforeItIsAcknowledged(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, withoutOptIn())
	flow := r.flow(signUpFlow)
	other := r.events(eventlog.Event{Type: []byte("signed_up"), Email: []byte("b@x.io"), Properties: []byte(`{"plan":"free"}`)}).Events[0].Profile
	ada := r.events(eventlog.Event{Type: []byte("signed_up"), Email: []byte("a@x.io"), FirstName: []byte("Ada"), Properties: []byte(`{"plan":"pro"}`)}).Events[0].Profile
	r.expectEnrolment(flow, other, "none")
	r.expectEnrolment(flow, ada, "#1 tag:done set:done wait:pending in_progress")
	p, _ := r.view().Profiles().Get(ada.Ordinal())
	if string(p.Attributes) != `{"tags":["new"],"greeting":"Hi Ada of pro"}` && string(p.Attributes) != `{"greeting":"Hi Ada of pro","tags":["new"]}` {
		t.Fatalf("attributes %s", p.Attributes)
	}
	r.now += 59_999
	r.tick()
	r.expectEnrolment(flow, ada, "#1 tag:done set:done wait:pending in_progress")
	r.now++
	r.tick()
	r.expectEnrolment(flow, ada, "#1 tag:done set:done wait:done if:no mail:queued completed")
	mails := r.due(outbox.KindEmail)
	if len(mails) != 1 || mails[0].Flow != flow || mails[0].Step != "mail" || !strings.Contains(string(mails[0].Payload), "Hello {{first_name}}") {
		t.Fatalf("outbox: %+v", mails)
	}
	// Once is once.
	r.events(eventlog.Event{Type: []byte("signed_up"), Email: []byte("a@x.io"), Properties: []byte(`{"plan":"pro"}`)})
	if f := r.flowState(flow); f.Counts.Entered != 1 || f.Counts.Completed != 1 || f.InProgress != 0 {
		t.Fatalf("counts %+v", f.Counts)
	}
	for _, typ := range []string{automation.EventEntered, automation.EventCompleted} {
		if r.count(typ) != 1 {
			t.Fatalf("%d events %s", r.count(typ), typ)
		}
	}
}

func TestF1ConditionIsJudgedAtTheInstantTheWaitEnds(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, withoutOptIn())
	flow := r.flow(signUpFlow)
	sign := func(mail string) ProfileID {
		return r.events(eventlog.Event{Type: []byte("signed_up"), Email: []byte(mail), Properties: []byte(`{"plan":"pro"}`)}).Events[0].Profile
	}
	early, late := sign("a@x.io"), sign("b@x.io")
	r.now += 30_000
	r.events(ev("type", "bought", "email", "a@x.io"))
	// The next record comes when the wait is over: it finds the step done.
	r.now += 30_000
	r.events(ev("type", "bought", "email", "b@x.io"))
	r.expectEnrolment(flow, early, "#1 tag:done set:done wait:done if:yes end:done exited exit_step")
	r.expectEnrolment(flow, late, "#1 tag:done set:done wait:done if:no mail:queued completed")
}

func TestF1SegmentFlowsEnrolMembersAndWhoEnters(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	seg := r.segment(`{"kind":"activity","event":"viewed","window":{"last_days":1}}`)
	before := r.events(ev("email", "a@x.io")).Events[0].Profile
	def := func(on string) string {
		return `{"name":"x","reentry":"after_exit","trigger":{"type":"` + on + `","segment_id":"` + seg + `"},"steps":[{"id":"t","type":"tag","add":["` + on + `"],"next":null}]}`
	}
	in, out := r.flow(def("segment_entered")), r.flow(def("segment_exited"))
	r.expectEnrolment(in, before, "#1 t:done completed")
	after := r.events(ev("email", "b@x.io")).Events[0].Profile
	r.expectEnrolment(in, after, "#1 t:done completed")
	r.expectEnrolment(out, after, "none")
	r.now += dayMs
	r.tick()
	r.expectEnrolment(out, after, "#1 t:done completed")
	r.expectEnrolment(out, before, "#1 t:done completed")

	// Paused: no profile is enrolled; those that entered and stayed are, at the
	// resume.
	r.must(automation.CommandPause, automation.ID{ID: in})
	r.must(automation.CommandPause, automation.ID{ID: out})
	r.events(ev("email", "a@x.io"), ev("email", "b@x.io"))
	r.now += dayMs / 2
	r.events(ev("email", "b@x.io"))
	r.now += dayMs / 2
	r.tick() // a has left again
	r.expectEnrolment(in, after, "#1 t:done completed")
	r.must(automation.CommandResume, automation.ID{ID: in})
	r.must(automation.CommandResume, automation.ID{ID: out})
	r.rest()
	r.expectEnrolment(in, before, "#1 t:done completed")
	r.expectEnrolment(in, after, "#2 t:done completed")
	r.expectEnrolment(out, before, "#2 t:done completed")
	r.expectEnrolment(out, after, "#1 t:done completed")
}

func TestF1PausedFlowMovesNobody(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, withoutOptIn())
	flow := r.flow(signUpFlow)
	ada := r.events(eventlog.Event{Type: []byte("signed_up"), Email: []byte("a@x.io"), Properties: []byte(`{"plan":"pro"}`)}).Events[0].Profile
	r.must(automation.CommandPause, automation.ID{ID: flow})
	r.now += 3_600_000
	r.tick()
	r.expectEnrolment(flow, ada, "#1 tag:done set:done wait:pending in_progress")
	bob := r.events(eventlog.Event{Type: []byte("signed_up"), Email: []byte("b@x.io"), Properties: []byte(`{"plan":"pro"}`)}).Events[0].Profile
	r.must(automation.CommandResume, automation.ID{ID: flow})
	r.rest()
	r.expectEnrolment(flow, ada, "#1 tag:done set:done wait:done if:no mail:queued completed")
	r.expectEnrolment(flow, bob, "none")
}

func TestF1CreditsPauseAndTopUpResumes(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, withoutOptIn())
	a := r.m.accounts[testAccount]
	a.EmailCredits = 1
	mail := r.flow(`{"name":"m","trigger":{"type":"event","event":"viewed"},"reentry":"after_exit","steps":[{"id":"m","type":"email","subject":"s","body":"b","next":"n"},{"id":"n","type":"email","subject":"s","body":"b","next":null}]}`)
	tag := r.flow(`{"name":"t","trigger":{"type":"event","event":"viewed"},"steps":[{"id":"t","type":"tag","add":["x"],"next":null}]}`)
	ada := r.events(ev("email", "a@x.io")).Events[0].Profile
	r.expectEnrolment(mail, ada, "#1 m:queued n:pending in_progress")
	if f := r.flowState(mail); f.Status != automation.Paused || f.PausedFor != automation.PausedForCredits {
		t.Fatalf("the flow is %s for %q", f.Status, f.PausedFor)
	}
	if f := r.flowState(tag); f.Status != automation.Live {
		t.Fatal("a flow without e-mail must continue")
	}
	r.refuses("top up", automation.CommandResume, automation.ID{ID: mail})
	r.must(CommandCreditsAdd, CreditsAdd{5})
	r.rest()
	r.expectEnrolment(mail, ada, "#1 m:queued n:queued completed")
	// Pausing one that waits for credits changes nothing; a top-up does not resume
	// one that a user paused before.
	a.EmailCredits = 0
	a.Flows.PauseForCredits()
	r.must(automation.CommandPause, automation.ID{ID: mail})
	r.must(CommandCreditsAdd, CreditsAdd{5})
	if f := r.flowState(mail); f.Status != automation.Live {
		t.Fatal("pausing a flow that waits for credits kept a top-up from lifting that")
	}
	r.must(automation.CommandPause, automation.ID{ID: mail})
	a.EmailCredits = 0
	a.Flows.PauseForCredits()
	r.must(CommandCreditsAdd, CreditsAdd{5})
	if f := r.flowState(mail); f.Status != automation.Paused {
		t.Fatal("a pause by hand was lifted by a top-up")
	}
}

func TestF1MergeKeepsTheFurtherWay(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	flow := r.flow(`{"name":"x","trigger":{"type":"event","event":"viewed"},"steps":[{"id":"a","type":"wait","seconds":10,"next":"b"},{"id":"b","type":"wait","seconds":1000,"next":"c"},{"id":"c","type":"tag","add":["done"],"next":null}]}`)
	far := r.events(ev("external_id", "far")).Events[0].Profile
	r.now += 20_000
	near := r.events(ev("email", "near@x.io")).Events[0].Profile
	r.events(ev("type", "other", "email", "near@x.io", "external_id", "far"))
	if o, _ := r.view().Profiles().Resolve(far); o != near.Ordinal() {
		t.Fatal("the e-mail's profile must win")
	}
	r.expectEnrolment(flow, near, "#2 a:done b:pending in_progress")
	ways, _ := r.view().Flows().EnrolmentsOf(flow, near.Ordinal())
	if len(ways) != 2 || ways[0].Reason != flows.ByMerge {
		t.Fatalf("%+v", ways)
	}
	f := r.flowState(flow)
	if f.Counts.Entered != 2 || f.Counts.Exited != 1 || f.InProgress != 1 || f.Counts.Steps[0].At != 0 || f.Counts.Steps[1].At != 1 {
		t.Fatalf("counts %+v", f.Counts)
	}
	r.now += 1_000_000
	r.tick()
	r.expectEnrolment(flow, near, "#2 a:done b:done c:done completed")
}

func TestF1DateTriggerFollowsTheProfile(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.now = 1_893_456_000_000 // 2030-01-01
	before := r.events(ev("email", "a@x.io", "attributes", `{"birthday":"1990-01-03"}`)).Events[0].Profile
	flow := r.flow(`{"name":"x","reentry":"after_exit","trigger":{"type":"date","field":"attributes.birthday","at":"09:00","repeat":"yearly"},"steps":[{"id":"t","type":"tag","add":["b"],"next":null}]}`)
	after := r.events(ev("email", "b@x.io", "attributes", `{"birthday":"1990-01-02"}`)).Events[0].Profile
	r.now += 33 * 3_600_000
	r.tick()
	r.expectEnrolment(flow, after, "#1 t:done completed")
	r.expectEnrolment(flow, before, "none")
	r.events(ev("type", "other", "email", "a@x.io", "attributes", `{"birthday":"1990-01-04"}`))
	r.now += 24 * 3_600_000
	r.tick()
	r.expectEnrolment(flow, before, "none")
	r.now += 24 * 3_600_000
	r.tick()
	r.expectEnrolment(flow, before, "#1 t:done completed")
	r.now += 364 * 24 * 3_600_000
	r.tick()
	r.expectEnrolment(flow, after, "#2 t:done completed")
}

func TestF1LoopsAreCut(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	on := r.segment(`{"kind":"attribute","field":"tags","op":"=","value":"x"}`)
	a := r.flow(`{"name":"a","reentry":"after_exit","trigger":{"type":"segment_entered","segment_id":"` + on + `"},"steps":[{"id":"t","type":"tag","remove":["x"],"next":null}]}`)
	b := r.flow(`{"name":"b","reentry":"after_exit","trigger":{"type":"segment_exited","segment_id":"` + on + `"},"steps":[{"id":"t","type":"tag","add":["x"],"next":null}]}`)
	r.events(ev("email", "a@x.io", "attributes", `{"tags":["x"]}`))
	x, y := r.flowState(a), r.flowState(b)
	if x.Counts.LoopsCut+y.Counts.LoopsCut != 1 || x.Counts.Entered+y.Counts.Entered != automation.MaxDepth+1 {
		t.Fatalf("entered %d and %d, cut %d and %d", x.Counts.Entered, y.Counts.Entered, x.Counts.LoopsCut, y.Counts.LoopsCut)
	}
}

func TestF1WebhookStepWaitsForItsOutcome(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	flow := r.flow(`{"name":"x","reentry":"after_exit","trigger":{"type":"api"},"steps":[{"id":"w","type":"webhook","url":"https://example.com/x","method":"POST","body":"{}","on_failure":"exit","next":"t"},{"id":"t","type":"tag","add":["b"],"next":null}]}`)
	r.refuses("create it first", automation.CommandTrigger, automation.Trigger{ID: flow, Email: "a@x.io"})
	ada := r.events(ev("email", "a@x.io")).Events[0].Profile
	r.must(automation.CommandTrigger, automation.Trigger{ID: flow, Email: "a@x.io", Key: "1"})
	r.expectEnrolment(flow, ada, "#1 w:pending in_progress")
	r.must(automation.CommandTrigger, automation.Trigger{ID: flow, Email: "a@x.io", Key: "1"})
	r.refuses("already", automation.CommandTrigger, automation.Trigger{ID: flow, Email: "a@x.io", Key: "2"})
	calls := r.due(outbox.KindCall)
	if len(calls) != 1 || !strings.Contains(string(calls[0].Payload), `"body":"{}"`) {
		t.Fatalf("calls %+v", calls)
	}
	r.must(automation.CommandPause, automation.ID{ID: flow})
	r.must(messages.CommandOutboxDone, outbox.Done{Seq: calls[0].Seq, Result: outbox.ResultSent})
	r.expectEnrolment(flow, ada, "#1 w:pending in_progress")
	r.must(automation.CommandResume, automation.ID{ID: flow})
	r.rest()
	r.expectEnrolment(flow, ada, "#1 w:delivered t:done completed")
	r.must(automation.CommandTrigger, automation.Trigger{ID: flow, Email: "a@x.io"})
	r.must(messages.CommandOutboxDone, outbox.Done{Seq: r.due(outbox.KindCall)[0].Seq, Result: outbox.ResultFailed, Reason: "500"})
	r.expectEnrolment(flow, ada, "#2 w:failed exited webhook_failed")
}

func TestFlowsHoldWhatTheyUse(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	seg := r.segment(`{"kind":"activity","event":"viewed"}`)
	list := r.list("l")
	tpl := r.template()
	id := r.draft(`{"name":"Holds","trigger":{"type":"list_joined","list_id":"` + list + `"},"steps":[{"id":"c","type":"condition","if":{"kind":"segment","segment_id":"` + seg + `"},"yes":"m","no":null},{"id":"m","type":"email","template_id":"` + tpl + `","next":null}]}`)
	r.publish(id)
	for name, args := range map[string]any{CommandSegmentDelete: SegmentDelete{seg}, contacts.CommandListDelete: contacts.ListDelete{ID: list}, campaigns.CommandTemplateDelete: campaigns.TemplateDelete{ID: tpl}} {
		r.refuses(`flow "Holds" (`+id+`)`, name, args)
	}
	emptied := campaigns.Template{ID: tpl, Name: "t", Source: campaigns.TemplateList, HTML: "<p>{{confirm_url}}"}
	r.refuses(`flow "Holds" (`+id+`); it must keep a subject`, campaigns.CommandTemplateSave, emptied)
	r.must(contacts.CommandCreate, contacts.Create{Email: "a@x.io", ListID: list})
	if f := r.flowState(id); f.Counts.Entered != 1 {
		t.Fatalf("entered %d", f.Counts.Entered)
	}
	r.refuses("is live", automation.CommandDelete, automation.ID{ID: id})
	r.must(automation.CommandPause, automation.ID{ID: id})
	r.must(automation.CommandDelete, automation.ID{ID: id})
	r.rest()
	r.must(CommandSegmentDelete, SegmentDelete{seg})
	r.must(contacts.CommandListDelete, contacts.ListDelete{ID: list})
	r.must(campaigns.CommandTemplateSave, emptied)
	if n := len(inspect(r.m.accounts[testAccount])); n != 1 {
		t.Fatalf("%d flows", n)
	}
}

func TestFlowContentIsLocked(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	id := r.flow(signUpFlow)
	r.refuses("locked", automation.CommandUpdate, automation.Save{ID: id, Definition: json.RawMessage(signUpFlow)})
	r.must(automation.CommandPause, automation.ID{ID: id})
	r.refuses("locked", automation.CommandUpdate, automation.Save{ID: id, Definition: json.RawMessage(signUpFlow)})
	r.must(automation.CommandDuplicate, automation.ID{ID: id})
	list := r.view().Flows().List()
	i := slices.IndexFunc(list, func(f automation.FlowState) bool { return f.CopyOf == id })
	if len(list) != 2 || i < 0 || list[i].Status != automation.Draft || list[i].Def.Name != "Copy of Welcome" {
		t.Fatalf("%d flows", len(list))
	}
	draft := list[i].ID
	r.must(automation.CommandUpdate, automation.Save{ID: draft, Definition: json.RawMessage(`{"name":"n","steps":[{"id":"m","type":"email"},{"id":"z","type":"sms"}]}`)})
	out := r.command(automation.CommandPublish, automation.ID{ID: draft})
	if out.Refusal == nil {
		t.Fatal("a flow that lacks everything went live")
	}
	for _, want := range []string{"trigger", "subject", "text", "cannot be reached"} {
		if !strings.Contains(out.Refusal.Message, want) {
			t.Errorf("%q is not said: %s", want, out.Refusal.Message)
		}
	}
}
