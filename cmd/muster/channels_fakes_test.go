package main

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
)

// delivered is one message to one person by one channel; device is of push messages.
type delivered struct {
	message, channel string
	person, device   int
}

// post plays the providers of all channels, by their own protocols, and notes what they took.
type post struct {
	relay  string // takes e-mails, by SMTP
	texts  string // is Twilio, WhatsApp's Cloud API, an instant messenger, FCM and APNs
	push   *httptest.Server
	client *ecdh.PrivateKey // of the browsers that show push messages
	app    pushServices

	// refuses says to which people a channel cannot deliver an omni-channel message, ever.
	refuses func(person int, channel string) bool
	// devices is how many browsers a person has.
	devices func(person int) int

	mu struct {
		sync.Mutex
		taken   map[delivered]map[string][]taking // by message id
		holder  map[string]delivered              // by message id: whose it is, on any device
		cut     map[delivered]map[string]bool     // refused for good, by message id
		late    map[delivered]bool                // taken, and refused for good when it came again
		open    map[string]int                    // being answered, by message: omni-channel texts that are taken, and others under refusedNow
		inboxes map[int]map[string]bool           // by person: ids of the in-app messages that were there
		kinds   map[string]int                    // by kind of device: push messages
		faults  []string
	}
}

func newPost(t *testing.T) *post {
	t.Helper()
	p := &post{}
	p.mu.kinds, p.mu.taken, p.mu.holder, p.mu.cut, p.mu.inboxes = map[string]int{}, map[delivered]map[string][]taking{}, map[string]delivered{}, map[delivered]map[string]bool{}, map[int]map[string]bool{}
	p.mu.late, p.mu.open = map[delivered]bool{}, map[string]int{}
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	ok(t, err)
	p.client = key
	texts := http.NewServeMux()
	texts.HandleFunc("POST /2010-04-01/Accounts/{account}/Messages.json", p.twilio)
	texts.HandleFunc("POST /v21.0/1062840/messages", p.cloud)
	texts.HandleFunc("POST /messenger", p.messenger)
	texts.HandleFunc("POST /fcm/token", p.app.token)
	texts.HandleFunc("POST /fcm/v1/projects/demo-1/messages:send", p.firebase)
	texts.HandleFunc("POST /apns/3/device/{token}", p.apple)
	p.texts = fakeServer(t, texts)
	p.push = httptest.NewUnstartedServer(http.HandlerFunc(p.browser))
	p.push.Config.ErrorLog = log.New(io.Discard, "", 0) // kills cut handshakes off
	p.push.StartTLS()
	t.Cleanup(p.push.Close)
	p.relay = serveSMTP(t, func() smtp.Session { return &mailSession{take: p.mail} })
	return p
}

func phoneOf(person int) string    { return fmt.Sprintf("+4917000%05d", person) }
func mailOf(person int) string     { return fmt.Sprintf("p%d@people.example", person) }
func externalOf(person int) string { return fmt.Sprintf("u%d", person) }

// The answers of providers.
const (
	takes = iota
	busy  // for a while
	never // this person is not to be reached
)

// fault notes what must not be. The lock is held.
func (p *post) fault(format string, args ...any) {
	p.mu.faults = append(p.mu.faults, fmt.Sprintf(format, args...))
}

// faults are the first that were noted.
func (p *post) faults() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.mu.faults[:min(len(p.mu.faults), 20)])
}

// take notes a message. Its text is what is sent and the first name of the person.
func (p *post) take(channel string, person, device int, text, id string) int {
	message, name, _ := strings.Cut(text, " ")
	// So that a kill finds messages that were taken and not answered; a push message of an API
	// call is not paced by batches.
	pause := 20 * time.Millisecond
	omni := strings.HasSuffix(message, "_omni") && channel != "email"
	switch {
	case strings.HasPrefix(message, apiPush):
		pause = 300 * time.Millisecond
	case omni:
		pause = 200 * time.Millisecond // a kill is to come between two channels
		open := message
		if p.refuses(person, channel) {
			open = refusedNow
		}
		if open == refusedNow || channel != "push" {
			p.answering(open, 1)
			defer p.answering(open, -1)
		}
	}
	// The provider takes so long to answer: the pause is not for something to come.
	defer time.Sleep(pause)
	p.mu.Lock()
	defer p.mu.Unlock()
	x := delivered{message, channel, person, device}
	if name != fmt.Sprintf("P%d", person) || id == "" {
		p.fault("%+v came as %q with the id %q", x, text, id)
	}
	any := delivered{message, channel, person, 0}
	if other, held := p.mu.holder[id]; held && other != any {
		p.fault("%+v and %+v have one id, %s", other, any, id)
	}
	p.mu.holder[id] = any
	if strings.HasSuffix(message, "_omni") && p.refuses(person, channel) {
		if p.mu.cut[x] == nil {
			p.mu.cut[x] = map[string]bool{}
		}
		p.mu.cut[x][id] = true
		return never
	}
	if p.mu.taken[x] == nil {
		p.mu.taken[x] = map[string][]taking{}
	}
	// A text that was taken before a kill, and cannot be delivered when it comes again: no other
	// channel may take its place. Push messages to several devices have answers of their own.
	if before := p.mu.taken[x][id]; omni && channel != "push" && len(before) > 0 && before[len(before)-1].ok && !p.mu.late[x] {
		p.mu.late[x] = true
		return never
	}
	sum := fnv.New32a()
	io.WriteString(sum, id)
	now := takes
	// A push message that one of several devices got is not repeated for the others.
	if len(p.mu.taken[x][id]) == 0 && sum.Sum32()%16 == 0 && p.devices(person) == 1 {
		now = busy
	}
	p.mu.taken[x][id] = append(p.mu.taken[x][id], taking{time.Now(), now == takes})
	return now
}

// answers are what a provider says: status and body, by the answers above.
type answers [3]struct {
	status int
	body   string
}

func (a *answers) write(w http.ResponseWriter, which int) {
	w.WriteHeader(a[which].status)
	io.WriteString(w, a[which].body)
}

// twilio takes texts as Twilio does. Its protocol has no id of the caller's: ours is in the
// address to which it reports.
func (p *post) twilio(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	if r.ParseForm() != nil || r.PostForm.Get("Body") == "" {
		return // cut off by a kill
	}
	report, err := url.Parse(r.PostForm.Get("StatusCallback"))
	if user, password, _ := r.BasicAuth(); err != nil || user != "AC123" || password != "twilio-token" || r.PathValue("account") != "AC123" || r.PostForm.Get("From") != "+15005550006" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	now := p.take("sms", personOf(r.PostForm.Get("To")), 0, r.PostForm.Get("Body"), report.Query().Get("send_id"))
	(&answers{{201, `{"sid":"SM1","status":"queued"}`}, {429, `{"code":20429,"message":"too many"}`}, {400, `{"code":21612,"message":"not reachable"}`}}).write(w, now)
}

// cloud takes templates as Meta's Cloud API does; the id is biz_opaque_callback_data.
func (p *post) cloud(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Product  string `json:"messaging_product"`
		To, Type string
		ID       string `json:"biz_opaque_callback_data"`
		Template struct {
			Name       string
			Language   struct{ Code string }
			Components []struct {
				Type       string
				Parameters []struct{ Type, Text string }
			}
		}
	}
	if json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&m) != nil {
		return // cut off by a kill
	}
	if r.Header.Get("Authorization") != "Bearer cloud-token" || m.Product != "whatsapp" || m.Type != "template" || m.Template.Language.Code != "en" ||
		len(m.Template.Components) != 1 || len(m.Template.Components[0].Parameters) != 1 {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	now := p.take("whatsapp", personOf("+"+strings.TrimPrefix(m.To, "+")), 0, m.Template.Name+" "+m.Template.Components[0].Parameters[0].Text, m.ID)
	(&answers{{200, `{"messaging_product":"whatsapp","messages":[{"id":"wamid.1"}]}`}, {500, `{"error":{"message":"try again","code":131000}}`}, {400, `{"error":{"message":"undeliverable","code":131026}}`}}).write(w, now)
}

// messenger takes instant messages; the id is an Idempotency-Key.
func (p *post) messenger(w http.ResponseWriter, r *http.Request) {
	var m struct{ To, Text string }
	if json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&m) != nil {
		return // cut off by a kill
	}
	now := p.take("im", personOf(m.To), 0, m.Text, r.Header.Get("Idempotency-Key"))
	(&answers{{200, `{}`}, {503, `{}`}, {400, `{"code":7}`}}).write(w, now)
}

// browser takes push messages as the push service of a browser does, and decrypts them as the
// browser does. A message has an id, and the Topic by which a repeat takes its place.
func (p *post) browser(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 4096+1))
	if err != nil {
		return // cut off by a kill
	}
	var m struct{ Title, ID, Tag string }
	plain, err := p.decrypt(body)
	if err == nil {
		err = json.Unmarshal(plain, &m)
	}
	topic := r.Header.Get("Topic")
	var person, device int
	if _, scan := fmt.Sscanf(r.URL.Path, "/p/%d/%d", &person, &device); err != nil || scan != nil || topic == "" || topic != m.Tag || r.Header.Get("TTL") == "" ||
		r.Header.Get("Content-Encoding") != "aes128gcm" || !strings.HasPrefix(r.Header.Get("Authorization"), "vapid t=") {
		p.mu.Lock()
		p.fault("a push message to %s: %v, %+v, topic %q", r.URL.Path, err, m, topic)
		p.mu.Unlock()
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	p.takePush(w, "webpush", person, device, m.Title, m.ID, topic, &answers{{201, ""}, {503, ""}, {400, ""}})
}

// subscription is that of a browser.
func (p *post) subscription(person, device int) string {
	b64 := base64.RawURLEncoding
	return fmt.Sprintf(`{"endpoint":"%s/p/%d/%d","keys":{"p256dh":%q,"auth":%q}}`, p.push.URL, person, device,
		b64.EncodeToString(p.client.PublicKey().Bytes()), b64.EncodeToString(make([]byte, 16)))
}

// decrypt reads a body of RFC 8291 in one record.
func (p *post) decrypt(body []byte) ([]byte, error) {
	if len(body) < 21+65 || body[20] != 65 {
		return nil, fmt.Errorf("a body of %d bytes", len(body))
	}
	salt, public := body[:16], body[21:21+65]
	sender, err := ecdh.P256().NewPublicKey(public)
	if err != nil {
		return nil, err
	}
	shared, err := p.client.ECDH(sender)
	if err != nil {
		return nil, err
	}
	secret, err := hkdf.Key(sha256.New, shared, make([]byte, 16), "WebPush: info\x00"+string(p.client.PublicKey().Bytes())+string(public), 32)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	plain, err := gcm.Open(nil, nonce, body[21+65:], nil)
	if err != nil {
		return nil, err
	}
	plain, last := bytes.CutSuffix(bytes.TrimRight(plain, "\x00"), []byte{2})
	if !last {
		return nil, errors.New("the last record is not marked")
	}
	return plain, nil
}

// mail takes e-mails; the id is the Message-ID.
func (p *post) mail(to string, header mail.Header) error {
	var person int
	if _, err := fmt.Sscanf(to, "p%d@people.example", &person); err != nil {
		return err
	}
	if p.take("email", person, 0, header.Get("Subject"), header.Get("Message-Id")) == busy {
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "try again"}
	}
	return nil
}

// inbox notes what a page of a person shows. Each message is there once, and stays.
func (p *post) inbox(person int, shown *inbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := map[string]bool{}
	for _, m := range shown.Messages {
		message, name, _ := strings.Cut(m.Title, " ")
		x := delivered{message: message, channel: "in_app", person: person}
		if other, held := p.mu.holder[m.ID]; ids[m.ID] || held && other != x || name != fmt.Sprintf("P%d", person) {
			p.fault("the inbox of person %d shows %q under the id %s, which is of %+v", person, m.Title, m.ID, other)
		}
		ids[m.ID], p.mu.holder[m.ID] = true, x
		if p.mu.taken[x] == nil {
			p.mu.taken[x] = map[string][]taking{}
		}
		if len(p.mu.taken[x][m.ID]) == 0 {
			p.mu.taken[x][m.ID] = []taking{{time.Now(), true}}
		}
	}
	for id := range p.mu.inboxes[person] {
		if !ids[id] {
			p.fault("the message %s has left the inbox of person %d", id, person)
		}
	}
	p.mu.inboxes[person] = ids
}

// came is how many people a message has reached.
func (p *post) came(message string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	people := map[int]bool{}
	for x, ids := range p.mu.taken {
		if x.message == message && tookSome(ids) {
			people[x.person] = true
		}
	}
	return len(people)
}

// underWay reports whether a message whose name begins so has reached some of the people, and
// not all.
func (p *post) underWay(begin string, people int) bool {
	p.mu.Lock()
	names := map[string]bool{}
	for x := range p.mu.taken {
		if strings.HasPrefix(x.message, begin) {
			names[x.message] = true
		}
	}
	p.mu.Unlock()
	for name := range names {
		if n := p.came(name); n > 0 && n < people {
			return true
		}
	}
	return false
}

// reachedBy are the channels by which a message reached a person, with how many devices it
// reached. The lock is held.
func (p *post) reachedBy(message string, person int) map[string]int {
	out := map[string]int{}
	for x, ids := range p.mu.taken {
		if x.message == message && x.person == person && tookSome(ids) {
			out[x.channel]++
		}
	}
	return out
}

// refusedNow stands for the omni-channel messages that are being refused.
const refusedNow = "refused"

// answering counts a message that a provider has and has not answered yet.
func (p *post) answering(open string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.open[open] += n
}

// holds reports whether a provider is answering such a message.
func (p *post) holds(open string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.open[open] > 0
}

// lateBy is how many people a channel refused a message to that it had taken before a kill. The
// lock is held.
func (p *post) lateBy(message, channel string) (people int) {
	for x := range p.mu.late {
		if x.message == message && x.channel == channel {
			people++
		}
	}
	return people
}

// refusedBy is how many people a channel refused a message to for good. The lock is held.
func (p *post) refusedBy(message, channel string) int {
	people := map[int]bool{}
	for x := range p.mu.cut {
		if x.message == message && x.channel == channel {
			people[x.person] = true
		}
	}
	return len(people)
}

func tookSome(ids map[string][]taking) bool {
	for _, list := range ids {
		if slices.ContainsFunc(list, func(x taking) bool { return x.ok }) {
			return true
		}
	}
	return false
}

// checkIDs checks that each message came to each person under one id, and again only if it was
// not taken or a kill came just then. It returns how many came again.
func (p *post) checkIDs(t *testing.T, message string, killed []down) (again int) {
	t.Helper()
	for x, ids := range p.mu.taken {
		if x.message != message {
			continue
		}
		if len(ids) != 1 {
			t.Errorf("%+v came under the ids %q", x, slices.Sorted(maps.Keys(ids)))
		}
		for id, list := range ids {
			again += len(list) - 1
			checkRepeats(t, id, list, killed)
		}
	}
	for x, ids := range p.mu.cut {
		if x.message == message && len(ids) != 1 {
			t.Errorf("%+v was refused under the ids %q", x, slices.Sorted(maps.Keys(ids)))
		}
	}
	return again
}
