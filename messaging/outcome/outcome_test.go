package outcome

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClassNamesRoundTrip(t *testing.T) {
	for c := Accepted; c <= Retired; c++ {
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var back Class
		if err := json.Unmarshal(text, &back); err != nil || back != c {
			t.Errorf("%s: %v, %v", text, back, err)
		}
	}
	for _, bad := range []Class{0, Retired + 1} {
		if _, err := bad.MarshalText(); err == nil {
			t.Errorf("%v was written", bad)
		}
	}
	var c Class
	if err := c.UnmarshalText(nil); err == nil {
		t.Error("an empty name was read")
	}
}

func TestErrCarriesClassAndCause(t *testing.T) {
	if err := New(Accepted, "", "").Err(); err != nil {
		t.Error(err)
	}
	err := fmt.Errorf("sending: %w", Failed(Ambiguous, "network", context.DeadlineExceeded).Err())
	if ClassOf(err) != Ambiguous || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v is %v", err, ClassOf(err))
	}
	if ClassOf(nil) != Accepted || ClassOf(errors.New("x")) != Temporary {
		t.Error("class of nil or of a foreign error")
	}
}

func TestCleanBoundsForeignText(t *testing.T) {
	for _, s := range []string{
		"", "a\r\nb\x00\tc", strings.Repeat("ä", 4000), strings.Repeat("\xff", 4000), strings.Repeat("\n", 9000),
	} {
		got := Clean(s, 100)
		if len(got) > 100 || !utf8.ValidString(got) || strings.ContainsAny(got, "\r\n\x00\t") {
			t.Errorf("%.20q: %q", s, got)
		}
	}
	if got := Clean(" 5.1.1 \r\n no  such user ", 100); got != "5.1.1 no such user" {
		t.Errorf("%q", got)
	}
	if got := Clean(strings.Repeat("é", 60), 101); len(got) != 100 {
		t.Errorf("cut at %d", len(got))
	}
}
