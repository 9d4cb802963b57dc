package ingest

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
)

// TestSuggestionsLeaveOutWhatIsThere: a field that the event has was not meant by another
// name, but for one that is a misspelling of it.
func TestSuggestionsLeaveOutWhatIsThere(t *testing.T) {
	t.Parallel()
	const elsewhere = "; put free-form data into properties, or let the settings ignore unknown fields"
	for body, want := range map[string]string{
		`{"event":"x","user":{"email":"a@x.io"}}`:                                                `event_type is missing; name what happened, such as "item_viewed"; event is not a field of an event; did you mean event_type?`,
		`{"event_type":"x","name":"y","user":{"email":"a@x.io"}}`:                                "name is not a field of an event" + elsewhere,
		`{"name":"y","event_type":"x","user":{"email":"a@x.io"}}`:                                "name is not a field of an event" + elsewhere,
		`{"event_type":"x","propertys":{},"user":{"email":"a@x.io"}}`:                            "propertys is not a field of an event; did you mean properties?",
		`{"event_type":"x","props":{},"properties":{},"user":{"email":"a@x.io"}}`:                "props is not a field of an event" + elsewhere,
		`{"event_type":"x","propertys":{},"properties":{},"user":{"email":"a@x.io"}}`:            "propertys is not a field of an event; did you mean properties? The event has that field, too: put everything into it",
		`{"event_type":"x","email":"a@x.io","user":{"external_id":"1"}}`:                         "email is not a field of an event; did you mean user.email?",
		`{"event_type":"x","name":"y","propertys":{},"user":{"email":"a@x.io"}}`:                 "name is not a field of an event" + elsewhere,
		`{"name":"y","event_type":"x","user":{"email":""},"properties":{"a":1}}`:                 "name is not a field of an event" + elsewhere,
		`{"event_type":"x","event_type":"y","name":1,"user":{"email":"a@x.io"}}`:                 "event_type occurs twice; send each key of an object once",
		`{"name":1,"event_type":"x","event_type":"y","user":{"email":"a@x.io"}}`:                 "name is not a field of an event" + elsewhere,
		`{"name":1,"event_type":7,"user":{"email":"a@x.io"}}`:                                    `event_type must be a string; name what happened, such as "item_viewed"`,
		`{"timestamp":"2020-01-01T00:00:00Z","ts":1,"event_type":"x","user":{"email":"a@x.io"}}`: "ts is not a field of an event" + elsewhere,
	} {
		if got := decodeFault(t, body); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// decodeFault is why an event is refused.
func decodeFault(t *testing.T, body string) string {
	t.Helper()
	d, err := NewDecoder(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.single([]byte(body), testNow.UnixMilli()); err != nil {
		return err.text
	}
	return string(d.errorText(0))
}

// TestUnknownFieldsOfUserAreTold: the answer to a stored event names the first field
// that was left out; a setting keeps it quiet.
func TestUnknownFieldsOfUserAreTold(t *testing.T) {
	t.Parallel()
	const none = "user has no identifier; send at least one of user.email, user.external_id and user.phone, not empty"
	for user, want := range map[string]struct{ fault, warning string }{
		`{"email":"a@x.io","first_name":"A"}`:            {},
		`{"external_id":"1","mail":"a@x.io"}`:            {warning: "user.mail left out: it is not a field of user; did you mean user.email?"},
		`{"email":"a@x.io","mail":"b@x.io"}`:             {warning: "user.mail left out: it is not a field of user; put it into user.attributes"},
		`{"mail":"b@x.io","email":"a@x.io"}`:             {warning: "user.mail left out: it is not a field of user; put it into user.attributes"},
		`{"email":"a@x.io","plan":"pro","age":5}`:        {warning: "user.plan left out: it is not a field of user; put it into user.attributes"},
		`{"email":"a@x.io","frist_name":"A"}`:            {warning: "user.frist_name left out: it is not a field of user; did you mean user.first_name?"},
		`{"email":"a@x.io","userId":"7"}`:                {warning: "user.userId left out: it is not a field of user; did you mean user.external_id?"},
		`{"email":"a@x.io","country":"DE"}`:              {warning: "user.country left out: it is not a field of user; did you mean user.geo.country?"},
		`{"email":"a@x.io","traits":{},"attributes":{}}`: {warning: "user.traits left out: it is not a field of user; put it into user.attributes"},
		`{"mail":"a@x.io"}`:                              {fault: none + "; user.mail is not a field of user; did you mean user.email?"},
		`{"nick":"a"}`:                                   {fault: none},
		`{"email":"a@x.io","\"\u0001":1}`:                {warning: "user.\"\x01 left out: it is not a field of user; put it into user.attributes"},
	} {
		for _, ignore := range []bool{false, true} {
			d, err := NewDecoder(Limits{})
			if err != nil {
				t.Fatal(err)
			}
			d.IgnoreUnknown(ignore)
			if err := d.single([]byte(`{"event_type":"x","user":`+user+`}`), testNow.UnixMilli()); err != nil {
				t.Fatal(err.text)
			}
			w := want.warning
			if ignore {
				w = ""
			}
			if fault, warning := string(d.errorText(0)), string(d.warning(0)); fault != want.fault || warning != w {
				t.Errorf("%s: %q %q", user, fault, warning)
			}
		}
	}
	// The warnings of a batch are those of its events, and none is left of the last body.
	d, err := NewDecoder(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.batch([]byte(`{"events":[{"event_type":"a","user":{"email":"a@x.io","x":1}},{"event_type":"b","user":{"email":"b@x.io"}},{"event_type":"C","user":{"email":"c@x.io","y":1}},{"event_type":"d","user":{"email":"d@x.io","z":1}}]}`), eventlog.KindEvents, testNow.UnixMilli()); err != nil {
			t.Fatal(err.text)
		}
		for i, want := range []string{"user.x left out", "", "", "user.z left out"} {
			if w := string(d.warning(i)); !strings.HasPrefix(w, want) || want == "" && w != "" {
				t.Errorf("event %d: %q", i, w)
			}
		}
	}
}
