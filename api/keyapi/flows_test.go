package keyapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/keyapi/internal/analytics"
	"github.com/musterhq/muster/internal/eventually"
)

// flowCalls makes the calls about flows of one of the surfaces that have them.
type flowCalls struct {
	*service
	surface string // a or console
}

// call makes a call about flows and reads the envelope. Failures of Surface A
// are HTTP 200.
func (f *flowCalls) call(method, path, body string) (status int, success bool, message string, data json.RawMessage) {
	f.t.Helper()
	key, prefix := f.creds.APIKey, "/api/v1/custom-flows"
	if f.surface == "console" {
		key, prefix = f.token, api.Prefix+"/flows"
	}
	res, b := f.with(key, method, prefix+path, body)
	var e struct {
		Status, Message string
		Data            json.RawMessage
	}
	ok(f.t, json.Unmarshal([]byte(b), &e))
	success = e.Status == "success"
	if f.surface == "a" && res.StatusCode != 200 || f.surface == "console" && success != (res.StatusCode < 300) || !success && (e.Message == "" || f.surface == "a" && string(e.Data) != "{}") {
		f.t.Errorf("%s %s %s: %d %s", method, path, body, res.StatusCode, b)
	}
	return res.StatusCode, success, e.Message, e.Data
}

// must makes a call that succeeds and answers a flow.
func (f *flowCalls) must(method, path, body string) (out record.Flow) {
	f.t.Helper()
	_, success, message, data := f.call(method, path, body)
	if !success {
		f.t.Fatalf("%s %s %s: %s", method, path, body, message)
	}
	ok(f.t, json.Unmarshal(data, &out))
	return out
}

// refused makes a call that fails and changes nothing of the flow.
func (f *flowCalls) refused(id, method, path, body, says string) {
	f.t.Helper()
	before := f.text(id)
	_, success, message, _ := f.call(method, path, body)
	if success || !strings.Contains(message, says) {
		f.t.Errorf("%s %s %s: success is %t, %q does not say %q", method, path, body, success, message, says)
	}
	if after := f.text(id); after != before {
		f.t.Errorf("%s %s %s was refused and has changed the flow:\n%s\n%s", method, path, body, before, after)
	}
}

// same makes a call that succeeds and changes nothing of the flow.
func (f *flowCalls) same(id, method, path, body string) {
	f.t.Helper()
	before := f.text(id)
	f.must(method, path, body)
	if after := f.text(id); after != before {
		f.t.Errorf("%s %s %s has changed the flow:\n%s\n%s", method, path, body, before, after)
	}
}

// text is everything that the calls return of a flow and its enrolments.
func (f *flowCalls) text(id string) string {
	f.t.Helper()
	_, _, _, data := f.call("GET", "/"+id, "")
	var who json.RawMessage
	if res, b := f.with(f.token, "GET", api.Prefix+"/flows/"+id+"/enrolments", ""); res.StatusCode == 200 {
		who = json.RawMessage(b)
	}
	return string(data) + string(who)
}

// draft makes a draft in the console.
func (s *service) draft(definition string) string {
	s.t.Helper()
	var f record.Flow
	s.console1("POST", "/flows", definition, &f)
	s.clock.Advance(time.Millisecond)
	return f.ID
}

// live makes a flow that is live.
func (s *service) live(definition string) string {
	s.t.Helper()
	id := s.draft(definition)
	var f record.Flow
	if s.console1("POST", "/flows/"+id+"/publish", "", &f); f.Status != "live" || f.Publishing || f.PublishedAt == nil {
		s.t.Fatalf("published: %+v", f)
	}
	return id
}

// enrolmentOf is the newest enrolment of a profile in a flow.
func (s *service) enrolmentOf(flow, profile string) (e struct {
	Status, StartedAt string
	Step              *string
	Path              []struct{ ID, Type, Result string }
}) {
	s.t.Helper()
	var all struct{ Enrolments []json.RawMessage }
	s.console1("GET", "/flows/"+flow+"/enrolments/"+profile, "", &all)
	ok(s.t, json.Unmarshal(all.Enrolments[len(all.Enrolments)-1], &e))
	return e
}

const (
	waits    = `{"name":"waits","trigger":{"type":"api"},"reentry":"after_exit","steps":[{"id":"pause","type":"wait","seconds":3600,"next":"done"},{"id":"done","type":"tag","add":["through"],"next":null}]}`
	someMail = `"subject":"Hi","body":"<p>Hi</p>"`
)

func (s *service) contact(email string) string {
	s.t.Helper()
	var c struct {
		ID string `json:"_id"`
	}
	s.a("POST", "/contacts", fmt.Sprintf(`{"email":%q}`, email), &c)
	return c.ID
}

// eventually waits for what follows by itself, while time passes.
func (s *service) eventually(what string, holds func() bool) {
	s.t.Helper()
	eventually.Holds(s.t, what, func() bool {
		if holds() {
			return true
		}
		s.clock.Advance(time.Minute)
		return false
	})
}

// companyWith makes a company that may send so many e-mails, and calls as its owner.
func (f *flowCalls) companyWith(credits int) (owner *flowCalls, id string) {
	f.t.Helper()
	var made struct {
		ID string `json:"_id"`
		api.Credentials
	}
	f.console1("POST", "/companies", fmt.Sprintf(`{"name":"Poor","email":"owner@poor.io","email_credits":%d}`, credits), &made)
	f.console1("PATCH", "/companies/"+made.ID, `{"api_access":true}`, nil)
	s := *f.service
	s.creds = made.Credentials
	s.account, _ = api.ParseAPIKey(made.APIKey)
	s.token = f.signIn(made.ConsoleEmail, made.ConsolePassword).token
	return &flowCalls{&s, f.surface}, made.ID
}

func bothSurfaces(t *testing.T, test func(t *testing.T, f *flowCalls)) {
	for _, surface := range []string{"a", "console"} {
		t.Run(surface, func(t *testing.T) {
			test(t, &flowCalls{newServiceWith(t, &rowHistory{}, func(o *Options) { o.PerMinute = 1 << 20 }), surface})
		})
	}
}

// TestFlowTransitions walks the table of statuses.
func TestFlowTransitions(t *testing.T) { bothSurfaces(t, testFlowTransitions) }

func testFlowTransitions(t *testing.T, f *flowCalls) {
	id, ann := f.live(waits), f.contact("ann@x.io")
	trigger := func(id, email string) {
		t.Helper()
		if _, success, message, _ := f.call("POST", "/"+id+"/trigger", fmt.Sprintf(`{"email":%q}`, email)); !success {
			t.Fatal(message)
		}
	}
	trigger(id, "ann@x.io")
	at := func(status, step string) {
		t.Helper()
		if e := f.enrolmentOf(id, ann); e.Status != status || (e.Step == nil) != (step == "") || e.Step != nil && *e.Step != step {
			t.Errorf("the contact is %s at %v, not %s at %q", e.Status, e.Step, status, step)
		}
	}
	at("in_progress", "pause")

	// live → pause: no profile is enrolled, nothing advances, progress is kept.
	if x := f.must("POST", "/"+id+"/pause", ""); x.Status != "paused" || x.PausedAt == nil || x.PausedFor != nil || x.Counts.InProgress != 1 {
		t.Errorf("paused: %+v", x)
	}
	f.clock.Advance(2 * time.Hour)
	f.happen("bob@x.io", "tick", `{}`)
	at("in_progress", "pause")
	f.refused(id, "POST", "/"+id+"/trigger", `{"email":"bob@x.io"}`, "is paused")

	// paused → pause.
	f.same(id, "POST", "/"+id+"/pause", "")
	f.same(id, "PATCH", "/"+id, `{"status":"paused"}`)

	// paused → resume: people continue from where they stopped.
	if x := f.must("POST", "/"+id+"/resume", ""); x.Status != "live" || x.ResumedAt == nil {
		t.Errorf("resumed: %+v", x)
	}
	f.eventually("the contact continues", func() bool { return f.enrolmentOf(id, ann).Status == "completed" })
	at("completed", "")

	// live → resume, live → live.
	f.same(id, "POST", "/"+id+"/resume", "")
	f.same(id, "PATCH", "/"+id, `{"status":"live"}`)

	// Toggle: the opposite.
	for _, want := range []string{"paused", "live", "paused", "live"} {
		if x := f.must("PATCH", "/"+id+"/toggle", ""); x.Status != want {
			t.Errorf("toggled to %s, not to %s", x.Status, want)
		}
	}

	// PATCH with a status, and with anything else.
	if x := f.must("PATCH", "/"+id, `{"status":"paused"}`); x.Status != "paused" {
		t.Errorf("patched: %+v", x)
	}
	if x := f.must("PATCH", "/"+id, `{"status":"live"}`); x.Status != "live" {
		t.Errorf("patched: %+v", x)
	}
	for _, status := range []string{"live", "paused"} {
		f.must("PATCH", "/"+id, `{"status":"`+status+`"}`)
		for body, says := range map[string]string{
			`{"status":"paused","name":"n"}`: "name must not be given", `{"status":"live","steps":[]}`: "steps must not be given", `{"name":"n"}`: "name must not be given",
			`{"status":"live","trigger":null}`: "trigger must not be given", `{"status":"live","Status":"paused"}`: "Status must not be given", `{"reentry":"once"}`: "reentry must not be given",
			`{"status":"live","status":"paused"}`: "be given only once", `{"status":"live","paused_for":""}`: "paused_for must not be given",
			`{}`: "status must be given", `{"status":null}`: "status must be", `{"status":"draft"}`: "status must be one of paused, live", `{"status":1}`: "status must be a string",
			`["live"]`: "body must be an object", `{"status":"live"`: "valid JSON",
		} {
			f.refused(id, "PATCH", "/"+id, body, says)
		}
		_, success, _, _ := f.call("PATCH", "/"+id, "")
		if success {
			t.Error("an empty body is taken")
		}
	}

	// Duplicate, of any status: the source stays as it is.
	draft := f.draft(waits)
	f.must("POST", "/"+id+"/pause", "")
	paused, live := id, f.live(waits)
	for _, source := range []string{draft, paused, live} {
		before := f.text(source)
		x := f.must("POST", "/"+source+"/duplicate", "")
		if x.ID == source || x.Status != "draft" || x.Name != "Copy of waits" || x.CopyOf == nil || *x.CopyOf != source || x.Counts != (record.FlowCounts{}) || x.PublishedAt != nil ||
			!strings.Contains(before, `"steps":`+string(x.Steps)) || !strings.Contains(before, `"trigger":`+string(x.Trigger)) {
			t.Errorf("the copy of %s: %+v", before, x)
		}
		if after := f.text(source); after != before {
			t.Errorf("the source of a copy has changed:\n%s\n%s", before, after)
		}
	}

	// A draft has not been published.
	for _, x := range [][3]string{{"POST", "/pause"}, {"POST", "/resume"}, {"PATCH", "/toggle"}, {"PATCH", "", `{"status":"live"}`}, {"PATCH", "", `{"status":"paused"}`}, {"POST", "/trigger", `{"email":"ann@x.io"}`}} {
		f.refused(draft, x[0], "/"+draft+x[1], x[2], "the flow is a draft")
	}
	for _, x := range [][3]string{{"POST", "/pause"}, {"POST", "/resume"}, {"PATCH", "/toggle"}, {"PATCH", "", `{"status":"live"}`}, {"POST", "/duplicate"}, {"POST", "/trigger", `{"email":"ann@x.io"}`}, {"GET", ""}} {
		f.refused(draft, x[0], "/flw_0"+x[1], x[2], "there is no flow with this id")
	}
}

// TestFlowContentIsLocked: what was published keeps its content and can be
// deleted only when it does not run.
func TestFlowContentIsLocked(t *testing.T) {
	t.Parallel()
	f := &flowCalls{newServiceWith(t, &rowHistory{}, nil), "console"}
	id := f.live(waits)
	for _, status := range []string{"live", "paused"} {
		f.must("PATCH", "/"+id, `{"status":"`+status+`"}`)
		f.refused(id, "PUT", "/"+id, `{"name":"other","trigger":{"type":"api"},"steps":[]}`, "its content is locked; duplicate it")
	}
	f.must("POST", "/"+id+"/resume", "")
	f.refused(id, "DELETE", "/"+id, "", "the flow is live; pause it first")
	f.must("POST", "/"+id+"/pause", "")
	f.refused(id, "POST", "/"+id+"/publish", "", "resume it")
	if _, success, message, _ := f.call("DELETE", "/"+id, ""); !success {
		t.Error(message)
	}
	if status, success, _, _ := f.call("GET", "/"+id, ""); success || status != 404 {
		t.Error("the flow is still there")
	}
}

// TestFlowResumeRefused: what a flow lacks is listed, and nothing is half-started.
func TestFlowResumeRefused(t *testing.T) { bothSurfaces(t, testFlowResumeRefused) }

func testFlowResumeRefused(t *testing.T, f *flowCalls) {
	f.console1("POST", "/sender-domains", `{"domain":"shop.example"}`, nil)
	f.console1("POST", "/sender-domains/shop.example/verify", `{"force":true}`, nil)
	id := f.live(`{"name":"mails","trigger":{"type":"event","event":"go"},"steps":[{"id":"first","type":"email","sender":"a@shop.example",` + someMail + `,"next":"second"},{"id":"second","type":"email","sender":"b@shop.example",` + someMail + `,"next":null}]}`)
	f.must("POST", "/"+id+"/pause", "")
	f.console1("DELETE", "/sender-domains/shop.example", "", nil)
	for _, x := range [][3]string{{"POST", "/resume"}, {"PATCH", "/toggle"}, {"PATCH", "", `{"status":"live"}`}} {
		f.refused(id, x[0], "/"+id+x[1], x[2], "steps[0] (first): sender cannot be used: the domain shop.example is not verified")
		f.refused(id, x[0], "/"+id+x[1], x[2], "steps[1] (second): sender")
	}
	// No profile was enrolled by an event meanwhile.
	f.contact("ann@x.io")
	f.happen("ann@x.io", "go", `{}`)
	if x := f.must("GET", "/"+id, ""); x.Counts != (record.FlowCounts{}) || x.Status != "paused" || x.ResumedAt != nil {
		t.Errorf("after refusals: %+v", x)
	}
	var v struct {
		Valid  bool
		Faults []struct {
			Step          *string
			Path, Message string
		}
	}
	f.console1("GET", "/flows/"+id+"/validate", "", &v)
	if v.Valid || len(v.Faults) != 2 || *v.Faults[1].Step != "second" || v.Faults[1].Path != "steps[1].sender" {
		t.Errorf("faults: %+v", v)
	}
}

// TestFlowsOutOfCredits: flows that send e-mail pause when there are no credits,
// cannot be resumed without, and continue after a top-up; others are left alone.
func TestFlowsOutOfCredits(t *testing.T) { bothSurfaces(t, testFlowsOutOfCredits) }

func testFlowsOutOfCredits(t *testing.T, admin *flowCalls) {
	// A company that has next to nothing, so that it is soon spent.
	f, company := admin.companyWith(600)
	var steps []string
	for i := range 200 {
		next := fmt.Sprintf(`"m%d"`, i+1)
		if i == 199 {
			next = "null"
		}
		steps = append(steps, fmt.Sprintf(`{"id":"m%d","type":"email",%s,"next":%s}`, i, someMail, next))
	}
	id := f.live(`{"name":"many","trigger":{"type":"api"},"reentry":"after_exit","steps":[` + strings.Join(steps, ",") + `]}`)
	other := f.live(`{"name":"one","trigger":{"type":"event","event":"go"},"steps":[{"id":"m","type":"email",` + someMail + `,"next":null}]}`)
	byHand := f.live(`{"name":"by hand","trigger":{"type":"event","event":"go"},"steps":[{"id":"m","type":"email",` + someMail + `,"next":null}]}`)
	f.must("POST", "/"+byHand+"/pause", "")
	silent := f.live(waits)
	f.contact("ann@x.io")
	for n := 0; ; n++ {
		if _, success, message, _ := f.call("POST", "/"+id+"/trigger", `{"email":"ann@x.io"}`); !success {
			if n != 3 || !strings.Contains(message, "paused") {
				t.Fatalf("enrolment %d: %s", n, message)
			}
			break
		}
		if n > 3 {
			t.Fatal("credits do not run out")
		}
	}
	for _, flow := range []string{id, other} {
		x := f.must("GET", "/"+flow, "")
		if x.Status != "paused" || x.PausedFor == nil || *x.PausedFor != "credits" {
			t.Errorf("without credits: %+v", x.Status)
		}
		for _, x := range [][3]string{{"POST", "/resume"}, {"PATCH", "/toggle"}, {"PATCH", "", `{"status":"live"}`}} {
			f.refused(flow, x[0], "/"+flow+x[1], x[2], "out of e-mail credits; top up")
		}
	}
	if x := f.must("GET", "/"+silent, ""); x.Status != "live" {
		t.Error("a flow without e-mail is paused")
	}
	var v struct{ Faults []struct{ Message string } }
	if f.console1("GET", "/flows/"+other+"/validate", "", &v); len(v.Faults) != 1 || !strings.Contains(v.Faults[0].Message, "top up") {
		t.Errorf("faults: %+v", v)
	}
	admin.console1("POST", "/companies/"+company+"/credits", `{"amount":500}`, nil)
	for flow, want := range map[string]string{id: "live", other: "live", byHand: "paused", silent: "live"} {
		if x := f.must("GET", "/"+flow, ""); x.Status != want || x.PausedFor != nil {
			t.Errorf("after a top-up %s is %s, not %s", x.Name, x.Status, want)
		}
	}
}

// TestFlowTrigger: a contact is enrolled by a call, once for each key.
func TestFlowTrigger(t *testing.T) { bothSurfaces(t, testFlowTrigger) }

func testFlowTrigger(t *testing.T, f *flowCalls) {
	id, other := f.live(waits), f.live(`{"name":"by event","trigger":{"type":"event","event":"go"},"steps":[{"id":"e","type":"exit"}]}`)
	ann := f.contact("ann@x.io")
	f.contact("bob@x.io")
	path := "/" + id + "/trigger"
	for _, enrolled := range []bool{true, false, false} { // L2: a repeat gets the first answer
		_, _, _, data := f.call("POST", path, `{"email":" ANN@x.io","data":{"plan":"gold"},"idempotency_key":"k1"}`)
		var x struct {
			ID       string `json:"profile_id"`
			Enrolled bool
		}
		ok(t, json.Unmarshal(data, &x))
		if x.ID != ann || x.Enrolled != enrolled {
			t.Errorf("have %s, want enrolled %t", data, enrolled)
		}
	}
	for body, says := range map[string]string{
		`{"email":"bob@x.io","idempotency_key":"k1"}`: "used for another contact", `{"email":"ann@x.io"}`: "in this flow already", `{"email":"no@x.io"}`: "no contact has these identifiers",
		`{}`: "email, external_id or phone Field required", `{"email":1}`: "email must be a string", `{"email":"bob@x.io","data":[1]}`: "data must be an object",
		`{"email":"bob@x.io","data":{"a":"` + strings.Repeat("x", 17<<10) + `"}}`: "data must have at most", `{"email":"bob@x.io","idempotency_key":"` + strings.Repeat("x", 400) + `"}`: "idempotency_key must have at most",
	} {
		f.refused(id, "POST", path, body, says)
	}
	f.refused(other, "POST", "/"+other+"/trigger", `{"email":"bob@x.io"}`, "its trigger is event")
}

// TestFlowPages: pages of all sizes make up the list of flows and that of
// enrolments, those that have ended included.
func TestFlowPages(t *testing.T) {
	t.Parallel()
	f := &flowCalls{newServiceWith(t, &rowHistory{}, func(o *Options) { o.PerMinute = 1 << 20 }), "console"}
	id := f.live(`{"name":"short","trigger":{"type":"event","event":"go"},"reentry":"after_exit","steps":[{"id":"e","type":"exit"}]}`)
	var made []string
	for i := range 4 { // several of one instant
		var x record.Flow
		f.console1("POST", "/flows", fmt.Sprintf(`{"name":"f%d"}`, i), &x)
		made = append(made, x.ID)
	}
	slices.Sort(made)
	made = append([]string{id}, made...)
	var want []string
	for i, email := range []string{"a@x.io", "b@x.io", "c@x.io"} {
		f.contact(email)
		for n := range i + 1 {
			f.happen(email, "go", `{}`)
			want = append(want, fmt.Sprint(email, n+1))
		}
	}
	for limit := 1; limit < 8; limit++ {
		var flows, ways []string
		for cursor := ""; ; {
			_, b := f.with(f.creds.APIKey, "GET", fmt.Sprintf("/api/v1/custom-flows?limit=%d%s", limit, cursor), "")
			var p struct {
				Data []record.Flow
				Next string
			}
			ok(t, json.Unmarshal([]byte(b), &p))
			for _, x := range p.Data {
				flows = append(flows, x.ID)
			}
			if cursor = "&cursor=" + p.Next; p.Next == "" {
				break
			}
		}
		for cursor := ""; ; {
			var p struct {
				Enrolments []struct {
					ProfileID      string `json:"profile_id"`
					Number         int
					Status, Reason string
					Step           *string
				}
				Next string
			}
			f.console1("GET", fmt.Sprintf("/flows/%s/enrolments?limit=%d%s", id, limit, cursor), "", &p)
			if len(p.Enrolments) > limit {
				t.Fatalf("%d enrolments where %d are wanted at most", len(p.Enrolments), limit)
			}
			for _, x := range p.Enrolments {
				var who struct{ Identities struct{ Email []string } }
				f.console1("GET", "/profiles/"+x.ProfileID, "", &who)
				if ways = append(ways, fmt.Sprint(who.Identities.Email[0], x.Number)); x.Status != "exited" || x.Reason != "exit_step" || x.Step != nil {
					t.Errorf("have %+v", x)
				}
			}
			if cursor = "&cursor=" + p.Next; p.Next == "" {
				break
			}
		}
		if !slices.Equal(flows, made) || !slices.Equal(ways, want) {
			t.Errorf("pages of %d: %v of %v, %v of %v", limit, flows, made, ways, want)
		}
	}
	var p struct{ Enrolments []any }
	if f.console1("GET", "/flows/"+id+"/enrolments?status=in_progress", "", &p); len(p.Enrolments) != 0 {
		t.Errorf("in progress: %v", p.Enrolments)
	}
}

// TestFlowAnalytics: counts since a flow went live, and what happened over time,
// by flow and by step.
func TestFlowAnalytics(t *testing.T) {
	t.Parallel()
	h := &rowHistory{}
	s := newServiceWith(t, h, func(o *Options) { o.PerMinute = 1 << 20 })
	first := s.live(`{"name":"first","trigger":{"type":"event","event":"go"},"reentry":"after_exit","steps":[{"id":"mail","type":"email",` + someMail + `,"next":"out"},{"id":"out","type":"exit"}]}`)
	second := s.live(`{"name":"second","trigger":{"type":"event","event":"wait"},"steps":[{"id":"w","type":"wait","seconds":10000000,"next":null}]}`)
	s.draft(`{"name":"third"}`)
	for _, email := range []string{"a@x.io", "b@x.io"} {
		s.contact(email)
		s.happen(email, "go", `{}`)
	}
	s.happen("a@x.io", "wait", `{}`)
	s.clock.Advance(48 * time.Hour)
	s.happen("a@x.io", "go", `{}`)
	// What a dispatcher and trackers record of the first two messages.
	for _, email := range []string{"a@x.io", "b@x.io"} {
		s.happen(email, "email_sent", fmt.Sprintf(`{"flow_id":%q,"step_id":"mail"}`, first))
	}
	s.happen("a@x.io", "email_opened", fmt.Sprintf(`{"flow_id":%q,"step_id":"mail"}`, first))
	s.happen("a@x.io", "email_opened", fmt.Sprintf(`{"flow_id":%q,"step_id":"mail","agent":"prefetch"}`, first))
	s.happen("b@x.io", "email_opened", fmt.Sprintf(`{"flow_id":%q,"step_id":"mail"}`, second))

	type moves struct{ Entered, Completed, Exited uint64 }
	type point struct {
		Start string
		moves
	}
	var o struct {
		Total, Draft, Live, Paused int
		Counts                     record.FlowCounts
		InRange                    moves `json:"in_range"`
		Series                     []point
		Flows                      []struct {
			Name    string
			Counts  record.FlowCounts
			InRange moves `json:"in_range"`
		}
	}
	s.a("GET", "/analytics/flows/overview?from=2025-03-01&to=2025-03-05", "", &o)
	if o.Total != 3 || o.Draft != 1 || o.Live != 2 || o.Counts != (record.FlowCounts{Entered: 4, InProgress: 1, Exited: 3}) || o.InRange != (moves{4, 0, 3}) || len(o.Series) != 4 ||
		o.Series[0].moves != (moves{3, 0, 2}) || o.Series[2].moves != (moves{1, 0, 1}) || o.Flows[0].InRange != (moves{3, 0, 3}) || o.Flows[1].InRange != (moves{1, 0, 0}) || o.Flows[1].Counts.InProgress != 1 {
		t.Errorf("overview: %+v", o)
	}
	s.a("GET", "/analytics/flows/overview?from=2025-03-02&to=2025-03-05", "", &o)
	if o.Counts.Entered != 4 || o.InRange != (moves{1, 0, 1}) || o.Flows[0].InRange != (moves{1, 0, 1}) {
		t.Errorf("overview of three days: %+v", o)
	}
	var x struct {
		Name    string
		Counts  record.FlowCounts
		InRange moves `json:"in_range"`
		Series  []point
		Steps   []struct {
			ID          string
			Arrived, At uint64
			Results     map[string]uint64
			Messages    *analytics.MessageCounts
			Series      []struct {
				Start string
				Sent  uint64
			}
		}
	}
	s.a("GET", "/analytics/flows/"+first+"?from=2025-03-01&to=2025-03-05", "", &x)
	if x.Name != "first" || x.Counts.Entered != 3 || x.InRange != (moves{3, 0, 3}) || len(x.Series) != 4 || len(x.Steps) != 2 {
		t.Fatalf("flow: %+v", x)
	}
	mail, out := x.Steps[0], x.Steps[1]
	if mail.ID != "mail" || mail.Arrived != 3 || mail.At != 0 || mail.Results["queued"] != 3 || mail.Messages == nil || mail.Messages.Sent != 2 || mail.Messages.Opens != 1 || len(mail.Series) != 1 ||
		mail.Series[0].Sent != 2 || !strings.HasPrefix(mail.Series[0].Start, "2025-03-03") || out.Messages != nil || out.Arrived != 3 {
		t.Errorf("steps: %+v", x.Steps)
	}
	var all struct{ Flows int }
	if s.a("GET", "/analytics/overview", "", &all); all.Flows != 3 {
		t.Errorf("%d flows in the overview", all.Flows)
	}
}

// TestFlowPublish: publishing answers when the flow is live, 202 while it is
// being built, and says what is missing.
func TestFlowPublish(t *testing.T) {
	t.Parallel()
	building := &flowCalls{newServiceWith(t, &emptyHistory{building: true}, nil), "console"}
	building.happen("a@x.io", "bought", `{}`)
	bought := `{"name":"f","trigger":{"type":"api"},"steps":[{"id":"c","type":"condition","if":{"kind":"activity","event":"bought"},"yes":"x","no":null},{"id":"x","type":"exit"}]}`
	id := building.draft(bought)
	status, _, message, data := building.call("POST", "/"+id+"/publish", "")
	var x record.Flow
	ok(t, json.Unmarshal(data, &x))
	if status != 202 || x.Status != "draft" || !x.Publishing || !strings.Contains(message, "being built") {
		t.Errorf("while it is built: %d %s %s", status, message, data)
	}
	building.refused(id, "PUT", "/"+id, `{"name":"g"}`, "is being published")

	f := &flowCalls{newServiceWith(t, &rowHistory{}, nil), "console"}
	f.happen("a@x.io", "bought", `{}`)
	id = f.live(bought)
	f.same(id, "POST", "/"+id+"/publish", "")
	lacking := f.draft(`{"name":"f","steps":[{"id":"m","type":"email","next":"gone"},{"id":"s","type":"sms"}]}`)
	for _, says := range []string{"trigger is missing", "steps[0] (m): subject is missing; body is missing; next must be the id of a step", "steps[1] (s): cannot be reached"} {
		f.refused(lacking, "POST", "/"+lacking+"/publish", "", says)
	}
}

// TestProfileTagsAndFlows: a profile answers its tags, and the flows it was in.
func TestProfileTagsAndFlows(t *testing.T) {
	t.Parallel()
	f := &flowCalls{newServiceWith(t, &rowHistory{}, nil), "console"}
	id := f.live(`{"name":"tags","trigger":{"type":"api"},"steps":[{"id":"t","type":"tag","add":["vip","\u00fc"],"next":null}]}`)
	other := f.live(waits)
	var p struct{ Tags, Flows []string }
	ann := f.contact("ann@x.io")
	if f.console1("GET", "/profiles/"+ann, "", &p); p.Tags == nil || p.Flows == nil || len(p.Tags)+len(p.Flows) != 0 {
		t.Errorf("before: %+v", p)
	}
	for _, flow := range []string{other, id} {
		if _, success, message, _ := f.call("POST", "/"+flow+"/trigger", `{"email":"ann@x.io"}`); !success {
			t.Fatal(message)
		}
	}
	if f.console1("GET", "/profiles?email=ann@x.io", "", &p); !slices.Equal(p.Tags, []string{"vip", "ü"}) || !slices.Equal(p.Flows, []string{id, other}) {
		t.Errorf("have %+v", p)
	}
}
