package push

import (
	"strings"
	"testing"
	"time"
)

func senders(t *testing.T) map[Kind]Sender {
	t.Helper()
	_, p8 := ecPEM(t)
	web, err := GenerateWebCredentials("https://example.com/contact")
	if err != nil {
		t.Fatal(err)
	}
	m := map[Kind]Sender{}
	for kind, creds := range map[Kind][]byte{
		KindWeb: encode(t, web), KindFCM: account(t, nil),
		KindAPNs: encode(t, APNsCredentials{KeyID: "KEY1234567", TeamID: "TEAM123456", PrivateKey: p8, Topic: "com.example.app"}),
	} {
		s, err := Open(kind, creds, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		m[kind] = s
	}
	return m
}

// A dry run finds what a send would be refused for, and nothing else.
func TestCheckNamesTheField(t *testing.T) {
	for kind, s := range senders(t) {
		if err := s.Check(sample()); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		for word, change := range map[string]func(*Notification){
			"title":     func(n *Notification) { n.Title, n.Body = " ", "" },
			"title is":  func(n *Notification) { n.Title = "\xff" },
			"ttl":       func(n *Notification) { n.TTL = MaxTTL + time.Second },
			"collapse":  func(n *Notification) { n.Collapse = strings.Repeat("a", 33) },
			"urgency":   func(n *Notification) { n.Urgency = "now" },
			"id has":    func(n *Notification) { n.ID = strings.Repeat("a", 129) },
			"link":      func(n *Notification) { n.Link = "javascript:alert(1)" },
			"link must": func(n *Notification) { n.Link = "/relative" },
			"link has":  func(n *Notification) { n.Link = "https:///x" },
			"icon":      func(n *Notification) { n.Icon = "app://x" },
			"image":     func(n *Notification) { n.Image = "x y" },
			"data":      func(n *Notification) { n.Data = map[string]string{"": "x"} },
			"at most":   func(n *Notification) { n.Body = strings.Repeat("x", 4097) },
			"bytes, at": func(n *Notification) { n.Data = map[string]string{"k": strings.Repeat("x", 4090)} },
		} {
			n := sample()
			change(n)
			if err := s.Check(n); err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %s: %v", kind, word, err)
			}
		}
		if err := s.CheckToken("short"); err == nil {
			t.Errorf("%s took a short token", kind)
		}
	}
	n := sample()
	n.Link = "myapp://orders/1"
	for kind, s := range senders(t) {
		if err := s.Check(n); (err == nil) != (kind != KindWeb) {
			t.Errorf("%s: an app's link: %v", kind, err)
		}
	}
	for kind, key := range map[Kind]string{KindFCM: "google.x", KindAPNs: "aps"} {
		n := sample()
		n.Data = map[string]string{key: "x"}
		if err := senders(t)[kind].Check(n); err == nil {
			t.Errorf("%s took the data key %s", kind, key)
		}
	}
}

// The largest payload Check lets pass is one the service takes.
func TestCheckAtTheLimit(t *testing.T) {
	w, _ := newWeb(t, Options{})
	defer w.Close()
	n := &Notification{Body: "x"}
	for w.Check(n) == nil {
		n.Body += "x"
	}
	n.Body = n.Body[1:]
	plain, err := w.payload(n)
	if err != nil || len(plain) != maxPlain {
		t.Fatalf("%d, %v", len(plain), err)
	}
	b := newBrowser(t)
	target, err := w.subscription(b.token("https://push.example.com/a"))
	if err != nil {
		t.Fatal(err)
	}
	req, err := w.request(target, plain, n)
	if err != nil || req.ContentLength != MaxPayload {
		t.Errorf("%v, %v", req.ContentLength, err)
	}
}

func TestCredentials(t *testing.T) {
	a, err := GenerateWebCredentials("mailto:ops@example.com")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := GenerateWebCredentials("mailto:ops@example.com")
	if err := Validate(KindWeb, encode(t, a), false); err != nil {
		t.Error(err)
	}
	for word, c := range map[string]WebCredentials{
		"private_key":    {a.PublicKey, "xx", a.Subject},
		"public_key":     {b.PublicKey, a.PrivateKey, a.Subject},
		"subject":        {a.PublicKey, a.PrivateKey, "ops"},
		"no P-256 key":   {a.PublicKey, strings.Repeat("A", 43), a.Subject},
		"subject must b": {a.PublicKey, a.PrivateKey, ""},
	} {
		if err := Validate(KindWeb, encode(t, c), false); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", word, err)
		}
	}
	if err := Validate("sms", nil, false); err == nil || !strings.Contains(err.Error(), "web, fcm or apns") {
		t.Error(err)
	}
}

// A message with a time to live is checked without anybody's credentials.
func TestCheckNotificationKnowsTheTime(t *testing.T) {
	t.Parallel()
	if err := CheckNotification(&Notification{Title: "x", TTL: time.Hour}); err != nil {
		t.Error(err)
	}
}
