package openapitest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/operation/operationtest"
	"github.com/musterhq/muster/internal/eventually"
)

// Step is one request.
type Step struct {
	// Request is the method and the path with its query. $name stands for a value
	// that was kept.
	Request string
	Body    string
	// Keep names values of the answer: "list=data._id session=data.token".
	Keep string
	// Fails expects a failure.
	Fails bool
	// Headers replace those of the surface.
	Headers map[string]string
	// Until is what the answer must have in it; the request is repeated until it
	// has.
	Until string
	// Sign signs the body with the kept secret of this name, as Standard Webhooks.
	Sign string
	// Person signs a token for the person with this external_id by the kept in-app secret.
	Person string
}

// Walk runs a story against a service and checks it against the service's document.
// signIn is the token of the sign-in link that its start printed.
func Walk(t *testing.T, origin string, creds api.Credentials, signIn string, story []Step) {
	w := &walker{t: t, origin: origin, kept: map[string]string{
		"app": creds.AppID, "secret": creds.AppSecret, "key": creds.APIKey, "account": creds.AccountID,
		"email": creds.ConsoleEmail, "password": creds.ConsolePassword, "signin": signIn,
	}}
	w.client = &http.Client{Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(w.client.CloseIdleConnections)
	w.makeKeys()
	w.listen()
	_, _, text := w.send("GET", "/openapi.json", "", nil)
	var err error
	if w.doc, err = operationtest.ReadDocument(text); err != nil {
		t.Fatal(err)
	}
	for i := range story {
		w.step(&story[i])
	}
	w.refusals()
	for _, o := range w.doc.Operations {
		if !o.Succeeded {
			t.Errorf("%s: the story has no success of it", o.Name())
		}
		if !o.Failed && len(asList(o.Node["security"])) > 0 {
			t.Errorf("%s: the story has no failure of it", o.Name())
		}
		if list := w.doc.Unsent(o); len(list) > 0 {
			t.Errorf("%s: described, and never sent: %s", o.Name(), strings.Join(list, ", "))
		}
	}
}

type walker struct {
	t      *testing.T
	origin string
	client *http.Client
	doc    *operationtest.Document
	kept   map[string]string
	calls  int // of the present key
}

var variable = regexp.MustCompile(`\$[a-z]+`)

func (w *walker) fill(text string) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		v, known := w.kept[name[1:]]
		if !known {
			w.t.Fatalf("nothing is kept as %s", name)
		}
		return v
	})
}

// send makes a request and reads the answer, of a stream its beginning.
func (w *walker) send(method, path, body string, headers map[string]string) (status int, contentType string, answer []byte) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.origin+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	res, err := w.client.Do(req)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	contentType = res.Header.Get("Content-Type")
	if contentType == "text/event-stream" {
		b := make([]byte, 512)
		n, _ := res.Body.Read(b)
		return res.StatusCode, contentType, b[:n]
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode, contentType, b
}

// headers are those by which a surface knows the caller.
func (w *walker) headers(o *operationtest.Described, body string) map[string]string {
	h := map[string]string{}
	if body != "" {
		h["Content-Type"] = "application/json"
	}
	switch o.Surface {
	case "A", "C":
		if w.calls++; w.calls > 100 { // before the key's rate is reached
			w.calls = 1
			w.newKey()
		}
		h["Authorization"] = "Bearer " + w.kept["key"]
	case "B":
		h["X-App-Id"], h["X-App-Secret"] = w.kept["app"], w.kept["secret"]
	case "tracking":
		h["Authorization"] = "Bearer " + w.kept["write"]
	case "console":
		if o.Needs != "none" {
			h["Authorization"] = "Bearer " + w.kept["session"]
		}
	}
	return h
}

func (w *walker) newKey() {
	w.step(&Step{Request: "POST /console/api/v1/api-keys", Body: `{"name":"another"}`, Keep: "key=data.key"})
}

// step makes a request, checks it, and keeps of its answer what is wanted.
func (w *walker) step(s *Step) {
	w.t.Helper()
	method, target, _ := strings.Cut(w.fill(s.Request), " ")
	u, err := url.Parse(target)
	if err != nil {
		w.t.Fatal(err)
	}
	o := w.doc.Find(method, u.EscapedPath())
	if o == nil {
		w.t.Errorf("%s: no such operation is described", s.Request)
		return
	}
	body := w.fill(s.Body)
	headers := w.headers(o, body)
	for k, v := range s.Headers {
		headers[k] = w.fill(v)
	}
	if s.Sign != "" {
		sign(headers, w.kept[s.Sign], body)
	}
	if s.Person != "" {
		headers["Authorization"] = "Bearer " + personToken(w.kept["ias"], w.kept["account"], s.Person)
	}
	var status int
	var contentType string
	var answer []byte
	eventually.Succeeds(w.t, func() error {
		if status, contentType, answer = w.send(method, target, body, headers); !strings.Contains(string(answer), s.Until) {
			return fmt.Errorf("%s: %d %.500s has not %q", s.Request, status, answer, s.Until)
		}
		return nil
	})
	if good := operationtest.Succeeds(status, contentType, answer); good == s.Fails {
		w.t.Errorf("%s %s: %d %.500s", s.Request, body, status, answer)
		return
	}
	w.judge(o, u, headers["Content-Type"], body, status, contentType, answer)
	w.keep(s, answer)
	if o.Surface == "console" && strings.HasSuffix(o.Needs, ":read") && !s.Fails {
		w.byKey(o, u, body)
	}
	if o.Surface == "A" && o.Method == "GET" {
		w.bySession(o, u, s.Fails)
	}
}

// bySession makes a call of keys that reads with a session, where people share it.
func (w *walker) bySession(o *operationtest.Described, u *url.URL, fails bool) {
	w.t.Helper()
	target := c + handler.PathOfPeople(strings.TrimPrefix(u.EscapedPath(), a))
	shared := w.doc.Find(o.Method, target)
	if id := o.Node["operationId"].(string); shared == nil || shared.Node["operationId"] != "console"+strings.ToUpper(id[:1])+id[1:] {
		return
	}
	if u.RawQuery != "" {
		target += "?" + u.RawQuery
	}
	status, contentType, answer := w.send(o.Method, target, "", w.headers(shared, ""))
	if operationtest.Succeeds(status, contentType, answer) == fails {
		w.t.Errorf("%s %s by session: %d %.500s", o.Method, target, status, answer)
		return
	}
	w.judge(shared, u, "", "", status, contentType, answer)
}

// byKey makes a call of the console that reads with a key, where keys share it.
func (w *walker) byKey(o *operationtest.Described, u *url.URL, body string) {
	w.t.Helper()
	_, path, _ := strings.Cut(handler.CallOfKeys(o.Method, strings.TrimPrefix(u.EscapedPath(), api.Prefix)), " ")
	shared := w.doc.Find(o.Method, a+path)
	if shared == nil || !strings.HasSuffix(shared.Node["operationId"].(string), "ByKey") {
		return
	}
	target := a + path
	if u.RawQuery != "" {
		target += "?" + u.RawQuery
	}
	headers := w.headers(shared, body)
	status, contentType, answer := w.send(o.Method, target, body, headers)
	if !operationtest.Succeeds(status, contentType, answer) {
		w.t.Errorf("%s %s by key: %d %.500s", o.Method, target, status, answer)
		return
	}
	w.judge(shared, u, headers["Content-Type"], body, status, contentType, answer)
}

// judge checks one exchange against the document.
func (w *walker) judge(o *operationtest.Described, u *url.URL, media, body string, status int, contentType string, answer []byte) {
	w.t.Helper()
	if os.Getenv("MUSTER_OPENAPI_TRACE") != "" {
		w.t.Logf("%s %d %.200s", o.Name(), status, answer)
	}
	if err := w.doc.CheckAnswer(o, status, contentType, answer); err != nil {
		w.t.Errorf("%s, answered %d: %v", o.Name(), status, err)
	}
	if !operationtest.Succeeds(status, contentType, answer) {
		o.Failed = true
		return
	}
	o.Succeeded = true
	if err := w.doc.CheckRequest(o, media, body); err != nil {
		w.t.Errorf("%s: %v", o.Name(), err)
	}
	if err := o.CheckQuery(u.Query()); err != nil {
		w.t.Errorf("%s: %v", o.Name(), err)
	}
}

// keep keeps values of an answer by their names. A number in a path is a place
// in an array.
func (w *walker) keep(s *Step, answer []byte) {
	w.t.Helper()
	for _, pair := range strings.Fields(s.Keep) {
		name, path, _ := strings.Cut(pair, "=")
		var v any
		if err := json.Unmarshal(answer, &v); err != nil {
			w.t.Fatalf("%s: %v", s.Request, err)
		}
		for _, part := range strings.Split(path, ".") {
			switch x := v.(type) {
			case map[string]any:
				v = x[part]
			case []any:
				at := int(part[0] - '0')
				if at >= len(x) {
					w.t.Fatalf("%s: %s has no %s: %s", s.Request, path, part, answer)
				}
				v = x[at]
			}
		}
		text := fmt.Sprint(v)
		if f, is := v.(float64); is {
			text = fmt.Sprintf("%.0f", f)
		}
		// What looks like a link is kept as its path.
		if u, err := url.Parse(strings.Trim(text, "<>")); err == nil && u.Host != "" {
			text = u.Path
		}
		w.kept[name] = text
	}
}

// refusals makes requests that every operation must refuse in its surface's way:
// without credentials, without the permission, with a body that is no JSON, and with a
// field that it does not take.
func (w *walker) refusals() {
	makeWeak := func() {
		w.step(&Step{Request: "POST /console/api/v1/api-keys", Body: `{"name":"weak","permissions":["push:read"]}`, Keep: "weak=data.key"})
	}
	makeWeak()
	weak := 0
	for _, o := range w.doc.Operations {
		if len(asList(o.Node["security"])) == 0 {
			continue
		}
		path := regexp.MustCompile(`\{[^}]+\}`).ReplaceAllString(o.Path, "none")
		u := &url.URL{Path: path}
		try := func(body string, headers map[string]string) {
			w.t.Helper()
			status, contentType, answer := w.send(o.Method, path, body, headers)
			if operationtest.Succeeds(status, contentType, answer) {
				w.t.Errorf("%s is let in with %v and %q: %d %.300s", o.Name(), headers, body, status, answer)
				return
			}
			w.judge(o, u, headers["Content-Type"], body, status, contentType, answer)
		}
		try("", nil)
		if (o.Surface == "A" || o.Surface == "C") && o.Needs != "any-key" {
			if weak++; weak%100 == 0 { // before the key's rate is reached
				makeWeak()
			}
			try("", map[string]string{"Authorization": "Bearer " + w.kept["weak"]})
		}
		if body, _ := o.Node["requestBody"].(map[string]any); body != nil {
			headers := w.headers(o, "x")
			try(`{"`, headers)
			if o.Surface == "tracking" { // it takes any content type, and SDKs add fields
				continue
			}
			if o.Surface != "B" {
				try(`{"no_such_field":1}`, w.headers(o, "x"))
			}
			headers["Content-Type"] = "text/plain"
			try(`{}`, headers)
		}
	}
	// At last a key comes to its rate.
	headers := map[string]string{"Authorization": "Bearer " + w.kept["weak"]}
	for _, path := range []string{"/api/v1/lists"} {
		o := w.doc.Find("GET", path)
		for range 121 {
			status, contentType, answer := w.send("GET", path, "", headers)
			w.judge(o, &url.URL{}, "", "", status, contentType, answer)
			if status == 429 {
				return
			}
		}
	}
	w.t.Error("no key came to its rate")
}

// sign adds the headers of Standard Webhooks.
func sign(headers map[string]string, secret, body string) {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	id, at := "msg_1", fmt.Sprint(time.Now().Unix())
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "." + body))
	headers["webhook-id"], headers["webhook-timestamp"] = id, at
	headers["webhook-signature"] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}
