package keyapi

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/resolver/erasure"
)

var placeholder = regexp.MustCompile(`‹[^›]*›|«[^»]*»`)

// fill puts things in the place of placeholders: own where the company's are
// meant, tried where an id is to be tried.
func fill(text string, own, tried func(kind string) string) string {
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		kind := strings.Trim(p, "‹›«»")
		if strings.HasPrefix(p, "«") {
			return tried(kind)
		}
		return own(kind)
	})
}

// request makes an example's request as company c.
func (x *example) request(c *company, method string, own, tried func(string) string) response {
	c.t.Helper()
	target, body := fill(x.target, own, tried), fill(x.body, own, tried)
	headers := c.headers(target)
	for i := 0; i < len(x.headers); i += 2 {
		at := slices.Index(headers, x.headers[i])
		headers[at+1] = fill(x.headers[i+1], own, tried)
	}
	switch {
	case x.form:
		headers = append(headers, "Content-Type", "application/x-www-form-urlencoded")
	case body != "":
		headers = append(headers, "Content-Type", "application/json")
	}
	if x.secret != "" {
		headers = append(headers, signed(c, fill(x.secret, own, tried), body)...)
	}
	return c.raw(method, target, body, headers...)
}

// signed are the headers of a report in the generic form.
func signed(c *company, secret, body string) []string {
	s, err := webhook.ParseSecret(secret)
	ok(c.t, err)
	now := c.clock.Now()
	return []string{webhook.HeaderID, "msg_1", webhook.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10),
		webhook.HeaderSignature, webhook.Sign("msg_1", now, []byte(body), []webhook.Secret{s})}
}

var (
	requestID = regexp.MustCompile(`req_[0-9a-f]{32}`)
	mintedID  = regexp.MustCompile(`(prf|usr|msg|dev|cmp|lst|seg|tpl|whk|key|flw)_[0-9a-f]{32}|[0-9a-f]{16}[.-][0-9a-f]{32}`)
	instants  = regexp.MustCompile(`20\d\d-\d\d-\d\dT[0-9:.]+Z`)
)

// plain is an answer without what differs between any two requests, and without
// the ids that were sent.
func (r *response) plain(loose bool, sent map[string]string) string {
	head := []string{}
	for name, values := range r.header {
		if name != "Date" && name != "X-Request-Id" && name != "Content-Length" {
			head = append(head, name+": "+strings.Join(values, ","))
		}
	}
	slices.Sort(head)
	body := requestID.ReplaceAllString(r.body, "req")
	// The longest first: one may be part of another.
	for _, kind := range slices.SortedFunc(maps.Keys(sent), func(a, b string) int { return len(sent[b]) - len(sent[a]) }) {
		body = strings.ReplaceAll(body, sent[kind], "«"+kind+"»")
	}
	body = instants.ReplaceAllString(body, "now")
	if loose {
		body = mintedID.ReplaceAllString(body, "$1")
		// A version is a hash of the content, which has the names and ids that were sent.
		body = regexp.MustCompile(`"(value|name|version)":"[^"]*"`).ReplaceAllString(body, `"$1":""`)
	}
	return fmt.Sprint(r.status, " ", head, " ", body)
}

// trying are the ids that stand in the place of «…», and that were.
func trying(of func(kind string) string) (tried func(string) string, sent map[string]string) {
	sent = map[string]string{}
	return func(kind string) string {
		sent[kind] = of(kind)
		return sent[kind]
	}, sent
}

// TestEveryRouteHasExamples: a new route is not left out of the tests that walk
// all of them.
func TestEveryRouteHasExamples(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	seen := map[string]bool{}
	for _, e := range w.entries() {
		name := e.String()
		seen[name] = true
		list := examples[name]
		if len(list) == 0 {
			t.Errorf("%s has no example; add requests of it to the examples, with «…» where an id stands", name)
			continue
		}
		parts := strings.Split(e.path, "/")
		tried := make([]bool, len(parts))
		for _, x := range list {
			path, _, _ := strings.Cut(x.target, "?")
			have := strings.Split(path, "/")
			if len(have) != len(parts) {
				t.Errorf("%s: %s is not a path of it", name, x.target)
				continue
			}
			for i, p := range parts {
				switch {
				case !strings.HasPrefix(p, "{") && p != have[i]:
					t.Errorf("%s: %s is not a path of it", name, x.target)
				case strings.HasPrefix(have[i], "«"):
					tried[i] = true
				}
			}
		}
		for i, p := range parts {
			if strings.HasPrefix(p, "{") && !tried[i] && noIDs[name] == "" && p != "{provider}" {
				t.Errorf("%s: no example tries %s with another company's", name, p)
			}
		}
	}
	for name := range examples {
		if !seen[name] {
			t.Errorf("%s is no route any more", name)
		}
	}
}

// TestIsolation: whatever has an id is tried with another company's: the answer
// is that to an unknown id, byte for byte but for the id itself, it tells nothing
// that the other company named, and nothing of the other company changes.
func TestIsolation(t *testing.T) {
	t.Parallel()
	for name, partitions := range map[string]int{"same partition": 1, "partitions of their own": 2} {
		if partitions == 1 && testlevel.Quick() {
			continue
		}
		t.Run(name, func(t *testing.T) { testIsolation(t, partitions) })
	}
}

func testIsolation(t *testing.T, partitions int) {
	w := newWorld(t, partitions)
	theirs, ours := w.newCompany("zebra", 0, partitions), w.newCompany("okapi", partitions-1, partitions)
	// What is there uses each other, so that a refusal could name it.
	theirs.entangle()
	ours.entangle()
	tries := 0
	for _, e := range w.entries() {
		for i, x := range examples[e.String()] {
			if !x.probes() {
				continue
			}
			if tries++; tries%testlevel.Count(3, 1) != 0 {
				continue
			}
			name := fmt.Sprintf("%s (%d)", e, i)
			their, own := newSetting(theirs, ours), newSetting(ours, ours)
			strange, sentStrange := trying(func(kind string) string {
				if kind == "forged" || kind == "forgedpage" {
					return unknownToken(ours, 4711)
				}
				return unknown(kind, their.get(kind))
			})
			foreign, sentForeign := trying(their.get)
			none := x.request(ours, e.method, own.get, strange)
			placeholder.ReplaceAllStringFunc(x.target+x.body+x.secret+strings.Join(x.headers, ""), func(p string) string { // made before the look at what there is
				if strings.HasPrefix(p, "«") {
					return their.get(strings.Trim(p, "«»"))
				}
				return own.get(strings.Trim(p, "‹›"))
			})
			before, from := theirs.all(), theirs.logEnd()
			// What the request with an unknown id has made stays out of the way.
			again := newSetting(ours, ours)
			maps.Copy(again.made, own.made)
			for kind := range again.made {
				if strings.HasPrefix(kind, "new") {
					delete(again.made, kind)
				}
			}
			got := x.request(ours, e.method, again.get, foreign)
			own.sentNew(sentStrange)
			again.sentNew(sentForeign)
			want := none.plain(x.loose != "", sentStrange)
			have := got.plain(x.loose != "", sentForeign)
			if have != want {
				t.Errorf("%s: what another company has is answered\n%s\nan unknown id\n%s", name, have, want)
			}
			if strings.Contains(have, "zebra") {
				t.Errorf("%s: the answer tells what another company named: %s", name, have)
			}
			if after := theirs.all(); after != before {
				t.Errorf("%s: the other company has changed:\n%s", name, difference(before, after))
			}
			// A function of the log, the state holds nothing new then either.
			if list := theirs.records(from); len(list) > 0 {
				t.Errorf("%s: the other company has new records: %v", name, list)
			}
			if x.control != "" || x.loose != "" {
				continue
			}
			control := newSetting(ours, ours)
			self, sentSelf := trying(control.get)
			mine := x.request(ours, e.method, control.get, self)
			control.sentNew(sentSelf)
			if have := mine.plain(false, sentSelf); have == want {
				t.Errorf("%s: with ids of its own the answer is the same, so the test says nothing: %s", name, have)
			}
		}
	}
	// Drafts may name what is not there; what is found when they are published must
	// not tell more.
	for _, kind := range []string{"list", "segment", "template", "live"} {
		id := newSetting(theirs, ours).get(kind)
		from := theirs.logEnd()
		told := func(id string) (out []string) {
			s := newSetting(ours, ours)
			trigger := map[string]string{"list": `{"type":"list_joined","list_id":%q}`, "segment": `{"type":"segment_entered","segment_id":%q}`}[kind]
			if trigger == "" {
				trigger = `{"type":"event","event":%q}`
			}
			flow := s.id("POST", api.Prefix+"/flows", fmt.Sprintf(`{"name":"n","trigger":`+trigger+`,"steps":[{"id":"a","type":"email","template_id":%q},{"id":"c","type":"condition","if":{"match":"any","conditions":[{"kind":"list","list_id":%q},{"kind":"segment","segment_id":%q}]}}]}`, id, id, id, id))
			for method, call := range map[string]string{"GET": "validate", "POST": "publish"} {
				res := ours.send(method, api.Prefix+"/flows/"+flow+"/"+call, "")
				out = append(out, call+" "+res.plain(true, map[string]string{"id": id, "flow": flow}))
			}
			slices.Sort(out)
			return out
		}
		if have, want := told(id), told(unknown(kind, id)); !slices.Equal(have, want) {
			t.Errorf("a flow that refers to another company's %s: %s\nto one of no company: %s", kind, have, want)
		}
		if list := theirs.records(from); len(list) > 0 {
			t.Errorf("a flow that refers to another company's %s: the other company has new records: %v", kind, list)
		}
	}
	t.Logf("%d requests with ids of another company", tries)
	if strings.Contains(w.logs.String(), "level=ERROR") {
		t.Error(w.logs.String())
	}
}

// sentNew adds the names that a request gave: they are echoed, too.
func (s *setting) sentNew(sent map[string]string) {
	for kind, v := range s.made {
		if strings.HasPrefix(kind, "new") {
			sent[kind] = v
		}
	}
}

// entangle makes lists, segments, templates and campaigns that use each other.
func (c *company) entangle() {
	s := newSetting(c, c)
	s.get("member")
	s.console("POST", "/segments", fmt.Sprintf(`{"name":%q,"definition":{"match":"all","conditions":[{"kind":"list","list_id":%q},{"kind":"segment","segment_id":%q}]}}`,
		s.name("uses "), s.get("list"), s.get("segment")), nil)
	s.must("POST", "/api/v1/campaign", fmt.Sprintf(`{"name":%q,"channel":1,"list_id":[%q],"segment_ids":[%q],"template_id":%q}`, s.name("uses "), s.get("list"), s.get("segment"), s.get("template")), nil)
	s.must("POST", "/api/v1/campaign", fmt.Sprintf(`{"name":%q,"channel":1,"template_id":%q}`, s.name("uses "), s.get("draft")), nil)
	for _, kind := range []string{"device", "sent", "seq", "erasure", "domain", "apikey", "user"} {
		s.get(kind)
	}
}

// all is everything that a company can read of itself.
func (c *company) all() string {
	c.t.Helper()
	var b strings.Builder
	for _, path := range []string{
		"/api/v1/contacts?limit=1000", "/api/v1/lists?limit=1000", "/api/v1/campaign?limit=1000", "/api/v1/push/segments?limit=1000", api.Prefix + "/users?limit=1000", api.Prefix + "/api-keys?limit=1000", api.Prefix + "/segments?limit=1000", api.Prefix + "/catalog",
		api.Prefix + "/settings", api.Prefix + "/erasures?limit=1000", api.Prefix + "/templates?limit=1000", api.Prefix + "/sender-domains", api.Prefix + "/credits", api.Prefix + "/webhooks",
		api.Prefix + "/push-credentials", api.Prefix + "/message-providers", api.Prefix + "/inbound-providers", api.Prefix + "/outbox?limit=100", api.Prefix + "/export/profiles",
	} {
		res := c.send("GET", path, "")
		if res.status != 200 {
			c.t.Fatalf("GET %s: %d %s", path, res.status, res.body)
		}
		fmt.Fprintln(&b, path+":", instants.ReplaceAllString(lastUsed.ReplaceAllString(res.body, ""), ""))
	}
	return b.String()
}

func (c *company) logEnd() int64 {
	_, end, err := c.log.Bounds(c.t.Context(), int(c.account%uint64(c.log.Partitions())))
	ok(c.t, err)
	return end
}

// records are what the log has of the company from an offset on, without those
// that the service makes by itself.
func (c *company) records(from int64) (out []string) {
	c.t.Helper()
	end := c.logEnd()
	r, err := c.log.Read(int(c.account%uint64(c.log.Partitions())), from)
	ok(c.t, err)
	defer r.Close()
	for range end - from {
		e, err := r.Next(c.t.Context())
		ok(c.t, err)
		env, body, err := eventlog.DecodeEnvelope(e.Data)
		ok(c.t, err)
		if env.Account != c.account || env.Kind != eventlog.KindCommand && env.Kind != eventlog.KindEvents {
			continue
		}
		name := "events"
		if env.Kind == eventlog.KindCommand {
			cmd, _, err := eventlog.DecodeCommand(body)
			ok(c.t, err)
			name = string(cmd)
		}
		if name != erasure.CommandDone {
			out = append(out, name)
		}
	}
	return out
}

// Reading is what uses a key.
var lastUsed = regexp.MustCompile(`"last_used_at":"[^"]*"`)

func difference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range x {
		if i < len(y) && x[i] != y[i] {
			return "- " + x[i] + "\n+ " + y[i]
		}
	}
	return "more"
}
