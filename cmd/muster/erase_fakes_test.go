package main

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-smtp"
)

// repeating plays the providers of all channels and the receiver of a flow's webhooks, whose
// answers repeat the person: address, number and names. What it gets of a person whose tag
// says "refused" it refuses for good, and of one whose tag says "late" once the test asks for
// it.
type repeating struct {
	plain, push *httptest.Server
	client      *ecdh.PrivateKey // of the browsers that show push messages

	mu struct {
		sync.Mutex
		waiting  int                         // answers that are held back
		whatsApp map[string][]sentByWhatsApp // by number
	}
	told chan struct{}
	tell func() // has the answers go that are held back
}

// sentByWhatsApp is what identifies a message that WhatsApp took.
type sentByWhatsApp struct{ ours, theirs string }

func newRepeating(t *testing.T) *repeating {
	t.Helper()
	r := &repeating{told: make(chan struct{})}
	r.tell = sync.OnceFunc(func() { close(r.told) })
	r.mu.whatsApp = map[string][]sentByWhatsApp{}
	var err error
	r.client, err = ecdh.P256().GenerateKey(rand.Reader)
	ok(t, err)
	plain := http.NewServeMux()
	plain.HandleFunc("POST /text", r.text)
	plain.HandleFunc("POST /v21.0/1062840/messages", r.cloud)
	plain.HandleFunc("POST /hook/{person}", r.hook)
	plain.HandleFunc("POST /gone", r.gone)
	r.plain = httptest.NewServer(plain)
	t.Cleanup(r.plain.Close)
	// Its certificate is that of all servers of httptest, so the one that w.trust names.
	r.push = httptest.NewTLSServer(http.HandlerFunc(r.browser))
	t.Cleanup(r.push.Close)
	t.Cleanup(r.tell) // servers end when their answers have gone
	return r
}

// hold waits with the answer about a late person; it returns whether the message is refused.
func (r *repeating) hold(message string) (refused bool) {
	if !strings.Contains(message, "zqlate") {
		return strings.Contains(message, "refused")
	}
	r.mu.Lock()
	r.mu.waiting++
	r.mu.Unlock()
	<-r.told
	return true
}

// held is how many answers are held back.
func (r *repeating) held() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.waiting
}

// idOf is an id as providers make them, which holds the number in base64.
func idOf(kind, number string) string {
	return kind + base64.StdEncoding.EncodeToString([]byte("\x1d\x05\x0b"+strings.TrimPrefix(number, "+")+"\x15\x02\x00"))
}

// mail is the relay's answer to a recipient.
func (r *repeating) mail(to string) error {
	if !r.hold(to) {
		return nil
	}
	local, _, _ := strings.Cut(to, "@")
	return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: fmt.Sprintf("mailbox=%s: no such user %s here", to, local)}
}

func (r *repeating) text(w http.ResponseWriter, req *http.Request) {
	var m struct{ To, Text string }
	if json.NewDecoder(io.LimitReader(req.Body, 1<<20)).Decode(&m) != nil {
		return // cut off by a kill
	}
	answer := obj{"id": idOf("SM", m.To)}
	if r.hold(m.Text) {
		w.WriteHeader(http.StatusBadRequest)
		answer["error"] = obj{"code": "77", "message": fmt.Sprintf("cannot deliver to=%s (subscriber %s)", m.To, m.Text)}
	}
	json.NewEncoder(w).Encode(answer)
}

func (r *repeating) cloud(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, 1<<20))
	var m struct {
		To string
		ID string `json:"biz_opaque_callback_data"`
	}
	if err != nil || json.Unmarshal(body, &m) != nil {
		return // cut off by a kill
	}
	if r.hold(string(body)) {
		w.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(w).Encode(obj{"error": obj{"code": 131026, "message": "undeliverable: " + string(body)}})
		return
	}
	id := idOf("wamid.", m.To)
	r.mu.Lock()
	number := strings.TrimPrefix(m.To, "+")
	r.mu.whatsApp[number] = append(r.mu.whatsApp[number], sentByWhatsApp{m.ID, id})
	r.mu.Unlock()
	json.NewEncoder(w).Encode(obj{"messaging_product": "whatsapp", "contacts": []obj{{"input": m.To, "wa_id": m.To}}, "messages": []obj{{"id": id}}})
}

func (r *repeating) browser(w http.ResponseWriter, req *http.Request) {
	io.Copy(io.Discard, req.Body)
	if r.hold(req.URL.Path) {
		http.Error(w, "no device at "+req.URL.Path, http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

func (r *repeating) hook(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, 1<<20))
	if err == nil && r.hold(string(body)) {
		w.WriteHeader(http.StatusBadRequest)
	}
	fmt.Fprintf(w, "got %s by %s", body, req.URL)
}

// gone is the receiver of an account's webhooks that wants no more of them.
func (r *repeating) gone(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, 1<<20))
	if err != nil {
		return // cut off by a kill
	}
	_, email, _ := strings.Cut(string(body), `"email":"`)
	email, _, _ = strings.Cut(email, `"`)
	http.Error(w, "no more of "+email, http.StatusGone)
}

// subscription is that of a browser of the person; its push service is here, or nowhere.
func (r *repeating) subscription(p erasedPerson, there bool) string {
	origin, text := r.push.URL, base64.RawURLEncoding
	if !there {
		origin = "https://127.0.0.1:1"
	}
	return fmt.Sprintf(`{"endpoint":"%s/browser/%s-subscription","keys":{"p256dh":%q,"auth":%q}}`, origin, p.tag, text.EncodeToString(r.client.PublicKey().Bytes()), text.EncodeToString(make([]byte, 16)))
}
