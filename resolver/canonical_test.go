package resolver

import (
	"encoding/json"
	"testing"

	"github.com/musterhq/muster/resolver/contacts"
)

// TestR2AttributesAreStoredAsGiven: an update stores what an event of the same
// attributes does, to the byte (R2).
func TestR2AttributesAreStoredAsGiven(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ given, canonical string }{
		{`{"n":12345678901234567890}`, `{"n":12345678901234567890}`},
		{`{"n":1.50,"m":1E2,"z":-0}`, `{"n":1.50,"m":1E2,"z":-0}`},
		{`{ "s" : "a<b>&\u00e9\u2028\/" }`, "{\"s\":\"a<b>&é\u2028/\"}"},
		{`{"s":"\ud83d\ude00"}`, `{"s":"😀"}`},
		{`{"k\u0065y":[1,{"x":null}]}`, `{"key":[1,{"x":null}]}`},
	} {
		r := newRecorder(t, DefaultSettings())
		e := ev("email", "event@x.io")
		e.Attributes = []byte(x.canonical)
		byEvent := r.profile(r.events(e).Events[0].Profile.String())
		id := r.contact(contacts.Create{Email: "contact@x.io"})
		r.must(contacts.CommandUpdate, contacts.Update{ID: id, Attributes: json.RawMessage(x.given), Geo: json.RawMessage(x.given)})
		p := r.profile(id)
		if string(p.Attributes) != x.canonical || string(p.Attributes) != string(byEvent.Attributes) || string(p.Geo) != x.canonical {
			t.Errorf("%s is stored as %s, geo as %s; by an event as %s", x.given, p.Attributes, p.Geo, byEvent.Attributes)
		}
		// The same again is no change.
		before := hashOf(t, r.m)
		if r.must(contacts.CommandUpdate, contacts.Update{ID: id, Attributes: json.RawMessage(x.canonical)}); before == "" || string(r.profile(id).Attributes) != x.canonical {
			t.Errorf("%s was stored twice", x.given)
		}
	}
	r := newRecorder(t, DefaultSettings())
	id := r.contact(contacts.Create{Email: "contact@x.io"})
	for given, want := range map[string]string{
		`{"a":{"k":1,"k":2}}`:      "attributes.a.k occurs twice",
		`{"a":"\ud800"}`:           "attributes.a holds a \\u escape of half a character",
		`{"a":"\u0000"}`:           "attributes.a holds the character NUL",
		`{"a":1e999}`:              "attributes.a is a number beyond the range",
		`[1]`:                      "attributes Input should be a valid object",
		`{"a":` + nested(40) + `}`: "is nested deeper than 32 levels",
	} {
		r.refuses(want, contacts.CommandUpdate, contacts.Update{ID: id, Attributes: json.RawMessage(given)})
	}
	if p := r.profile(id); len(p.Attributes) != 0 {
		t.Errorf("what was refused is stored: %s", p.Attributes)
	}
	r.must(contacts.CommandUpdate, contacts.Update{ID: id, Attributes: json.RawMessage(`null`)})
}

func nested(depth int) string {
	s := "1"
	for range depth {
		s = "[" + s + "]"
	}
	return s
}
