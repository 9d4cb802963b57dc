package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/testlevel"
)

// runes is how many are tried, from 0 on: all of them, at the quick level those before the
// supplementary ideographs, among which are all that have an upper case.
func runes() rune { return rune(testlevel.Count[int](0x20000, unicode.MaxRune+1)) }

func fold(s string) string { return string(AppendFoldedEmail(nil, []byte(s))) }

func TestFoldedForms(t *testing.T) {
	for _, alike := range [][]string{
		{"straße@x.de", "STRASSE@x.de", "Strasse@X.DE", "STRAẞE@x.de", "ſtraße@x.de", "  ſTRASSE@x.de\n"},
		{"ΣΑΣ@x.gr", "σας@x.gr", "σασ@x.gr"},
		{"K@x.io", "k@x.io", "K@x.io"}, // the last is the Kelvin sign
		{"ﬁ@x.io", "FI@x.io", "fi@x.io"},
		{"İ@x.io", "i\u0307@x.io", "i@x.io", "I@x.io"},
		{"ᏸ@x.io", "Ᏸ@x.io"},
	} {
		for _, s := range alike {
			if fold(s) != fold(alike[0]) {
				t.Errorf("%q folds to %q, %q to %q", s, fold(s), alike[0], fold(alike[0]))
			}
		}
	}
	for _, differ := range [][2]string{{"strase@x.de", "straße@x.de"}, {"ä@x.de", "a@x.de"}, {"ı@x.io", "i@x.io"}, {"ä@x.de", "a\u0308@x.de"}} {
		if fold(differ[0]) == fold(differ[1]) {
			t.Errorf("%q and %q both fold to %q", differ[0], differ[1], fold(differ[0]))
		}
	}
}

// TestFoldingIsCoarserThanTheNormalForm: what has one normal form has one folded
// form, and folding twice changes nothing.
func TestFoldingIsCoarserThanTheNormalForm(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, s string) {
		once := fold(s)
		if of := fold(NormalizeEmail(s)); of != once {
			t.Fatalf("%q folds to %q, its normal form to %q", s, once, of)
		}
		if again := fold(once); again != once {
			t.Fatalf("%q: %q, then %q", s, once, again)
		}
		if upper := fold(strings.ToUpper(s)); NormalizeEmail(strings.ToUpper(s)) == NormalizeEmail(s) && upper != once {
			t.Fatalf("%q folds to %q, its upper case to %q", s, once, upper)
		}
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.String().Draw(t, "s")) })
	for r := range runes() {
		check(t, string(r))
	}
	check(t, "İ\u0307\u0307@x")
}

// TestTablesArePinned: the state machine's answers depend on these tables. When a
// newer Go or golang.org/x/text brings others, what was recorded under the old
// ones is replayed otherwise: the rules need a new resolver.ApplyVersion, and this
// test the new sum.
func TestTablesArePinned(t *testing.T) {
	h := sha256.New()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		h.Write([]byte(NormalizeEmail(string(r)) + "\x00" + fold(string(r)) + "\n"))
	}
	const want = "9717c298d63fce30de2b891c38871b1103e09ff1c3eef20c504316deec8e7d19"
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("the tables of Unicode %s have the sum %s, expected %s", unicode.Version, got, want)
	}
}
