package inbound

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata/mail/expected.txt")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func show(events []Event, err error) string {
	var b strings.Builder
	if err != nil {
		fmt.Fprintf(&b, "  error: %v\n", err)
	} else if len(events) == 0 {
		b.WriteString("  nothing\n")
	}
	for _, e := range events {
		fmt.Fprintf(&b, "  %s hard=%v status=%s send=%s message=%s to=%s at=%s token=%s\n    %s\n", e.Type, e.Hard, e.Status, e.SendID, e.MessageID, e.Recipient,
			map[bool]string{true: "", false: e.At.Format(time.RFC3339)}[e.At.IsZero()], e.Token, e.Reason)
	}
	return b.String()
}

// TestMailCorpus reads mails of many systems; the expectations are in one file that
// reads as a list.
func TestMailCorpus(t *testing.T) {
	files, _ := filepath.Glob("testdata/mail/*.eml")
	if len(files) < 20 {
		t.Fatalf("%d mails", len(files))
	}
	var got strings.Builder
	ids := map[string]string{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		events, err := ParseMail(raw, MailOptions{})
		fmt.Fprintf(&got, "%s\n%s", strings.TrimSuffix(filepath.Base(f), ".eml"), show(events, err))
		// With bare line feeds it is the same mail.
		unix := bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))
		other, otherErr := ParseMail(unix, MailOptions{})
		if show(events, err) != show(other, otherErr) {
			t.Errorf("%s with bare line feeds:\n%s", f, show(other, otherErr))
		}
		again, _ := ParseMail(raw, MailOptions{})
		for i, e := range events {
			if e.ID != again[i].ID || e.ID == "" || len(e.ID) > maxID {
				t.Errorf("%s: id %q, then %q", f, e.ID, again[i].ID)
			}
			if was, dup := ids[e.ID]; dup {
				t.Errorf("%s and %s share the id %s", f, was, e.ID)
			}
			ids[e.ID] = f
		}
	}
	const file = "testdata/mail/expected.txt"
	if *rewrite {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, _ := os.ReadFile(file)
	if string(want) != got.String() {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

// I2: another hop adds headers; the fact is the same.
func TestSameReportOverAnotherPath(t *testing.T) {
	raw, err := os.ReadFile("testdata/mail/postfix-user-unknown.eml")
	if err != nil {
		t.Fatal(err)
	}
	a, _ := ParseMail(raw, MailOptions{})
	b, _ := ParseMail(append([]byte("Received: from x by y\r\nDelivered-To: z@shop.example\r\n"), raw...), MailOptions{})
	if len(a) != 1 || len(b) != 1 || a[0].ID != b[0].ID {
		t.Errorf("%+v\n%+v", a, b)
	}
	c, _ := ParseMail(bytes.Replace(raw, []byte("5D2E1208A1"), []byte("5D2E1208A2"), 1), MailOptions{})
	if len(c) != 1 || c[0].ID == a[0].ID {
		t.Error("another report has the same id")
	}
}

func TestReport(t *testing.T) {
	raw, err := os.ReadFile("testdata/mail/postfix-delayed.eml")
	if err != nil {
		t.Fatal(err)
	}
	r, ok := ParseReport(raw, MailOptions{})
	if !ok || len(r.Recipients) != 1 || r.Recipients[0].Action != "delayed" || r.Recipients[0].Status != "4.4.1" || r.SendID != "11" || r.Recipients[0].Address() != "ben@slow.example" {
		t.Errorf("%+v", r)
	}
	if _, ok := ParseReport([]byte("Subject: x\n\ny"), MailOptions{}); ok {
		t.Error("a report")
	}
}

func TestMailBounds(t *testing.T) {
	if _, err := ParseMail(make([]byte, MaxBytes+1), MailOptions{}); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	for _, s := range []string{"", "\n", "x", "Subject: x\n\nhello"} {
		if _, err := ParseMail([]byte(s), MailOptions{}); !errors.Is(err, ErrNotRecognised) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// I1: shapes that cost most are read in a moment.
func TestHostileShapes(t *testing.T) {
	fill := func(head, unit, tail string) []byte {
		return []byte((head + strings.Repeat(unit, (MaxBytes-len(head)-len(tail))/len(unit)) + tail))
	}
	deep := ""
	for i := range 200 {
		deep += fmt.Sprintf("Content-Type: multipart/mixed; boundary=%d\n\n--%d\n", i, i)
	}
	report := "Content-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/delivery-status\n\n"
	daemon := "Return-Path: <>\n\n"
	for name, raw := range map[string][]byte{
		"one line":       fill("", "x", ""),
		"empty lines":    fill("", "\n", ""),
		"fields":         fill("", "a:b\n", ""),
		"folded":         fill("a: b\n", " c\n", ""),
		"folded, many":   fill("", "a:"+strings.Repeat("\n b", 5000)+"\n", ""),
		"parts":          fill("Content-Type: multipart/mixed; boundary=b\n\n", "--b\n\n", ""),
		"near marks":     fill("Content-Type: multipart/mixed; boundary="+strings.Repeat("b", 150)+"\n\n", "--"+strings.Repeat("b", 149)+"\n", ""),
		"deep":           []byte(deep),
		"groups":         fill(report, "Action: failed\nStatus: 5.1.1\n\n", ""),
		"groups, empty":  fill(report, "\n", ""),
		"long field":     fill(report+"Final-Recipient: ", "a@", ""),
		"blocks":         fill(daemon, "<a@b.c>: 550 x\n", ""),
		"digits":         fill(daemon, "5.5.5.", ""),
		"digits, spaced": fill(daemon, "550 a@b ", ""),
		"tags":           fill("Return-Path: <>\nContent-Type: text/html\n\n", "<p", ""),
		"addresses":      fill("To: ", "unsubscribe@x.y,", "\n\n"),
		"base64":         fill("Return-Path: <>\nContent-Transfer-Encoding: base64\n\n", "QUFB\n", ""),
		"quoted":         fill("Return-Path: <>\nContent-Transfer-Encoding: quoted-printable\n\n", "=", ""),
		"parameters":     fill("Content-Type: multipart/x", ";a=b", "\n\n"),
	} {
		began := time.Now()
		events, _ := ParseMail(raw, MailOptions{})
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s: %v", name, took)
		}
		if len(events) > maxParts {
			t.Errorf("%s: %d events", name, len(events))
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		status, text string
		code         string
		hard, known  bool
	}{
		{"5.1.1", "", "5.1.1", true, true},
		{"5.1.1", "mailbox is full", "5.1.1", false, true},
		{"5.2.1", "", "5.2.1", true, true},
		{"5.2.2", "user unknown", "5.2.2", false, true},
		{"5.0.0", "550 5.1.1 no", "5.1.1", true, true},
		{"5.0.0", "blocked for spam", "5.0.0", false, true},
		{"5.0.0", "", "5.0.0", true, true},
		{"5.5.0", "550 5.5.0 Requested action not taken: mailbox unavailable", "5.5.0", true, true},
		{"5.5.0", "syntax", "5.5.0", false, true},
		{"5.7.1", "User unknown", "5.7.1", true, true},
		{"5.7.1", "User unknown, or blocked by policy", "5.7.1", false, true},
		{"5.4.1", "Recipient address rejected: Access denied.", "5.4.1", true, true},
		{"5.4.7", "expired", "5.4.7", false, true},
		{"5.6.1", "", "5.6.1", false, true},
		{"4.2.2", "user unknown", "4.2.2", false, true},
		{"", "451 4.7.1 greylisted", "4.7.1", false, true},
		{"", "550 go away", "", true, true},
		{"", "554 go away", "", false, true},
		{"", "421 later", "", false, true},
		{"", "host 10.5.50.1 port 5500", "", false, false},
		{"", "id 5.1.1.1 and 15.1.1", "", false, false},
		{"", "(#5.1.1)", "5.1.1", true, true},
		{"", "see 5.7.1 at 5.1.1.", "5.1.1", true, true},
	} {
		code, hard, known := verdict(c.status, c.text)
		if code != c.code || hard != c.hard || known != c.known {
			t.Errorf("%q %q: %q hard=%v known=%v", c.status, c.text, code, hard, known)
		}
	}
}

func TestAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"a@b.c": "a@b.c", "Ann <a@b.c>": "a@b.c", " <a+x@b.c> ": "a+x@b.c", "mailto:a@b.c": "a@b.c", "a@": "", "@b": "", "a b@c": "", "x": "", "": "", "<a@b": "",
		"postmaster@b.c (Mail)": "", "jörg@bücher.example": "jörg@bücher.example", strings.Repeat("a", 400) + "@b.c": "",
	} {
		if got := address(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
	for in, want := range map[string]string{
		"rfc822;a@b.c": "a@b.c", "RFC822; a+2Bx@b.c": "a+x@b.c", "rfc822;bounce+3Dx@b.c": "bounce=x@b.c", "rfc822;a+news@b.c": "a+news@b.c", "rfc822;a+2bx@b.c": "a+2bx@b.c", "a@b.c": "a@b.c", "utf-8;a@b.c": "a@b.c", "x400;/c=de": "",
	} {
		if got := typedAddress(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func FuzzI1ParseMail(f *testing.F) {
	files, _ := filepath.Glob("testdata/mail/*.eml")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		events, err := ParseMail(raw, MailOptions{})
		if err != nil && len(events) > 0 {
			t.Fatal("events with an error")
		}
		checkEvents(t, events)
		ParseReport(raw, MailOptions{})
	})
}

// checkEvents holds what every reader promises.
func checkEvents(t *testing.T, events []Event) {
	t.Helper()
	for _, e := range events {
		if e.ID == "" || len(e.ID) > maxID || e.Type == "" || len(e.Reason) > maxReason || len(e.SendID) > 256 || len(e.MessageID) > 256 ||
			len(e.Recipient) > maxAddress || strings.ContainsAny(e.Reason+e.SendID+e.MessageID+e.Recipient, "\r\n\x00") || e.Hard && e.Type != Bounce || len(e.URL) > maxURL {
			t.Fatalf("%+v", e)
		}
	}
}
