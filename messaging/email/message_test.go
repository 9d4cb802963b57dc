package email

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"
)

func TestBuildIsReadByStandardParsers(t *testing.T) {
	m := sample("ada@example.org")
	m.HTML = "<p>" + strings.Repeat("Grüße, eine lange Zeile. ", 100) + "</p>\n.\n<p>end</p>"
	m.Subject = strings.Repeat("Grüße – ", 30)
	raw, err := m.Build()
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(raw), "\r\n") {
		if len(line) > 998 || strings.ContainsAny(line, "\r\n") {
			t.Errorf("line %d is malformed: %q", i, line)
		}
	}
	msg, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	dec := new(mime.WordDecoder)
	header := func(name string) string {
		t.Helper()
		s, err := dec.DecodeHeader(msg.Header.Get(name))
		if err != nil {
			t.Error(err)
		}
		return s
	}
	for name, want := range map[string]string{
		"Subject": strings.TrimSpace(m.Subject), "Message-Id": "<send-1@news.example.com>", "Mime-Version": "1.0",
		"List-Unsubscribe":      "<https://example.com/u/1>, <mailto:leave@example.com?subject=unsubscribe>",
		"List-Unsubscribe-Post": "List-Unsubscribe=One-Click", "Feedback-Id": "campaign:acct:muster",
		"X-Muster-Send-Id": "snd_0123", "X-Campaign": "c 1", "User-Agent": "", "X-Mailer": "",
	} {
		if got := header(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if from, err := msg.Header.AddressList("From"); err != nil || len(from) != 1 || from[0].Name != m.From.Name || from[0].Address != m.From.Addr {
		t.Errorf("From: %v, %v", from, err)
	}
	if to, err := msg.Header.AddressList("To"); err != nil || len(to) != 1 || to[0].Name != m.To.Name || to[0].Address != m.To.Addr {
		t.Errorf("To: %v, %v", to, err)
	}
	if d, err := msg.Header.Date(); err != nil || !d.Equal(m.Date) {
		t.Errorf("Date: %v, %v", d, err)
	}
	kind, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("%s, %v", kind, err)
	}
	parts := multipart.NewReader(msg.Body, params["boundary"])
	for _, want := range []struct{ kind, body string }{{"text/plain", TextOf(m.HTML)}, {"text/html", m.HTML}} {
		p, err := parts.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		if k, params, _ := mime.ParseMediaType(p.Header.Get("Content-Type")); k != want.kind || !strings.EqualFold(params["charset"], "utf-8") {
			t.Errorf("%s: %v", k, params)
		}
		if p.Header.Get("Content-Transfer-Encoding") != "quoted-printable" {
			t.Error(p.Header)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(p))
		if got := strings.ReplaceAll(string(body), "\r\n", "\n"); err != nil || got != want.body {
			t.Errorf("%s: %v\n got %q\nwant %q", want.kind, err, got, want.body)
		}
	}
	if _, err := parts.NextRawPart(); err != io.EOF {
		t.Error(err)
	}
}

// A repeat after a crash must be the same message to its receiver.
func TestBuildIsStableOverRepeats(t *testing.T) {
	a, err := sample("ada@example.org").Build()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if b, err := sample("ada@example.org").Build(); err != nil || !bytes.Equal(a, b) {
			t.Fatalf("two builds differ: %v\n%s\n%s", err, a, b)
		}
	}
}

func TestPlainTextAlone(t *testing.T) {
	m := sample("ada@example.org")
	m.HTML, m.Text = "", "Grüße\n"
	raw, err := m.Build()
	if err != nil {
		t.Fatal(err)
	}
	msg, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if kind, _, _ := mime.ParseMediaType(msg.Header.Get("Content-Type")); kind != "text/plain" {
		t.Error(kind)
	}
	if body, _ := io.ReadAll(quotedprintable.NewReader(msg.Body)); string(body) != "Grüße\r\n" {
		t.Errorf("%q", body)
	}
}

func TestNothingInjectsHeaders(t *testing.T) {
	for _, evil := range []string{"a\r\nBcc: x@example.com", "a\nBcc: x@example.com", "a\rBcc: x", "a\x00b", "\u2028Bcc: x"} {
		m := sample("ada@example.org")
		m.Subject, m.From.Name, m.To.Name = evil, evil, evil
		raw, err := m.Build()
		if err != nil {
			t.Fatal(err)
		}
		msg, err := mail.ReadMessage(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if len(msg.Header["Bcc"]) != 0 || len(msg.Header) != 13 {
			t.Errorf("%q gave %d headers: %v", evil, len(msg.Header), msg.Header)
		}
		for name, set := range map[string]func(*Message){
			"from": func(m *Message) { m.From.Addr = evil + "@example.com" }, "to": func(m *Message) { m.To.Addr = "a@b.c" + evil },
			"reply_to": func(m *Message) { m.ReplyTo.Addr = evil }, "id": func(m *Message) { m.ID = evil + "@x" },
			"unsubscribe": func(m *Message) { m.Unsubscribe.URL = "https://x/" + evil }, "mailto": func(m *Message) { m.Unsubscribe.Mailto = evil },
			"feedback": func(m *Message) { m.FeedbackID = evil }, "send": func(m *Message) { m.SendID = evil },
			"header": func(m *Message) { m.Headers = []Header{{"X-A", evil}} }, "name": func(m *Message) { m.Headers = []Header{{"X-" + evil, "v"}} },
		} {
			m := sample("ada@example.org")
			set(m)
			if _, err := m.Build(); err == nil {
				t.Errorf("%s took %q", name, evil)
			}
		}
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for name, set := range map[string]func(*Message){
		"from":        func(m *Message) { m.From.Addr = "x" },
		"reply_to":    func(m *Message) { m.ReplyTo.Addr = "x" },
		"message id":  func(m *Message) { m.ID = "" },
		"date":        func(m *Message) { m.Date = time.Time{} },
		"subject":     func(m *Message) { m.Subject = strings.Repeat("x", 999) },
		"body":        func(m *Message) { m.HTML = "" },
		"body has":    func(m *Message) { m.HTML = strings.Repeat("x", MaxMessage) },
		"unsubscribe": func(m *Message) { m.Unsubscribe.URL = "http://example.com" },
		"header":      func(m *Message) { m.Headers = []Header{{"Bcc", "x@example.com"}} },
		"headers":     func(m *Message) { m.Headers = make([]Header, 33) },
		"to":          func(m *Message) { m.To.Addr = "a b@example.com" },
	} {
		m := sample("ada@example.org")
		set(m)
		err := m.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		var r *RecipientError
		if errors.As(err, &r) != (name == "to") {
			t.Errorf("%s: %T", name, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"ada@example.org": "ada@example.org", "a.b+c@Example.ORG": "a.b+c@example.org", "ada@bücher.example": "ada@xn--bcher-kva.example",
		"üda@example.org": "üda@example.org", "\"a b\"@example.org": "", "ada": "", "@x.y": "", "ada@": "", "ada@-x.org": "", "a@b@c.d": "", "ada@exa mple.org": "",
		strings.Repeat("a", 65) + "@example.org": "", "<ada@example.org>": "", "ada@[192.0.2.1]": "ada@[192.0.2.1]",
	} {
		got, err := checkAddr(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

func TestBounceAddressRoundTrip(t *testing.T) {
	for _, id := range []string{"a", "snd_01-x.y", strings.Repeat("A", 56)} {
		addr, err := BounceAddress(id, "bounces.example.com")
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{addr, "<" + addr + ">", strings.Replace(addr, "bounce", "BOUNCE", 1)} {
			if got, ok := ParseBounceAddress(form); !ok || got != id {
				t.Errorf("%s: %q, %v", form, got, ok)
			}
		}
	}
	for _, id := range []string{"", "a b", "a@b", "a..b", "a.", "é", strings.Repeat("a", 57), "a\r\nb"} {
		if addr, err := BounceAddress(id, "example.com"); err == nil {
			t.Errorf("%q gave %s", id, addr)
		}
	}
	for _, addr := range []string{"", "bounce+@x", "bounce@x", "ada@example.com", "bounce+a b@x", "bounce+" + strings.Repeat("a", 60) + "@x"} {
		if id, ok := ParseBounceAddress(addr); ok {
			t.Errorf("%q gave %q", addr, id)
		}
	}
}

func TestTextOf(t *testing.T) {
	for in, want := range map[string]string{
		"": "\n",
		"<html><head><title>T</title><style>p{}</style></head><body><p>A  <b>b</b>\n c</p><p>D &amp; E</p>": "A b c\n\nD & E\n",
		"<ul><li>one<li>two</ul>after":                                    "- one\n- two\n\nafter\n",
		`<a href="https://e.com/x">Read</a> on`:                           "Read (https://e.com/x) on\n",
		`<a href="https://e.com/x">https://e.com/x</a>`:                   "https://e.com/x\n",
		`<a href="mailto:a@b.c">write</a><br>x<script>evil()</script>`:    "write\nx\n",
		`<img alt="Logo" src=x><div>a</div><div>b</div>`:                  "Logo\na\nb\n",
		"<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>": "a b\nc\n",
		"pre&#847;&zwnj;&nbsp;&#847;&zwnj;&nbsp;header":                   "pre header\n",
		"<p>unclosed <a href='https://x'":                                 "unclosed\n",
	} {
		if got := TextOf(in); got != want {
			t.Errorf("%s:\n got %q\nwant %q", in, got, want)
		}
	}
}

func testKeys(t *testing.T, domain string) []*Key {
	t.Helper()
	r, e, err := GenerateKeys()
	if err != nil {
		t.Fatal(err)
	}
	var keys []*Key
	for i, p := range [][]byte{r, e} {
		k, err := ParseKey(domain, fmt.Sprintf("s%d", i), p)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	return keys
}

// zone answers look-ups from the records we ask to be published.
func zone(t *testing.T, keys []*Key) func(string) ([]string, error) {
	t.Helper()
	texts := map[string]string{}
	for _, k := range keys {
		r, err := k.Record()
		if err != nil {
			t.Fatal(err)
		}
		texts[r.Name] = r.Value
	}
	return func(name string) ([]string, error) {
		if v, ok := texts[name]; ok {
			return []string{v}, nil
		}
		return nil, fmt.Errorf("no such name: %s", name)
	}
}

func TestSignaturesVerify(t *testing.T) {
	m := sample("ada@example.org")
	m.Keys = testKeys(t, "example.com")
	raw, err := m.Build()
	if err != nil {
		t.Fatal(err)
	}
	check := func(raw []byte) (good int) {
		vs, err := dkim.VerifyWithOptions(bytes.NewReader(raw), &dkim.VerifyOptions{LookupTXT: zone(t, m.Keys)})
		if err != nil || len(vs) != 2 {
			t.Fatalf("%d signatures, %v", len(vs), err)
		}
		for _, v := range vs {
			if v.Domain != "example.com" {
				t.Error(v.Domain)
			}
			signed := strings.ToLower(strings.Join(v.HeaderKeys, " "))
			for _, name := range []string{"from", "list-unsubscribe", "list-unsubscribe-post", "message-id"} {
				if !strings.Contains(" "+signed+" ", " "+name+" ") {
					t.Errorf("%s is not signed", name)
				}
			}
			if v.Err == nil {
				good++
			}
		}
		return good
	}
	if n := check(raw); n != 2 {
		t.Errorf("%d of 2 signatures verify", n)
	}
	for _, change := range [][2]string{{"Hello", "Hullo"}, {"send-1@news", "send-2@news"}, {"/u/1", "/u/2"}} {
		if n := check(bytes.Replace(raw, []byte(change[0]), []byte(change[1]), 1)); n != 0 {
			t.Errorf("after changing %s %d signatures verify", change[0], n)
		}
	}
}

func TestParseKeyRefuses(t *testing.T) {
	_, e, err := GenerateKeys()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		domain, selector string
		pem              []byte
		word             string
	}{
		{"example", "s", e, "domain"}, {"exa mple.com", "s", e, "domain"}, {"example.com", "", e, "selector"}, {"example.com", "a b", e, "selector"},
		{"example.com", "s", nil, "PEM"}, {"example.com", "s", []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), "read"},
	} {
		if _, err := ParseKey(c.domain, c.selector, c.pem); err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
