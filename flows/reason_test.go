package flows

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/musterhq/muster/messaging/webhook"
)

// TestRecordReasons: a record keeps why steps failed; one without is of version 1,
// which older builds read.
func TestRecordReasons(t *testing.T) {
	plain := Record{DateMs: 5, Enrolments: []Enrolment{
		{Number: 1, Status: Exited, Reason: ByFailure, Step: End, StartedMs: 1, EndedMs: 9, Path: []Visit{{Step: 0, AtMs: 1, Result: Done}, {Step: 1, AtMs: 2, Result: Failed}}, Event: []byte(`{}`)},
		{Number: 2, Status: InProgress, Step: 1, StartedMs: 3, Path: []Visit{{Step: 1, AtMs: 3}}},
	}}
	b := plain.Append(nil)
	if b[0] != recordVersion {
		t.Errorf("without reasons the version is %d", b[0])
	}
	with := plain
	with.Enrolments = append([]Enrolment{}, plain.Enrolments...)
	with.Enrolments[0].Path = []Visit{{Step: 0, AtMs: 1, Result: Done}, {Step: 1, AtMs: 2, Result: Failed, Reason: "connection refused"}}
	withReason := with.Append(nil)
	if withReason[0] != recordVersionReasons {
		t.Errorf("with a reason the version is %d", withReason[0])
	}
	var back Record
	for _, x := range []struct {
		b    []byte
		want Record
	}{{withReason, with}, {b, plain}, {withReason, with}} { // the record's own slices are used again
		if err := back.Decode(x.b); err != nil || !reflect.DeepEqual(back, x.want) {
			t.Errorf("%v: %+v, want %+v", err, back, x.want)
		}
	}
	for n := range withReason {
		if err := back.Decode(withReason[:n]); err == nil {
			t.Errorf("the first %d bytes are a record", n)
		}
	}
	at := strings.Index(string(withReason), "connection refused") - 2 // the place, and the length
	for name, change := range map[string]func([]byte){
		"a place that is not there": func(b []byte) { b[at] = 2 }, "two for one reason": func(b []byte) { b[at-1] = 2 }, "version 3": func(b []byte) { b[0] = 3 },
	} {
		bad := append([]byte{}, withReason...)
		if change(bad); back.Decode(bad) == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestBoundReason(t *testing.T) {
	for text, want := range map[string]int{"": 0, "short": 5, strings.Repeat("x", 300): 200, strings.Repeat("é", 150): 200, "x" + strings.Repeat("é", 150): 199, "a\xffb": 2} {
		if have := boundReason(text); len(have) != want || !utf8.ValidString(have) {
			t.Errorf("%q has %d bytes, want %d", have, len(have), want)
		}
	}
}

func TestTargetFaults(t *testing.T) {
	for url, want := range map[string]string{
		"https://example.com/{{profile_id}}": "", "https://93.184.216.34/": "",
		"http://127.0.0.1/":                   "steps[1] (hook): url leads to 127.0.0.1",
		"https://a.b.local/?x={{profile_id}}": "steps[1] (hook): url is refused: the host name of url ends in .local",
		// Validate refuses these, whatever is allowed.
		"https://{{profile_id}}/": "", "https://127.0.0.1:{{profile_id}}/": "", "nonsense": "", "http://169.254.169.254/": "", "https://example.com/{{": "",
	} {
		f := &Flow{Steps: []Step{{ID: "first", Type: StepExit}, {ID: "hook", Type: StepWebhook, Webhook: &Webhook{URL: url}}}}
		if have := f.TargetFaults(webhook.Guard{}).String(); !strings.HasPrefix(have, want) || want == "" && have != "" {
			t.Errorf("%s: %q, want %q", url, have, want)
		}
		if have := f.TargetFaults(webhook.Guard{AllowPrivate: true}); have != nil {
			t.Errorf("%s: %s although private addresses are allowed", url, have)
		}
	}
}
