package main

import (
	"context"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// The table of this file has a row for each channel and a column for each way to send by it: a
// campaign, a step of a flow, and a call of its own. All cells go out at once while the process
// is killed. In each cell, everybody who may be reached gets the message; no person gets it under
// two ids; it comes again only because of a kill or of a provider that asked for it; and the
// figures at the end are those of the providers.
//
// What providers see as the id of a message: the Message-ID of an e-mail; send_id in the
// StatusCallback of Twilio, which takes no id; the Idempotency-Key of the messenger, whose
// configuration asks for it by {{id}}; biz_opaque_callback_data of WhatsApp; id and Topic of a
// push message; and of an in-app message, which has no provider, its id in the inbox.
var channelTable = []struct {
	channel  string
	campaign obj
	step     obj
	call     string            // the path of its own call
	without  map[string]string // why a column is empty
}{
	{channel: "email", call: "/v1/email/send",
		campaign: obj{"channel": 2, "type": 1, "date": "2026-01-01", "subject": titleOf, "body": "<p>b</p>", "sender": "news@muster.local"},
		step:     obj{"type": "email", "subject": titleOf, "body": "<p>b</p>", "sender": "news@muster.local"}},
	{channel: "sms", without: map[string]string{"call": noCall},
		campaign: obj{"channel": 2, "type": 2, "date": "2026-01-01", "body": titleOf},
		step:     obj{"type": "sms", "text": titleOf}},
	{channel: "im", without: map[string]string{"call": noCall},
		campaign: obj{"channel": 2, "type": 3, "date": "2026-01-01", "body": titleOf},
		step:     obj{"type": "im", "text": titleOf}},
	{channel: "push", call: "/api/v1/push/send",
		campaign: obj{"channel": 2, "type": 4, "date": "2026-01-01", "subject": titleOf, "body": "b"},
		step:     obj{"type": "push", "title": titleOf}},
	{channel: "whatsapp", without: map[string]string{"call": noCall},
		campaign: obj{"channel": 2, "type": 3, "service": "whatsapp", "date": "2026-01-01", "whatsapp": obj{"template": nameOf, "language": "en", "parameters": firstName}},
		step:     obj{"type": "whatsapp", "template": nameOf, "language": "en", "parameters": firstName}},
	{channel: "in_app", without: map[string]string{"call": noCall},
		campaign: obj{"channel": 2, "type": 4, "service": "in_app", "date": "2026-01-01", "subject": titleOf, "body": "b"},
		step:     obj{"type": "in_app", "title": titleOf, "body": "b"}},
	{channel: "omni", without: map[string]string{"call": noCall},
		campaign: obj{"channel": 1, "subject": titleOf, "body": "<p>b</p>", "sender": "news@muster.local", "channels": []obj{
			{"channel": "push", "subject": titleOf, "body": "b"}, {"channel": "whatsapp", "whatsapp": obj{"template": nameOf, "language": "en", "parameters": firstName}},
			{"channel": "im", "body": titleOf}, {"channel": "sms", "body": titleOf}, {"channel": "email"}, {"channel": "in_app", "subject": titleOf, "body": "b"}}},
		step: obj{"type": "omnichannel", "channels": []obj{
			{"channel": "push", "title": titleOf}, {"channel": "whatsapp", "template": nameOf, "language": "en", "parameters": firstName},
			{"channel": "im", "text": titleOf}, {"channel": "sms", "text": titleOf}, {"channel": "email", "subject": titleOf, "body": "<p>b</p>", "sender": "news@muster.local"},
			{"channel": "in_app", "title": titleOf, "body": "b"}}}},
}

const (
	// nameOf stands for the name of a cell, column_row; titleOf is it with the person's name.
	nameOf  = "CELL"
	titleOf = nameOf + " {{first_name}}"
	noCall  = "SPEC.md has single sends by e-mail (POST /v1/email/send) and push (POST /push/send) alone; calls of API keys send campaigns, and start flows, by all channels"

	apiPush  = "call_push"
	apiEmail = "call_email"
)

var firstName = []string{"{{first_name}}"}

// preference are the channels of omni-channel messages in their order.
var preference = []string{"push", "whatsapp", "im", "sms", "email", "in_app"}

// shifts are the cells that go out at once. The service sends four campaigns at once, of which a
// push message of a call is one.
var shifts = [][]string{
	{"campaign_email", "campaign_sms", "campaign_omni", "flow_email", "flow_sms", "flow_omni", apiEmail, apiPush},
	{"campaign_im", "campaign_push", "campaign_whatsapp", "campaign_in_app", "flow_im", "flow_push", "flow_whatsapp", "flow_in_app"},
}

// cell is a cell of the table that is not empty.
type cell struct {
	column, channel string
	shift           int
	id              string // of the campaign or the flow
}

func (x *cell) message() string { return x.column + "_" + x.channel }

func newCell(column, channel string) *cell {
	x := &cell{column: column, channel: channel}
	x.shift = slices.IndexFunc(shifts, func(names []string) bool { return slices.Contains(names, x.message()) })
	return x
}

// forCell is the message of a row for a cell.
func forCell(fields any, name string) any {
	switch x := fields.(type) {
	case string:
		return strings.ReplaceAll(x, nameOf, name)
	case []string:
		return x
	case []obj:
		out := make([]obj, len(x))
		for i := range x {
			out[i] = forCell(x[i], name).(obj)
		}
		return out
	case obj:
		out := obj{}
		for key, value := range x {
			out[key] = forCell(value, name)
		}
		return out
	}
	return fields
}

// channelWorld is a company that sends by all channels.
type channelWorld struct {
	*crashed
	people, unsubscribed int // unsubscribed are further people who unsubscribed from everything
	post                 *post
	keys                 inAppKeys
	cells                []*cell

	template string
	mails    map[int]string    // by person: the id that the call for an e-mail answered
	pushes   map[string]string // calls for push messages: message, and what was answered
}

// The people are of six kinds, by the first channel that reaches them. Every second of a kind is
// one whom the channel before cannot deliver an omni-channel message to, though they subscribed.
func (w *channelWorld) subscribed(person int, channel string) bool {
	at := slices.Index(preference, channel)
	return person < w.people && (at >= person%len(preference) || w.refuses(person, channel))
}

func (w *channelWorld) refuses(person int, channel string) bool {
	kind := person % len(preference)
	return person < w.people && person/len(preference)%2 == 1 && kind >= 1 && kind <= 4 && preference[kind-1] == channel
}

func devicesOf(person int) int { return 1 + map[bool]int{true: 1}[person%5 == 0] }

// wants is the channel on which a cell reaches a person, "" if none does; refused reports whether
// a channel before it refuses the message.
func (w *channelWorld) wants(x *cell, person int) (channel string, refused bool) {
	switch {
	case x.message() == apiEmail: // the template is transactional
		return "email", false
	case x.channel != "omni":
		if w.subscribed(person, x.channel) {
			channel = x.channel
		}
		return channel, false
	}
	for _, channel := range preference {
		switch {
		case !w.subscribed(person, channel):
		case w.refuses(person, channel):
			refused = true
		default:
			return channel, refused
		}
	}
	return "", refused
}

// reachable is how many people a cell reaches.
func (w *channelWorld) reachable(x *cell) (people int) {
	for n := range w.people + w.unsubscribed {
		if channel, _ := w.wants(x, n); channel != "" {
			people++
		}
	}
	return people
}

// TestL1ChannelsSurviveKills sends by every channel in every way at once, and kills the process.
func TestL1ChannelsSurviveKills(t *testing.T) {
	testlevel.SkipQuick(t, "kills many processes")
	t.Parallel()
	inFilesAndCluster(t, channelsSurviveKills)
}

func channelsSurviveKills(t *testing.T, start start) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("MUSTER_SEED"); text != "" {
		_, err := fmt.Sscan(text, &seed)
		ok(t, err)
	}
	t.Logf("seed %d: MUSTER_SEED=%d has the same moments", seed, seed)
	kills := rounds(2, 10)
	w := &channelWorld{people: rounds(60, 600), unsubscribed: 6, post: newPost(t), mails: map[int]string{}, pushes: map[string]string{}}
	w.post.refuses, w.post.devices = w.refuses, devicesOf
	roots := filepath.Join(t.TempDir(), "roots.pem")
	ok(t, os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.post.push.Certificate().Raw}), 0o600))
	w.crashed = start(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+roots) },
		"--allow-private-webhooks", "--checkpoint-interval", "300ms", "--smtp", w.post.relay, "--smtp-tls", "none")
	w.setUp(t)

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+time.Duration(len(shifts)*kills)*30*time.Second)
	defer cancel()
	end := make(chan struct{})
	var pages sync.WaitGroup
	pages.Go(func() { w.readPages(ctx, end) })
	rng := rand.New(rand.NewPCG(seed, 0))
	for shift := range shifts {
		finish := make(chan struct{})
		var senders sync.WaitGroup
		w.send(ctx, t, shift, &senders, finish)
		w.killWhileSending(t, shift, rng, kills)
		close(finish)
		senders.Wait()
		w.untilCampaignsAreSent(t, shift)
	}
	w.untilFlowsAreDone(t)
	w.sendAgain(t)
	close(end)
	pages.Wait()
	w.lookAtPages(t)
	if t.Failed() {
		t.FailNow()
	}
	for _, x := range channelTable {
		for _, column := range []string{"campaign", "flow", "call"} {
			at := slices.IndexFunc(w.cells, func(c *cell) bool { return c.column == column && c.channel == x.channel })
			t.Run(column+"/"+x.channel, func(t *testing.T) {
				switch {
				case at < 0 && x.without[column] == "":
					t.Error("the cell is empty, and nothing says why")
				case at < 0:
					t.Logf("empty: %s", x.without[column])
				default:
					w.check(t, w.cells[at])
				}
			})
		}
	}
	w.checkTotals(t)
	w.stopAll()
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

// setUp makes providers, people, campaigns and flows.
func (w *channelWorld) setUp(t *testing.T) {
	w.console("PUT", "/message-providers/sms", fmt.Sprintf(`{"preset":"twilio","account_sid":"AC123","auth_token":"twilio-token","from":"+15005550006","base_url":%q}`, w.post.texts), nil)
	w.console("PUT", "/inbound-providers/twilio", `{"auth_token":"twilio-token"}`, nil) // has Twilio report on messages
	w.console("PUT", "/message-providers/im", fmt.Sprintf(`{"url":"%s/messenger","format":"json","body":"{\"to\":\"{{to}}\",\"text\":\"{{body}}\"}","headers":[{"name":"Idempotency-Key","value":"{{id}}"}],"from":"Shop","code_path":"code","codes":{"7":"permanent"}}`, w.post.texts), nil)
	w.console("PUT", "/message-providers/whatsapp", fmt.Sprintf(`{"preset":"whatsapp_cloud","version":"v21.0","phone_number_id":"1062840","token":"cloud-token","base_url":%q}`, w.post.texts), nil)
	w.console("PUT", "/push-credentials/webpush", `{"generate":true,"subject":"mailto:push@muster.local"}`, nil)
	for kind, credentials := range w.post.app.credentials(t, w.post.texts) {
		w.console("PUT", "/push-credentials/"+kind, credentials, nil)
	}
	ok(t, w.surfaceA("POST", "/in-app/secret", nil, &w.keys))
	const makers = 6
	var making sync.WaitGroup
	for maker := range makers {
		making.Go(func() {
			for n := maker; n < w.people+w.unsubscribed; n += makers {
				if err := w.person(n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	making.Wait()
	var made struct {
		ID     string `json:"_id"`
		Status string
	}
	w.console("POST", "/templates", `{"name":"t","subject":"`+apiEmail+` {{first_name}}","html":"<p>b</p>","transactional":true}`, &made)
	w.template = made.ID
	for _, x := range channelTable {
		if x.campaign != nil {
			c := newCell("campaign", x.channel)
			fields := forCell(x.campaign, c.message()).(obj)
			fields["name"] = c.message()
			ok(t, w.attempt("POST", "/campaigns", fields, &made))
			c.id = made.ID
			w.cells = append(w.cells, c)
		}
		if x.step != nil {
			c := newCell("flow", x.channel)
			step := forCell(x.step, c.message()).(obj)
			step["id"] = "send"
			ok(t, w.attempt("POST", "/flows", obj{"name": c.message(), "trigger": obj{"type": "event", "event": fmt.Sprint("go_", c.shift)}, "steps": []obj{step}}, &made))
			c.id = made.ID
			if w.console("POST", "/flows/"+c.id+"/publish", "", &made); made.Status != "live" {
				t.Fatalf("flow %s is %s", c.message(), made.Status)
			}
			w.cells = append(w.cells, c)
		}
		if x.call != "" {
			w.cells = append(w.cells, newCell("call", x.channel))
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// person makes a person with the consents of all channels.
func (w *channelWorld) person(n int) error {
	var made struct {
		ID string `json:"_id"`
	}
	err := w.attempt("POST", "/contacts", obj{"email": mailOf(n), "phone": phoneOf(n), "external_id": externalOf(n), "first_name": fmt.Sprintf("P%d", n)}, &made)
	for device := 0; err == nil && device < devicesOf(n); device++ {
		kind, address := w.post.device(n, device)
		err = w.attempt("POST", "/profiles/"+made.ID+"/devices", obj{"kind": kind, "address": address}, nil)
	}
	for _, channel := range preference {
		if err == nil {
			status := map[bool]string{true: "subscribed", false: "unsubscribed"}[w.subscribed(n, channel)]
			err = w.attempt("POST", "/profiles/"+made.ID+"/consent", obj{"channel": channel, "status": status}, nil)
		}
	}
	return err
}

// rounds of sending, and the pause between two: all cells take as long.
const (
	waves = 15
	pace  = 300 * time.Millisecond
)

// send sends by all cells of a shift at once; calls for push messages continue until finish is closed.
func (w *channelWorld) send(ctx context.Context, t *testing.T, shift int, senders *sync.WaitGroup, finish chan struct{}) {
	all := w.people + w.unsubscribed
	wave := (all + waves - 1) / waves
	for _, x := range w.cells {
		switch {
		case x.shift != shift:
		case x.message() == apiEmail:
			senders.Go(func() { w.callForMails(ctx, t, wave) })
		case x.message() == apiPush:
			senders.Go(func() { w.callForPush(ctx, finish) })
		case x.column == "campaign":
			senders.Go(func() { // a kill cuts the answer off
				body := fmt.Sprintf(`{"all_contacts":true,"batch_size":%d,"delay_between_batches":%g}`, (w.reachable(x)+waves-1)/waves, pace.Seconds())
				if answer, err := w.once(ctx, "/api/v1/campaign/"+x.id+"/send", body); err == nil && !strings.Contains(answer, `"status":"success"`) {
					t.Errorf("%s: %s", x.message(), answer)
				}
			})
		}
	}
	senders.Go(func() {
		for n := range all {
			var a struct{ Success bool }
			err := w.until(ctx, http.StatusAccepted, "/api/v1/events", obj{"event_type": fmt.Sprint("go_", shift), "idempotency_key": fmt.Sprintf("go-%d-%d", shift, n), "user": obj{"external_id": externalOf(n)}}, &a,
				"X-App-Id", w.creds.AppID, "X-App-Secret", w.creds.AppSecret)
			if err != nil || !a.Success {
				t.Errorf("the event of person %d: %v %v", n, a, err)
				return
			}
			if n%wave == wave-1 {
				time.Sleep(pace) // so that all cells send at the same time
			}
		}
	})
}

// callForMails makes a call for an e-mail to each person.
func (w *channelWorld) callForMails(ctx context.Context, t *testing.T, wave int) {
	for n := range w.people + w.unsubscribed {
		var a struct {
			Status, Message string
			Data            struct {
				ID string `json:"message_id"`
			}
		}
		err := w.until(ctx, http.StatusOK, "/v1/email/send", obj{"to": mailOf(n), "template_id": w.template, "idempotency_key": fmt.Sprint("mail", n)}, &a, "Authorization", "Bearer "+w.creds.APIKey)
		if err != nil || a.Status != "success" {
			t.Errorf("the e-mail of person %d: %+v %v", n, a, err)
			return
		}
		w.mails[n] = a.Data.ID
		if n%wave == wave-1 {
			time.Sleep(pace) // as events
		}
	}
}

// callForPush makes calls for push messages, one after the other.
func (w *channelWorld) callForPush(ctx context.Context, finish chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-finish:
			return
		case <-time.After(100 * time.Millisecond): // a key may make 120 calls a minute
		}
		message := fmt.Sprintf("%s_%d", apiPush, n)
		answer, err := w.once(ctx, "/api/v1/push/send", fmt.Sprintf(`{"title":"%s {{first_name}}"}`, message))
		if err != nil {
			answer = err.Error()
		}
		w.pushes[message] = answer
	}
}

// once makes a call of an API key, which a kill may cut off.
func (w *channelWorld) once(ctx context.Context, path, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", w.reached()+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+w.creds.APIKey)
	req.Header.Set("Content-Type", "application/json")
	return answerOf(req)
}

// readPages reads the inboxes of all people in turn, as their pages do, until end is closed.
func (w *channelWorld) readPages(ctx context.Context, end chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-end:
			return
		case <-time.After(10 * time.Millisecond): // a page may make 120 calls a minute
		}
		_ = w.readPage(ctx, n%(w.people+w.unsubscribed)) // the server may be away
	}
}

func (w *channelWorld) readPage(ctx context.Context, person int) error {
	var x inbox
	err := readInbox(ctx, w.reached(), personToken(w.keys.Secret, w.keys.Issuer, externalOf(person), time.Hour), &x)
	if err == nil {
		w.post.inbox(person, &x)
	}
	return err
}

// lookAtPages reads the inbox of everybody once more.
func (w *channelWorld) lookAtPages(t *testing.T) {
	t.Helper()
	for n := range w.people + w.unsubscribed {
		ok(t, w.readPage(t.Context(), n))
	}
}

// killWhileSending kills at random moments while all cells of a shift are sending.
func (w *channelWorld) killWhileSending(t *testing.T, shift int, rng *rand.Rand, kills int) {
	t.Helper()
	counts := func() (came map[string]int, all int) {
		came = map[string]int{}
		for _, x := range w.cells {
			message := x.message()
			switch {
			case x.shift != shift:
				continue
			case message == apiPush:
				message += "_0"
			}
			n := w.post.came(message)
			came[x.message()] = n
			all += n
		}
		return came, all
	}
	want := 0
	most := map[string]int{}
	for _, x := range w.cells {
		if x.shift == shift {
			most[x.message()] = w.reachable(x)
			want += most[x.message()]
		}
	}
	for kill := range kills {
		eventually.Succeeds(t, func() error {
			came, all := counts()
			begun := true
			for _, n := range came {
				begun = begun && n > 0
			}
			if t.Failed() {
				t.FailNow()
			}
			if shift == 0 && !w.post.underWay(apiPush, most[apiPush]) {
				begun = false // a kill is to come while the message of a call goes out
			}
			if !begun || all < (kill+1)*want/(kills+2) {
				return fmt.Errorf("before kill %d %v of %v came; %q\n%s", kill, came, most, w.post.faults(), w.logs())
			}
			return nil
		})
		time.Sleep(time.Duration(rng.Int64N(int64(100 * time.Millisecond)))) // the moment of a kill is random
		if shift == 0 {
			// In turn between two channels, and with a text that was taken.
			open := []string{refusedNow, "campaign_omni"}[kill%2]
			eventually.Holds(t, "an omni-channel message is being answered: "+open, func() bool { return w.post.holds(open) })
		}
		if came, _ := counts(); kill == 0 {
			for message, n := range came {
				if n >= most[message] && message != apiPush {
					t.Errorf("all of %s came before the first kill, which shows nothing: %v of %v", message, came, most)
				}
			}
		}
		w.crashOnce()
	}
}

// channelStats are the statistics of a campaign.
type channelStats struct {
	Status     string
	EmailsSent int `json:"emails_sent"`
	Failed     int
	Resumed    int
	Delivered  int
	Skipped    map[string]int
	Channels   []struct {
		Channel    string
		EmailsSent int `json:"emails_sent"`
	}
}

// untilCampaignsAreSent waits until nothing of the campaigns of a shift is left to be sent.
func (w *channelWorld) untilCampaignsAreSent(t *testing.T, shift int) {
	t.Helper()
	for _, x := range w.cells {
		if x.shift == shift && x.column == "campaign" {
			w.untilCampaignIsSent(t, x.id)
		}
	}
}

// untilFlowsAreDone waits until everybody is through all flows, and nothing is left to be sent.
func (w *channelWorld) untilFlowsAreDone(t *testing.T) {
	t.Helper()
	for _, x := range w.cells {
		if x.column != "flow" {
			continue
		}
		eventually.Succeeds(t, func() error {
			var f struct {
				Counts struct {
					InProgress int `json:"in_progress"`
					Entered    int
				}
			}
			if w.console("GET", "/flows/"+x.id, "", &f); f.Counts.InProgress > 0 || f.Counts.Entered != w.people+w.unsubscribed {
				return fmt.Errorf("%s is %+v\n%s", x.message(), f, w.logs())
			}
			return nil
		})
	}
	eventually.Holds(t, "the outbox is empty", w.idle)
}

func (w *channelWorld) untilCampaignIsSent(t *testing.T, id string) {
	t.Helper()
	eventually.Succeeds(t, func() error {
		var x struct{ Name, Status string }
		if w.console("GET", "/campaigns/"+id, "", &x); x.Status != "sent" { // a key may ask 120 times a minute only
			return fmt.Errorf("%+v\n%s", x, w.logs())
		}
		return nil
	})
}

func (w *channelWorld) stats(t *testing.T, id string) (s channelStats) {
	t.Helper()
	ok(t, w.surfaceA("GET", "/campaign/"+id+"/stats", nil, &s))
	return s
}

// sendAgain sends the omni-channel campaign again: those for whom a kill came between two
// channels get it then.
func (w *channelWorld) sendAgain(t *testing.T) {
	t.Helper()
	for _, x := range w.cells {
		if x.message() != "campaign_omni" {
			continue
		}
		s := w.stats(t, x.id)
		if s.Resumed == 0 {
			t.Errorf("no kill came while %s was sent: %+v", x.message(), s)
		}
		t.Logf("a kill came between two channels of %d people", w.people-s.EmailsSent)
		_, err := w.once(t.Context(), "/api/v1/campaign/"+x.id+"/send", `{"all_contacts":true}`)
		ok(t, err)
		w.untilCampaignIsSent(t, x.id)
	}
}

// check checks one cell.
func (w *channelWorld) check(t *testing.T, x *cell) {
	if x.message() == apiPush {
		w.checkPushCalls(t, x)
		return
	}
	p := w.post
	p.mu.Lock()
	defer p.mu.Unlock()
	reached, lost := map[string]int{}, map[string]int{}
	for n := range w.people + w.unsubscribed {
		want, refused := w.wants(x, n)
		got := p.reachedBy(x.message(), n)
		for channel := range got {
			reached[channel]++
		}
		switch {
		case len(got) == 0 && want != "" && refused && x.column == "flow":
			// It may have gone out on the channel that refuses it when a kill came: no other
			// channel takes its place.
			for y := range p.mu.cut {
				if y.message == x.message() && y.person == n && y.device == 0 {
					lost[y.channel]++
				}
			}
		case len(got) == 0 && want == "":
		case len(got) != 1 || got[want] == 0 || want == "push" && got[want] != devicesOf(n):
			t.Errorf("person %d got it by %v, want %q", n, got, want)
		}
		if x.message() == apiEmail {
			for id := range p.mu.taken[delivered{message: apiEmail, channel: "email", person: n}] {
				if account, number, _ := strings.Cut(w.mails[n], "-"); len(number) != 32 || !strings.HasPrefix(id, "<"+account+"."+number[:26]) {
					t.Errorf("the call for the e-mail of person %d answered the id %s, and %s came", n, w.mails[n], id)
				}
			}
		}
	}
	again, late := p.checkIDs(t, x.message(), w.kills), 0
	for _, channel := range preference {
		late += p.lateBy(x.message(), channel)
	}
	all := 0
	for _, n := range reached {
		all += n
	}
	t.Logf("%d people by %v, %d messages came again, %d of them refused then, %v were given up at a kill", all, reached, again, late, lost)
	switch x.column {
	case "campaign":
		w.checkCampaign(t, x, reached, all)
	case "flow":
		w.checkFlow(t, x, reached, lost, all)
	}
}

// checkCampaign compares the statistics of a campaign with what providers took.
func (w *channelWorld) checkCampaign(t *testing.T, x *cell, reached map[string]int, all int) {
	s := w.stats(t, x.id)
	if s.EmailsSent != all || s.Failed != 0 || s.Resumed == 0 && x.channel != "omni" {
		t.Errorf("the statistics are %+v, %d people were reached", s, all)
	}
	if x.channel != "omni" {
		if s.Skipped["unsubscribed"] != w.people+w.unsubscribed-all || x.channel == "in_app" && s.Delivered != all {
			t.Errorf("the statistics are %+v, %d people were not reached", s, w.people+w.unsubscribed-all)
		}
		return
	}
	for _, c := range s.Channels {
		if c.EmailsSent != reached[c.Channel] {
			t.Errorf("the statistics have %d by %s, the provider took %d", c.EmailsSent, c.Channel, reached[c.Channel])
		}
	}
}

// checkFlow compares the counts of a flow's step with what providers took.
func (w *channelWorld) checkFlow(t *testing.T, x *cell, reached, lost map[string]int, all int) {
	var f struct {
		Steps []struct {
			Arrived  int
			Results  map[string]int
			Channels []struct {
				Channel        string
				Queued, Failed int
				Skipped        map[string]int
			}
		} `json:"step_counts"`
	}
	w.console("GET", "/flows/"+x.id, "", &f)
	s := f.Steps[0]
	if s.Arrived != w.people+w.unsubscribed {
		t.Errorf("%d people came to the step", s.Arrived)
	}
	if x.channel != "omni" {
		if s.Results["queued"] != all {
			t.Errorf("the counts are %+v, %d people were reached", s, all)
		}
		return
	}
	for _, c := range s.Channels {
		refused, late := w.post.refusedBy(x.message(), c.Channel), w.post.lateBy(x.message(), c.Channel)
		if c.Failed != refused+late || c.Queued-refused != reached[c.Channel] {
			t.Errorf("the counts of %s are %+v, the provider took %d, of which it refused %d when they came again, and refused %d, of which %d were given up", c.Channel, c, reached[c.Channel], late, refused, lost[c.Channel])
		}
	}
}

// checkPushCalls checks the push messages of API calls: one that has a row of history reached
// everybody, and one that was answered has a row.
func (w *channelWorld) checkPushCalls(t *testing.T, x *cell) {
	var list []struct {
		ID      string `json:"_id"`
		Subject string
	}
	w.console("GET", "/campaigns?limit=500", "", &list)
	rows := map[string]string{}
	for _, c := range list {
		if name, _, _ := strings.Cut(c.Subject, " "); strings.HasPrefix(name, apiPush) {
			rows[name] = c.ID
		}
	}
	resumed, again := 0, 0
	for message, answer := range w.pushes {
		answered := strings.Contains(answer, `"message":"sent"`)
		if rows[message] == "" {
			if w.post.came(message) > 0 || answered {
				t.Errorf("%s has no row of history, and reached %d people: %s", message, w.post.came(message), answer)
			}
			continue
		}
		w.untilCampaignIsSent(t, rows[message])
		s := w.stats(t, rows[message])
		if s.Resumed > 0 {
			resumed++
		}
		all := 0
		w.post.mu.Lock()
		for n := range w.people + w.unsubscribed {
			got, want := w.post.reachedBy(message, n)["push"], 0
			if channel, _ := w.wants(x, n); channel != "" {
				want = devicesOf(n)
				all++
			}
			if got != want {
				t.Errorf("%s reached %d devices of person %d, want %d", message, got, n, want)
			}
		}
		again += w.post.checkIDs(t, message, w.kills)
		w.post.mu.Unlock()
		if s.EmailsSent != all || s.Failed != 0 {
			t.Errorf("the statistics of %s are %+v, %d people were reached", message, s, all)
		}
	}
	t.Logf("%d calls, %d messages, %d of them resumed, %d copies came again", len(w.pushes), len(rows), resumed, again)
	if resumed == 0 {
		t.Error("no kill came while a push message of a call went out: it shows nothing")
	}
}

// checkTotals checks what counts over all cells: the events, the credits, and what the providers
// found wrong.
func (w *channelWorld) checkTotals(t *testing.T) {
	p := w.post
	p.mu.Lock()
	people := map[string]map[delivered]bool{} // by channel; devices count once
	for x, ids := range p.mu.taken {
		if people[x.channel] == nil {
			people[x.channel] = map[delivered]bool{}
		}
		if tookSome(ids) {
			x.device = 0
			people[x.channel][x] = true
		}
	}
	for _, kind := range []string{"webpush", "fcm", "apns"} {
		if p.mu.kinds[kind] == 0 {
			t.Errorf("no push message went to a device of kind %s", kind)
		}
	}
	p.mu.Unlock()
	for _, fault := range p.faults() {
		t.Error(fault)
	}
	var overview struct{ Channels map[string]struct{ Sent int } }
	ok(t, w.surfaceA("GET", "/analytics/overview", nil, &overview))
	for _, channel := range preference {
		// A text of a flow that was refused when it came again counts as failed.
		want := len(people[channel])
		p.mu.Lock()
		want -= p.lateBy("flow_omni", channel)
		p.mu.Unlock()
		if n, shown := w.events(channel+"_sent"), overview.Channels[channel].Sent; n != want || shown != want {
			t.Errorf("%d events %s_sent, and the analytics say %d; %d messages reached people", n, channel, shown, want)
		}
	}
	var account struct {
		EmailCredits int `json:"email_credits"`
	}
	w.console("GET", "/credits", "", &account)
	if spent := 100_000 - account.EmailCredits; spent != len(people["email"]) {
		t.Errorf("%d credits were spent on %d e-mails", spent, len(people["email"]))
	}
}
