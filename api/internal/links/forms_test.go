package links

import (
	"encoding/json"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver/forms"
)

// allFields is a form with a field of each kind.
func allFields() *forms.Form {
	return &forms.Form{ID: "frm_1", Content: forms.Content{
		Fields: []forms.Field{
			{Name: "email", Type: forms.TypeText, Required: true}, {Name: "phone", Type: forms.TypeText}, {Name: "first_name", Type: forms.TypeText}, {Name: "last_name", Type: forms.TypeText},
			{Name: "attributes.n", Type: forms.TypeNumber}, {Name: "attributes.b", Type: forms.TypeBoolean}, {Name: "attributes.d", Type: forms.TypeDate},
			{Name: "attributes.c", Type: forms.TypeChoice, Options: []string{"x", "y"}}, {Name: "attributes.t", Type: forms.TypeText},
		},
		Consent: &forms.Consent{Text: "Yes", Channels: []string{"email"}, Required: true},
	}}
}

func TestReadForm(t *testing.T) {
	good := url.Values{"email": {" Ann@Example.com "}, "phone": {"+49 (30) 12-34"}, "first_name": {"Ann"}, "last_name": {"Lee"}, "attributes.n": {"1,5"}, "attributes.b": {"1"}, "attributes.d": {"2026-11-26"}, "attributes.c": {"y"}, "attributes.t": {"x"}, "consent": {"1"}}
	s, err := readForm(allFields(), []byte(good.Encode()))
	if err != nil || len(s.faults) > 0 || s.submit.Email != "Ann@Example.com" || !s.submit.Consented || string(s.submit.Attributes) != `{"b":true,"c":"y","d":"2026-11-26","n":1.5,"t":"x"}` {
		t.Fatalf("%+v %v", s, err)
	}
	for field, texts := range map[string][]string{
		"email":        {"", "ann", "ann@", "@x.io", "a b@x.io", "a@x", "a@x..io", "a@x.io,b@x.io", "a@x.io\nbcc: b@x.io", "<a@x.io>", strings.Repeat("a", 250) + "@x.io", "\xff@x.io"},
		"phone":        {"1234", "call me", "12+345678", "030 123456", "49 30 123456", "(+49) 30 123456", "+49+30123456", "+" + strings.Repeat("1", 21)},
		"attributes.n": {"big", "NaN", "Inf", "1e99", "1_0", "1,000", "12.345", "0x10"}, "attributes.d": {"26.11.2026", "2026-13-01"}, "attributes.c": {"z"}, "attributes.t": {strings.Repeat("x", 513), "a\x00b"}, "consent": {""},
	} {
		for _, text := range texts {
			bad := url.Values{}
			for k, v := range good {
				bad[k] = v
			}
			bad.Set(field, text)
			if s, err := readForm(allFields(), []byte(bad.Encode())); err != nil || len(s.faults) != 1 || s.faults[field] == "" {
				t.Errorf("%s %q: %v %v", field, text, s.faults, err)
			}
		}
	}
	good.Set("phone", "0049 30 123456")
	if s, err := readForm(allFields(), []byte(good.Encode())); err != nil || len(s.faults) > 0 || s.submit.Phone != "+49 30 123456" {
		t.Errorf("00 in place of the plus sign: %+v %v", s, err)
	}
	if _, err := readForm(allFields(), []byte("a=%zz")); err == nil {
		t.Error("what is no form is taken")
	}
}

// FuzzReadForm: whatever is sent, what is taken can be stored.
func FuzzReadForm(f *testing.F) {
	f.Add([]byte("email=a%40x.io&phone=%2B4930123&attributes.n=1&attributes.b=1&attributes.d=2026-01-01&attributes.c=x&consent=1"))
	f.Add([]byte("email=%00&email=%ff&attributes.n=NaN;x=%zz"))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := readForm(allFields(), body)
		if err != nil || len(s.faults) > 0 {
			return
		}
		c := s.submit
		c.Keys = []string{"k"}
		if r := c.Check(false); r != nil {
			t.Fatalf("%q: %v", body, r)
		}
		if len(c.Attributes) > 0 && (!json.Valid(c.Attributes) || !utf8.Valid(c.Attributes)) {
			t.Fatalf("%q: %q", body, c.Attributes)
		}
	})
}

func TestFormToken(t *testing.T) {
	key, other := tracking.Key{1}, tracking.Key{2}
	token := key.FormToken("frm_1", 1234, [16]byte{7})
	if at, nonce, ok := key.ParseFormToken("frm_1", token); !ok || at != 1234 || nonce != [16]byte{7} {
		t.Fatal(at, nonce, ok)
	}
	for _, x := range []struct {
		key         tracking.Key
		form, token string
	}{{other, "frm_1", token}, {key, "frm_2", token}, {key, "frm_1", token[1:]}, {key, "frm_1", strings.Replace(token, "BNIH", "CNIH", 1)}, {key, "frm_1", ""}} {
		if _, _, ok := x.key.ParseFormToken(x.form, x.token); ok {
			t.Errorf("%q is taken for %s", x.token, x.form)
		}
	}
}

// TestFormRates: a client and a form are bounded apart, by the minute.
func TestFormRates(t *testing.T) {
	r := newFormRates()
	now := time.UnixMilli(1_000_000_000_000)
	count := func(form, client string, hosted bool) (n int) {
		for n < 1000 && r.allow(now, form, netip.MustParseAddr(client), hosted) {
			n++
		}
		return n
	}
	if n := count("a", "192.0.2.1", true); n != hostedPerClient {
		t.Errorf("%d by the page", n)
	}
	if n := count("a", "192.0.2.1", false); n != embeddedPerClient {
		t.Errorf("%d without a token", n)
	}
	if n := count("a", "2001:db8::1", true); n != hostedPerClient {
		t.Errorf("%d of another client", n)
	}
	if count("a", "2001:db8::2", true) != 0 {
		t.Error("another address of the same customer starts again")
	}
	if n := count("b", "192.0.2.1", true); n != hostedPerClient {
		t.Errorf("%d of another form", n)
	}
	now = now.Add(time.Minute)
	if n := count("a", "192.0.2.1", true); n != hostedPerClient {
		t.Errorf("%d in the next minute", n)
	}
}
