package identity

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNormalForms(t *testing.T) {
	for _, c := range []struct{ in, email, phone string }{
		{"", "", ""},
		{"  Jo.Doe@Example.COM\n", "jo.doe@example.com", ""},
		{"ÄRGER@Straße.de", "ärger@straße.de", ""},
		{"\u00a0ΣΑΣ@x.gr\u2003", "σασ@x.gr", ""},
		{"+49 (0) 170-12 34", "+49 (0) 170-12 34", "+4901701234"},
		{"(+1) 555", "(+1) 555", "+1555"},
		{"0170/1234", "0170/1234", "01701234"},
		{"1+2", "1+2", "12"},
		{"+", "+", ""},
		{"٣٤", "٣٤", ""},
	} {
		if got := NormalizeEmail(c.in); got != c.email {
			t.Errorf("NormalizeEmail(%q) = %q, want %q", c.in, got, c.email)
		}
		if got := NormalizePhone(c.in); got != c.phone {
			t.Errorf("NormalizePhone(%q) = %q, want %q", c.in, got, c.phone)
		}
	}
}

// Resolution compares normal forms of normal forms (R2), so normalising twice
// must change nothing.
func TestR2NormalFormsAreStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		email := NormalizeEmail(s)
		if want := strings.ToLower(strings.TrimSpace(s)); email != want {
			t.Fatalf("%q: %q, want %q", s, email, want)
		}
		if again := NormalizeEmail(email); again != email {
			t.Fatalf("%q: %q, then %q", s, email, again)
		}
		phone := NormalizePhone(s)
		if again := NormalizePhone(phone); again != phone {
			t.Fatalf("%q: %q, then %q", s, phone, again)
		}
	})
	for r := range runes() {
		once := NormalizeEmail(string(r))
		if again := NormalizeEmail(once); again != once {
			t.Errorf("%U: %q, then %q", r, once, again)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	buf := make([]byte, 0, 128)
	email, umlaut, phone := []byte(" Jo@Example.com"), []byte("JÖ@example.com"), []byte("+1 (555) 123")
	if n := testing.AllocsPerRun(100, func() {
		AppendNormalEmail(buf, email)
		AppendNormalEmail(buf, umlaut)
		AppendNormalPhone(buf, phone)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAppendNormalEmail(b *testing.B) {
	buf, s := make([]byte, 0, 64), []byte("Jo.Doe+shop@Example.com")
	b.ReportAllocs()
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		AppendNormalEmail(buf, s)
	}
}

func TestPhoneSpellings(t *testing.T) {
	for in, want := range map[string]string{
		"+49 (30) 12": "+493012 00493012 493012", "0049 3012": "00493012 +493012 493012", "493012": "493012 +493012 00493012",
		"030 12": "03012 +03012 0003012", "": "", "+": "", "00": "",
	} {
		if got := strings.Join(PhoneSpellings(in), " "); got != want {
			t.Errorf("PhoneSpellings(%q) = %q, want %q", in, got, want)
		}
	}
}
