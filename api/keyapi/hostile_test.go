package keyapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/node"
)

// TestHostileRequests: whatever comes to any endpoint, nothing panics, no fault
// is ours, Surface A answers 200 but for 401 and 429, and every refusal is one
// line that a person can use. Afterwards (R1) a start from the checkpoint and one
// from the log alone come to the same state.
//
// MUSTER_LONG=1 makes more requests; MUSTER_SEED repeats a run.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	requests, seed := testlevel.Count(500, 4000), uint64(3)
	if testlevel.Long() {
		requests, seed = 30_000, rand.Uint64()
	}
	if text := os.Getenv("MUSTER_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		ok(t, err)
		seed = n
	}
	t.Logf("seed %d", seed)
	w := newWorld(t, 2)
	w.haste = true
	h := hostile{rand.New(rand.NewPCG(seed, 0))}
	a := &attack{hostile: h, world: w, entries: w.entries(), statuses: map[int]int{}}
	for i := range requests {
		if i%150 == 0 {
			a.renew()
		}
		e := a.entries[h.IntN(len(a.entries))]
		a.request(e)
		if t.Failed() && len(a.seen) > 20 {
			break
		}
	}
	t.Logf("answers by status: %v", a.statuses)
	// Most get past the first gate, or the test is worth nothing.
	if a.statuses[200] < requests/5 || a.statuses[401] > requests/5 {
		t.Error("too few requests come to where they could do harm")
	}
	if i := strings.Index(w.logs.String(), "level=ERROR"); i >= 0 {
		t.Errorf("faults of ours are in the log: %.3000s", w.logs.String()[i:])
	}
	w.sameAfterRestart(t)
}

// attack is a run of hostile requests.
type attack struct {
	hostile
	*world
	entries  []entry
	statuses map[int]int
	seen     map[string]bool // faults that were reported
	// company makes the requests; victim those that change what it could not do
	// without.
	company, victim *company
	own             *setting
}

func (a *attack) renew() {
	a.company, a.victim = a.newCompany("okapi", 0, 2), a.newCompany("victim", 1, 2)
	a.own = newSetting(a.company, a.company)
}

// asVictim are routes that may lock their caller out.
var asVictim = map[string]bool{
	"DELETE /console/api/v1/session": true, "PUT /console/api/v1/password": true, "PUT /console/api/v1/settings": true, "POST /console/api/v1/app-secret": true,
}

// caller is who makes the requests of a route, and with whose things.
func (a *attack) caller(e entry) (who *company, own *setting) {
	a.t.Helper()
	who, own = a.company, a.own
	switch {
	case asVictim[e.String()]:
		who = a.victim
		own = newSetting(who, who)
	case strings.HasPrefix(e.path, api.Prefix+"/companies"):
		who, own = a.owner, newSetting(a.victim, a.victim)
	case e.method == "DELETE" || a.IntN(8) == 0:
		own = newSetting(who, who)
		a.own = own
	}
	if r := a.raw("GET", api.Prefix+"/session", "", who.headers(api.Prefix)...); r.status == 401 {
		if who == a.victim {
			a.renew()
			return a.caller(e)
		}
		who.signIn() // time has gone by
	}
	for kind := range own.made {
		if strings.HasPrefix(kind, "new") {
			delete(own.made, kind)
		}
	}
	return who, own
}

// request makes a request of a route that is changed at random.
func (a *attack) request(e entry) {
	a.t.Helper()
	who, own := a.caller(e)
	x := pick1(a.hostile, examples[e.String()])
	target, body, method := fill(x.target, own.get, own.get), fill(x.body, own.get, own.get), e.method
	malformed := false
	if a.IntN(2) == 0 || body == "" {
		target, malformed = a.target(target)
	}
	if body != "" || a.IntN(10) == 0 {
		body = a.body(body)
	}
	if a.IntN(40) == 0 {
		method = pick1(a.hostile, methods)
	}
	headers := who.headers(target)
	if x.secret != "" {
		headers = append(headers, signed(who, own.get("inboundsecret"), body)...)
	}
	kind := "application/json"
	if a.IntN(30) == 0 {
		kind = pick1(a.hostile, contentTypes)
	}
	if body != "" && kind != "" {
		headers = append(headers, "Content-Type", kind)
	}
	if a.IntN(60) == 0 {
		headers = append(headers, "Content-Encoding", pick1(a.hostile, codings))
	}
	if a.IntN(100) == 0 && len(headers) > 1 {
		headers[1] = pick1(a.hostile, []string{"", "Bearer", "Bearer ", "Basic eDp5", "Bearer " + strings.Repeat("x", 3000), "Bearer svc_live_\xff"})
	}
	a.judge(e, method, target, body, malformed, headers)
}

// judge makes a request and looks at the answer.
func (a *attack) judge(e entry, method, target, body string, malformed bool, headers []string) {
	a.t.Helper()
	res := a.raw(method, target, body, headers...)
	if method != e.method || method == "DELETE" {
		a.own = newSetting(a.company, a.company) // what was there may be gone
	}
	a.statuses[res.status]++
	a.clock.Advance(time.Second)
	if fault := faultOf(method, target, malformed, &res); fault != "" && !a.seen[fault+e.String()] {
		if a.seen == nil {
			a.seen = map[string]bool{}
		}
		a.seen[fault+e.String()] = true
		a.t.Errorf("%s: %s %.300q %.600q: %d %.600s\nheaders %q", fault, method, target, body, res.status, res.body, headers)
	}
	if a.node.Err() != nil {
		a.t.Fatalf("the node has stopped: %.2000s", a.node.Err())
	}
}

// fieldValues are what every field of every body is given, and idValues what
// stands for every part of a path and every argument that may be an id.
var (
	fieldValues = []string{"null", `""`, "-1", "1.5", "9223372036854775807", "true", "[]", "{}", `"\u0000"`, quoted(5000), `"` + strings.Repeat("a", 64) + `"`}
	idValues    = []string{"0", "%00", strings.Repeat("a", 64), strings.Repeat("%61", 900), "%ff", "prf_00000000000000000000000000000000"}
)

// TestHostileFields is TestHostileRequests without chance: every field of every
// example has every one of a few values, and so has every part of a path.
func TestHostileFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.haste = true
	a := &attack{hostile: hostile{rand.New(rand.NewPCG(1, 1))}, world: w, statuses: map[int]int{}}
	a.renew()
	every, made, sent := testlevel.Count(150, 1), 0, false
	send := func(e entry, x *example, field int, value, id string) {
		if made++; made%every == 0 {
			a.field(e, x, field, value, id)
			sent = true
		}
	}
	for _, e := range w.entries() {
		if e.String() == "DELETE /console/api/v1/session" {
			continue // takes nothing
		}
		for _, x := range examples[e.String()] {
			n := 0
			var v any
			if json.Unmarshal([]byte(x.body), &v) == nil {
				count(v, &n)
			}
			for field := 1; field < n; field++ {
				for _, value := range fieldValues {
					send(e, &x, field, value, "")
				}
			}
			for part := range strings.Count(x.target, "«") + strings.Count(x.target, "‹") {
				for _, value := range idValues {
					send(e, &x, -1, "", strings.Repeat("\x00", part)+value)
				}
			}
		}
		if sent {
			a.renew()
			sent = false
		}
	}
	t.Logf("answers by status: %v", a.statuses)
	if i := strings.Index(w.logs.String(), "level=ERROR"); i >= 0 {
		t.Errorf("faults of ours are in the log: %.3000s", w.logs.String()[i:])
	}
	w.sameAfterRestart(t)
}

// field makes an example's request with another value in one field, or another
// text in the place of one placeholder of its target: that of the number of
// zeros before the text.
func (a *attack) field(e entry, x *example, field int, value, id string) {
	a.t.Helper()
	who, own := a.caller(e)
	target, body, method := x.target, fill(x.body, own.get, own.get), e.method
	if id != "" {
		at, skip := 0, strings.Count(id, "\x00")
		target = placeholder.ReplaceAllStringFunc(target, func(p string) string {
			if at++; at == skip+1 {
				return id[skip:]
			}
			return p
		})
	}
	target = fill(target, own.get, own.get)
	if field > 0 {
		d := json.NewDecoder(strings.NewReader(body))
		d.UseNumber()
		var v any
		ok(a.t, d.Decode(&v))
		var b bytes.Buffer
		n := 0
		replaceValue(&b, v, field, value, &n)
		body = b.String()
	}
	headers := who.headers(target)
	if x.secret != "" {
		headers = append(headers, signed(who, own.get("inboundsecret"), body)...)
	}
	if body != "" {
		headers = append(headers, "Content-Type", "application/json")
	}
	a.judge(e, method, target, body, false, headers)
}

// replaceValue writes v with its at-th value replaced.
func replaceValue(b *bytes.Buffer, v any, at int, value string, n *int) {
	i := *n
	*n++
	if i == at {
		b.WriteString(value)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		for j, k := range sortedKeys(v) {
			if j > 0 {
				b.WriteByte(',')
			}
			key, _ := json.Marshal(k)
			b.Write(append(key, ':'))
			replaceValue(b, v[k], at, value, n)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for j, x := range v {
			if j > 0 {
				b.WriteByte(',')
			}
			replaceValue(b, x, at, value, n)
		}
		b.WriteByte(']')
	default:
		text, _ := json.Marshal(v)
		b.Write(text)
	}
}

// ours are traces of how the service is made, which mean nothing to a caller.
var ours = regexp.MustCompile(`json: |strconv\.|Go (value|struct)|interface \{\}|interface conversion|runtime error|resolver[.:]|segment[.:] |pebble|goroutine|\.go:\d|reflect\.|%!|0x[0-9a-f]{6}|<nil>|unexpected end of JSON input \(`)

// faultOf says what is wrong with an answer, "" for nothing.
func faultOf(method, target string, malformed bool, res *response) string {
	path, _, _ := strings.Cut(target, "?")
	surfaceA := strings.HasPrefix(path, "/api/v1/") && (!strings.HasPrefix(path, "/api/v1/events") || path == "/api/v1/events/live")
	switch {
	case res.status >= 500 && !(res.status == 501 && malformed):
		return "a fault of ours"
	case surfaceA && !malformed && !slices.Contains([]int{200, 401, 429}, res.status):
		return "Surface A answers 200, 401 and 429 only"
	case method == "HEAD" || !strings.HasPrefix(res.header.Get("Content-Type"), "application/json"):
		return ""
	case !utf8.ValidString(res.body):
		return "the answer is not UTF-8"
	}
	var e struct {
		Status, Code, Message string
		Error                 *string
		Success               *bool
		Data                  json.RawMessage
	}
	if err := json.Unmarshal([]byte(res.body), &e); err != nil {
		return "the answer is not JSON"
	}
	message := e.Message
	if e.Success != nil && e.Error != nil {
		message = *e.Error
	}
	failed := e.Status == "failure" || e.Status == "error" || e.Success != nil && !*e.Success
	switch {
	case !failed && res.status >= 400:
		return "a failure that does not say so"
	case !failed:
		return ""
	case surfaceA && res.status == 200 && string(e.Data) != "{}":
		return "a failure with data"
	case strings.TrimSpace(message) == "" && e.Success == nil:
		return "a refusal without a reason"
	case strings.ContainsFunc(message, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }):
		return "a refusal of more than one line"
	case len(message) > 2000:
		return "a refusal that is too long"
	case ours.MatchString(message):
		return "a refusal that shows the inside"
	case message != "" && len(strings.Fields(message)) < 3:
		return "a refusal that does not say what to do"
	}
	return ""
}

// sameAfterRestart checks R1: the state of the running service, that of a start
// from its checkpoint and that of a start from the log alone are one.
func (w *world) sameAfterRestart(t *testing.T) {
	t.Helper()
	hashes := func(n *node.Node) (out []string) {
		for p := range w.partitions {
			next, sum, err := n.StateHash(p)
			ok(t, err)
			out = append(out, fmt.Sprint(next, " ", sum))
		}
		return out
	}
	last := w.closers[:2] // log and node
	for _, f := range slices.Backward(w.closers[2:]) {
		f()
	}
	running := hashes(w.node)
	for _, f := range slices.Backward(last) {
		f()
	}
	w.closers = nil
	log, err := file.Open("log", file.Options{FS: w.fs, Partitions: w.partitions})
	ok(t, err)
	defer func() { ok(t, log.Close()) }()
	start := func(dir string, history query.History) []string {
		n, err := node.Open(context.Background(), node.Options{FS: w.fs, Dir: dir, Log: wholeLog{log}, History: history, Now: w.clock.Now, Rand: strings.NewReader(strings.Repeat("r", 1<<16))})
		ok(t, err)
		defer func() { ok(t, n.Close(context.Background())) }()
		return hashes(n)
	}
	// A start appends what the service has to do by itself, so the log continues
	// growing: states at the same place are compared, whichever requests led there.
	compared := make([]bool, w.partitions)
	checkpoint := start("state", w.history)
	compareHashes(t, "the running service and its checkpoint", running, checkpoint)
	for i := range 5 {
		alone := start(fmt.Sprint("alone", i), &emptyHistory{})
		for range 2 {
			for p, same := range compareHashes(t, "the checkpoint and the log alone", checkpoint, alone) {
				compared[p] = compared[p] || same
			}
			checkpoint = start("state", w.history)
		}
	}
	if slices.Contains(compared, false) {
		t.Errorf("R1: not every partition could be compared: %v", compared)
	}
}

// compareHashes tells which partitions were at the same place.
func compareHashes(t *testing.T, what string, a, b []string) []bool {
	t.Helper()
	out := make([]bool, len(a))
	for p := range a {
		x, y, _ := strings.Cut(a[p], " ")
		u, v, _ := strings.Cut(b[p], " ")
		if out[p] = x == u; out[p] && y != v {
			t.Errorf("R1: partition %d at %s: %s differ: %s, %s", p, x, what, y, v)
		}
	}
	return out
}
