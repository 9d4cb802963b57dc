package api

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/inapp"
)

// inboxSecret signs the tokens of the people in tests of in-app messages.
var inboxSecret = strings.Repeat("s", 40)

// inboxes is a service whose pages show in-app messages.
type inboxes struct{ *mailing }

func newInboxes(t *testing.T) inboxes {
	t.Helper()
	x := inboxes{newMailing(t)}
	x.command(inapp.CommandRotate, inapp.Rotate{Secret: inboxSecret}, nil)
	return x
}

func personToken(account uint64, kind, subject string, expires time.Time) string {
	claims, err := json.Marshal(map[string]any{"iss": resolver.AccountID(account), "sub": subject, "sub_type": kind, "exp": expires.Unix()})
	if err != nil {
		panic(err)
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	mac := hmac.New(sha256.New, []byte(inboxSecret))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (x inboxes) person(email string) string {
	return "Bearer " + personToken(x.account, "email", email, x.clock.Now().Add(20*time.Hour))
}

// announce sends an in-app message to everybody, which ends after some hours.
func (x inboxes) announce(title string, hours int) {
	x.t.Helper()
	x.command(campaigns.CommandSave, campaigns.Campaign{Name: title, Channel: 2, Type: campaigns.TypeInApp, Date: "2026-01-01"}, &x.campaign)
	content, err := compose.PrepareInApp(campaigns.Content{Subject: title, Link: "https://shop.example/", InApp: &card.Options{TTLHours: hours}})
	ok(x.t, err)
	r, err := x.dispatcher.Send(x.t.Context(), x.account, campaigns.Start{ID: x.campaign.ID, Everybody: true, Plan: campaigns.Plan{BatchSize: 10}, Variants: []campaigns.Content{content}}, audit.Author{})
	ok(x.t, err)
	if r.Sent != uint64(len(x.profiles)) {
		x.t.Fatalf("%d messages were sent to %d people", r.Sent, len(x.profiles))
	}
}

// inbox are the ids of the messages that a person's page shows.
func (x inboxes) inbox(email string) (ids []string, unseen int) {
	x.t.Helper()
	res, b := x.service.send("GET", "/in-app/inbox", "", "Authorization", x.person(email))
	var page struct {
		Messages []struct{ ID string }
		Unseen   int
	}
	ok(x.t, json.Unmarshal(b, &page))
	if res.StatusCode != 200 {
		x.t.Fatalf("%d %s", res.StatusCode, b)
	}
	for _, m := range page.Messages {
		ids = append(ids, m.ID)
	}
	return ids, page.Unseen
}

func (x inboxes) mark(email, message, deed string) {
	x.t.Helper()
	if res, b := x.service.send("POST", "/in-app/inbox/"+message+"/"+deed, "", "Authorization", x.person(email)); res.StatusCode != 200 || strings.TrimSpace(string(b)) != "{}" {
		x.t.Fatalf("%s: %d %s", deed, res.StatusCode, b)
	}
}

// cut is how far the log goes.
func (x inboxes) cut() (cut query.Cut) {
	x.t.Helper()
	ok(x.t, x.node.Read(x.t.Context(), x.account, func(v *resolver.View) error { cut = v.Cut(); return nil }))
	return cut
}

// stream returns the events of a person's stream, each as its name and its data.
func (x inboxes) stream(email string) <-chan string {
	x.t.Helper()
	req, err := http.NewRequestWithContext(x.t.Context(), "GET", "http://muster.test/in-app/stream", nil)
	ok(x.t, err)
	req.Header.Set("Authorization", x.person(email))
	res, err := x.client.Do(req)
	ok(x.t, err)
	if res.StatusCode != 200 {
		x.t.Fatalf("the stream is answered %d", res.StatusCode)
	}
	out := make(chan string, 1000)
	go func() {
		defer close(out)
		event := ""
		for in := bufio.NewScanner(res.Body); in.Scan(); {
			if name, is := strings.CutPrefix(in.Text(), "event: "); is {
				event = name
			} else if data, is := strings.CutPrefix(in.Text(), "data: "); is {
				out <- event + " " + data
			}
		}
	}()
	x.t.Cleanup(func() { res.Body.Close() })
	return out
}

// TestInboxStreamFollowsTheInbox: a stream tells each change of the inbox once, also what another
// page of the person did and that a message ended, and nothing of the inboxes of others.
func TestInboxStreamFollowsTheInbox(t *testing.T) {
	t.Parallel()
	x := newInboxes(t)
	x.contact("ada@x.io")
	x.contact("bob@x.io")
	x.clock.Advance(10 * time.Minute) // messages end within an hour, and leave the store at its end
	lines := x.stream("ada@x.io")
	expect := func(want ...string) {
		t.Helper()
		for _, w := range want {
			if got := next(t, lines); !strings.HasPrefix(got, w) {
				t.Fatalf("the stream says %q, want %q", got, w)
			}
		}
	}
	expect(`unseen {"unseen":0}`)
	x.announce("One", 1)
	expect("message ", `unseen {"unseen":1}`)
	x.announce("Two", 48)
	expect("message ", `unseen {"unseen":2}`)
	ids, _ := x.inbox("bob@x.io")
	x.mark("bob@x.io", ids[0], inapp.Seen) // wakes the stream, and is nothing to it
	ids, unseen := x.inbox("ada@x.io")
	if len(ids) != 2 || unseen != 2 {
		t.Fatal(ids, unseen)
	}
	x.mark("ada@x.io", ids[0], inapp.Seen)
	expect(`unseen {"unseen":1}`)
	// The first message ends, and nothing is stored of that; the next change of any inbox wakes.
	x.clock.Advance(time.Hour)
	ids, _ = x.inbox("bob@x.io")
	x.mark("bob@x.io", ids[0], inapp.Clicked)
	expect(`unseen {"unseen":0}`)
	ids, _ = x.inbox("ada@x.io")
	x.mark("ada@x.io", ids[0], inapp.Dismissed) // it was seen: the number stays
	x.announce("Three", 48)
	expect("message ", `unseen {"unseen":1}`)
	x.api.Close()
	expect("end {}")
}

// TestInboxStreamEndsWithItsToken: a message that comes after the end of a token, or of the
// secret that signed it, is not delivered on a stream that was opened before.
func TestInboxStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(x inboxes){
		"the token": func(x inboxes) { x.clock.Advance(21 * time.Hour) },
		"the secret": func(x inboxes) {
			x.command(inapp.CommandRotate, inapp.Rotate{Secret: strings.Repeat("t", 40)}, nil)
		},
	} {
		t.Run(what, func(t *testing.T) {
			x := newInboxes(t)
			x.contact("ada@x.io")
			lines := x.stream("ada@x.io")
			if got := next(t, lines); got != `unseen {"unseen":0}` {
				t.Fatal(got)
			}
			end(x)
			x.announce("After the end", 48)
			if got := next(t, lines); got != "end {}" {
				t.Errorf("the stream says %s", got)
			}
		})
	}
}

// TestC1InboxOfSuppressedPersonIsEmpty: pages show no message to a person who is suppressed on
// the channel, or unsubscribed from it, also none of before. A lift brings them back.
func TestC1InboxOfSuppressedPersonIsEmpty(t *testing.T) {
	t.Parallel()
	x := newInboxes(t)
	x.contact("ada@x.io")
	x.contact("bob@x.io")
	x.announce("One", 48)
	ids, _ := x.inbox("ada@x.io")
	if len(ids) != 1 {
		t.Fatal(ids)
	}
	bobs, _ := x.inbox("bob@x.io")
	id := x.profile("ada@x.io").ID.String()
	block := func(reason string) {
		x.command(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "in_app", Reason: reason}, nil)
	}
	consent := func(status string) {
		x.command(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "in_app", Status: status, Source: "form"}, nil)
	}
	lines := x.stream("ada@x.io")
	says := func(want string) {
		t.Helper()
		if got := next(t, lines); !strings.HasPrefix(got, want) {
			t.Errorf("the stream says %q, want %q", got, want)
		}
	}
	says(`unseen {"unseen":1}`)
	deeds := inapp.Deeds
	wake := func() { // the stream looks at each change of an inbox
		x.mark("bob@x.io", bobs[0], deeds[0])
		deeds = deeds[1:]
	}
	for i, c := range []struct{ bar, lift func() }{
		{func() { block("suppressed") }, func() { block("") }},
		{func() { consent("unsubscribed") }, func() { consent("subscribed") }},
	} {
		c.bar()
		wake()
		says(`unseen {"unseen":0}`)
		if got, unseen := x.inbox("ada@x.io"); len(got) != 0 || unseen != 0 {
			t.Errorf("%q are shown, %d unseen", got, unseen)
		}
		if res, b := x.service.send("POST", "/in-app/inbox/"+ids[0]+"/seen", "", "Authorization", x.person("ada@x.io")); res.StatusCode != 404 {
			t.Errorf("%d %s", res.StatusCode, b)
		}
		c.lift()
		if got, unseen := x.inbox("ada@x.io"); len(got) != 1 || unseen != 1 {
			t.Errorf("after the lift %q are shown, %d unseen", got, unseen)
		}
		if i == 0 {
			wake()
			says("message ")
			says(`unseen {"unseen":1}`)
		}
	}
}

// TestDeedsCountOnce: what a page says again of a message is answered as the first time. It
// writes no record, and changes no figure.
func TestDeedsCountOnce(t *testing.T) {
	t.Parallel()
	x := newInboxes(t)
	x.contact("ada@x.io")
	for _, c := range []struct {
		deeds []string
		want  string // events seen, clicked and dismissed; opens and clicks of the campaign; opens and clicks of the profile
	}{
		{[]string{inapp.Seen, inapp.Seen, inapp.Seen}, "1 0 0, 1 0, 1 0"},
		{[]string{inapp.Clicked, inapp.Clicked, inapp.Seen}, "1 1 0, 1 1, 1 1"},
		{[]string{inapp.Seen, inapp.Clicked, inapp.Seen, inapp.Clicked}, "1 1 0, 1 1, 1 1"},
		{[]string{inapp.Dismissed, inapp.Dismissed}, "0 0 1, 0 0, 0 0"},
		{[]string{inapp.Dismissed, inapp.Clicked, inapp.Dismissed, inapp.Seen}, "1 1 1, 1 1, 1 1"},
	} {
		x.announce("Sale", 48)
		ids, _ := x.inbox("ada@x.io")
		before := x.figures()
		done := map[string]bool{}
		for _, deed := range c.deeds {
			from := x.cut()
			x.mark("ada@x.io", ids[0], deed)
			if repeat := done[deed] || deed == inapp.Seen && done[inapp.Clicked]; repeat != (x.cut().UpTo == from.UpTo) {
				t.Errorf("%v: %s, which is a repeat: %v, takes the log from %d to %d", c.deeds, deed, repeat, from.UpTo, x.cut().UpTo)
			}
			done[deed] = true
			// Two pages may say so at the same time: neither sees the other, and both write.
			x.command(inapp.CommandMark, inapp.MarkDeed{Profile: x.profiles["ada@x.io"], Message: ids[0], Deed: deed}, nil)
		}
		after := x.figures()
		r, _ := x.run()
		got := fmt.Sprintf("%d %d %d, %d %d, %d %d", after[0]-before[0], after[1]-before[1], after[2]-before[2], r.Opens, r.Clicks, after[3]-before[3], after[4]-before[4])
		if got != c.want {
			t.Errorf("%v: %s, want %s", c.deeds, got, c.want)
		}
	}
}

// figures are the events of Ada's that say what she did with messages, and the opens and
// clicks of her profile.
func (x inboxes) figures() (n [5]int) {
	x.t.Helper()
	x.stored()
	h := x.history.(*memHistory)
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, deed := range inapp.Deeds {
		for j := range h.rows {
			if h.rows[j].entry.EventType == inapp.Channel+"_"+deed {
				n[i]++
			}
		}
	}
	p := x.profile("ada@x.io")
	n[3], n[4] = int(p.Opened), int(p.Clicked)
	return n
}

// FuzzInbox: whatever a page calls, with a token or none, no answer is an error of the service.
func FuzzInbox(f *testing.F) {
	s := newService(f, &memHistory{}, nil)
	account, _ := resolver.ParseAppID([]byte(s.creds.AppID))
	_, err := s.node.Command(f.Context(), account, inapp.CommandRotate, inapp.Rotate{Secret: inboxSecret})
	ok(f, err)
	s.event(`{"event_type":"seen","user":{"external_id":"ada"}}`)
	for _, line := range []string{
		"GET inbox", "GET inbox?limit=0", "GET inbox?limit=1&cursor=0.1.x", "GET inbox?cursor=9223372036854775808..", "GET inbox?cursor=.", "POST inbox/x/seen", "POST inbox//clicked", "POST inbox/%2e%2e/dismissed", "POST inbox/x/read",
		"OPTIONS inbox", "PUT inbox", "GET muster-inapp.js", "POST muster-inapp.js", "GET ../console/api/v1/segments", "GET %00",
	} {
		f.Add(line, "ada", "https://shop.example", "{}")
	}
	f.Add("GET inbox", "Bearer a.b.c", "null", "")
	f.Add("GET stream", "", "", "")
	f.Fuzz(func(t *testing.T, line, authorization, origin, body string) {
		method, path, _ := strings.Cut(line, " ")
		if !slices.Contains([]string{"GET", "POST", "PUT", "OPTIONS", "HEAD"}, method) {
			method = "GET"
		}
		req, err := http.NewRequestWithContext(t.Context(), method, "http://muster.test/", strings.NewReader(body))
		if err != nil {
			return
		}
		req.URL.Opaque = "//muster.test/in-app/" + strings.Map(func(r rune) rune {
			if r <= ' ' || r == 0x7f || r == '#' {
				return -1
			}
			return r
		}, path)
		if authorization == "ada" {
			authorization = "Bearer " + personToken(account, "external_id", "ada", s.clock.Now().Add(time.Hour))
		}
		req.Header.Set("Authorization", authorization)
		req.Header.Set("Origin", origin)
		s.clock.Advance(time.Second) // the calls of a minute are bounded
		res, err := s.client.Do(req)
		if err != nil {
			return // no request that HTTP knows
		}
		defer res.Body.Close()
		if res.StatusCode == http.StatusOK && res.Header.Get("Content-Type") == "text/event-stream" {
			return // it continues
		}
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode >= 500 || s.node.Err() != nil {
			t.Fatalf("%s %q: %d %s %v %v", method, path, res.StatusCode, b, err, s.node.Err())
		}
	})
}
