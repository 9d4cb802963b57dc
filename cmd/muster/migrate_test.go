package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// ofTheMoment is when something was asked for.
var ofTheMoment = regexp.MustCompile(`"(as_of|from|to|last_used_at)":("[^"]*"|null)`)

// facts are what is known of some companies, by request.
type facts map[string]string

// tell asks for everything that must be the same after a move. The requests are
// those of people and keys that were signed in before.
func (f facts) tell(i int, c *check, paths ...string) {
	for _, p := range paths {
		a := &answer{}
		switch {
		case strings.HasPrefix(p, "key "):
			a = c.a("GET", p[len("key "):], nil)
		default:
			a = c.console("GET", p, nil)
		}
		lines := strings.Split(ofTheMoment.ReplaceAllString(string(a.raw), ""), "\n")
		slices.Sort(lines) // of an export, whose order is not promised
		f[fmt.Sprintf("company %d: %s", i, p)] = fmt.Sprint(a.status, " ", strings.Join(lines, "\n"))
	}
}

// cutOff runs muster migrate and has it killed when it says what begins so. It
// reports whether it was.
func cutOff(t *testing.T, said string, args ...string) bool {
	t.Helper()
	cmd := command(append([]string{"migrate"}, args...)...)
	cmd.Env = append(cmd.Env, killVariable+"="+said)
	out, err := cmd.CombinedOutput()
	if status, is := cmd.ProcessState.Sys().(syscall.WaitStatus); is && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Fatalf("migrate, to be killed at %q: %v\n%s", said, err, out)
	}
	return false
}

// migrateArgs are the flags of muster migrate for those of serve.
func migrateArgs(dir, to string, args []string, more ...string) []string {
	return slices.Concat([]string{"--data", filepath.Join(dir, "data"), "--to", filepath.Join(to, "data"), "--log-level", "warn"}, args, more)
}

// TestMigrateKeepsEverything (L1, L2, R1): a directory in files, with events,
// segments, flows in which people wait, campaigns and contacts of several companies,
// is moved to three partitions in Kafka and to ClickHouse, by a command that is
// killed at every step; and what was asked before is answered the same after, to
// the same sessions and keys.
func TestMigrateKeepsEverything(t *testing.T) {
	t.Parallel()
	remote := kafkaArgs(t)
	w := newWorld(t, nil)
	const partitions = 3
	checks := []*check{}
	first := &check{T: t, world: w}
	checks = append(checks, first.first())
	// One company in each partition at least.
	for len(checks) < 5 {
		checks = append(checks, &check{t, w, w.company(t)})
	}
	bought := obj{"kind": "activity", "event": "bought", "window": obj{"last_days": 30}, "count": obj{"op": ">=", "value": 2}}
	type held struct {
		profile, merged, contact, email, sleeper string
		flow, segment                            string
		key                                      obj
		paths                                    []string
	}
	var all []*held
	for i, c := range checks {
		h := &held{email: c.mail("contact")}
		all = append(all, h)
		h.segment = c.segment(bought)
		h.flow = c.live(onEvent("ordered"), waitStep("w", "t", 3600), tagStep("t", "", "woken"))
		for n := range 30 {
			id := c.event("bought", obj{"external_id": fmt.Sprintf("u%d", n%11), "email": fmt.Sprintf("u%d.%d@people.example", n%11, i)}, obj{"value": n, "text": strings.Repeat("ä", n)})
			if n == 0 {
				h.profile = id
			}
		}
		// Two profiles become one.
		h.merged = c.event("seen", obj{"email": c.mail("merged")}, nil)
		ext := c.name("ext")
		c.event("seen", obj{"external_id": ext}, nil)
		c.event("seen", obj{"external_id": ext, "email": fmt.Sprintf("u3.%d@people.example", i)}, nil)
		h.key = obj{"event_type": "bought", "user": obj{"external_id": "u1"}, "idempotency_key": c.name("key-"), "properties": obj{"value": 1}}
		c.b("/events", h.key).http(202)
		h.contact = c.contact(obj{"email": h.email, "first_name": "Ada"})
		list := c.list(c.mail("reader"), c.mail("reader"))
		campaign := c.campaign(obj{"name": c.name("news")})
		c.send(campaign, list).success()
		c.until("the campaign is sent", func() bool {
			return fmt.Sprint(c.a("GET", "/campaign/"+campaign+"/stats", nil).success().num("data.emails_sent")) == "2"
		})
		h.sleeper = c.event("ordered", obj{"email": c.mail("sleeper")}, nil)
		c.at(h.flow, h.sleeper, "w")
		h.paths = []string{
			"/segments/" + h.segment, "/segments/" + h.segment + "/members", "/catalog", "/flows/" + h.flow,
			"/flows/" + h.flow + "/enrolments/" + h.sleeper, "/profiles/" + h.profile, "/profiles/" + h.profile + "/events?limit=100", "/profiles/" + h.merged,
			"/api-keys", "key /contacts/" + h.contact, "key /contacts?limit=1000", "key /lists", "key /campaign/" + campaign + "/stats", "key /analytics/overview",
			"key /analytics/performance", "key /analytics/events?event_type=bought", "/export/events", "/export/profiles",
		}
	}
	// Enrolments that wake meanwhile are of a company that is not compared.
	waking := &check{t, w, w.company(t)}
	soon := waking.live(onEvent("ordered"), waitStep("w", "t", 25), tagStep("t", "", "woken"))
	sleeper := waking.event("ordered", obj{"email": waking.mail("sleeper")}, nil)
	waking.at(soon, sleeper, "w")
	w.server.stop()
	// Once more, so that only what was waited for happens: campaigns are done.
	w.server = serveWith(t, w.dir, w.trust)
	before := facts{}
	for i, c := range checks {
		before.tell(i, c, all[i].paths...)
	}
	w.server.stop()

	to := t.TempDir()
	credentials, err := os.ReadFile(filepath.Join(w.dir, "credentials.json"))
	ok(t, err)
	ok(t, os.WriteFile(filepath.Join(to, "credentials.json"), credentials, 0o600))
	shared := "file://" + t.TempDir()
	args := migrateArgs(w.dir, to, remote, "--kafka-partitions", fmt.Sprint(partitions), "--checkpoints", shared)
	mark := filepath.Join(w.dir, "data", "moved.json")
	for _, said := range []string{"history:", "state:", "handing over", "log:", "checkpoints:", "moved"} {
		if !cutOff(t, said, args...) {
			t.Errorf("it ended without saying %q", said)
		}
		switch _, err := os.Stat(mark); {
		case (said == "history:" || said == "state:") == (err == nil):
			t.Errorf("after %q: %v", said, err)
		case said == "log:":
			if code, _, errs := muster(t, "", "serve", "--data", filepath.Join(w.dir, "data")); code != exitFailed || !strings.Contains(errs, "muster migrate again") {
				t.Errorf("serving what is being moved: %d %s", code, errs)
			}
		}
	}
	// All is done, but for saying so.
	if code, out, errs := muster(t, "", append([]string{"migrate"}, args...)...); code != exitOK || !strings.Contains(out, "moved before") {
		t.Errorf("migrate again: %d %s%s", code, out, errs)
	}
	if code, _, errs := muster(t, "", "serve", "--data", filepath.Join(w.dir, "data")); code != exitFailed || !strings.Contains(errs, "was moved") || !strings.Contains(errs, filepath.Join(to, "data")) {
		t.Errorf("serving what was moved: %d %s", code, errs)
	}

	more := append(slices.Clone(remote), "--kafka-session-timeout", "6s", "--checkpoints", shared)
	w.server = serve(t, to, more...)
	defer func() {
		if t.Failed() {
			t.Logf("the server's log:\n%s", w.server.log())
		}
	}()
	after := facts{}
	for i, c := range checks {
		after.tell(i, c, all[i].paths...)
	}
	for what, want := range before {
		if have := after[what]; have != want {
			t.Errorf("%s\nis  %.1500s\nwas %.1500s", what, have, want)
		}
	}
	for i, c := range checks {
		h := all[i]
		count := c.catalogued("bought")
		c.b("/events", h.key).http(202).eq("success", true)
		if n := c.catalogued("bought"); n != count {
			t.Errorf("company %d: the retry of an event counts: %d, then %d", i, count, n)
		}
		if id := c.event("bought", obj{"external_id": "u0"}, nil); id != h.profile {
			t.Errorf("company %d: profile %s is %s now", i, h.profile, id)
		}
		if n := c.catalogued("bought"); n != count+1 {
			t.Errorf("company %d: %d events, then %d", i, count, n)
		}
		// Of this company or another one, in the same partition or not.
		for _, other := range checks {
			other.a("POST", "/contacts", obj{"email": strings.ToUpper(h.email)}).failure("Contact with this email already exists")
		}
		fresh := c.segment(obj{"kind": "activity", "event": "bought", "window": obj{"last_days": 30}, "count": obj{"op": ">=", "value": 2}, "where": []any{}})
		if a, b := c.members(fresh), c.members(h.segment); !slices.Equal(a, b) {
			t.Errorf("company %d: a segment built again has %d members, one from before %d", i, len(a), len(b))
		}
	}
	waking.until("who slept in a flow wakes", func() bool {
		return waking.ways(soon, sleeper).http(200).str("data.enrolments.0.status") != "in_progress"
	})
	waking.wants(waking.through(soon, sleeper), "w done", "t done")
	w.server.kill()
	// A node with nothing but the address of the checkpoints.
	fresh := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(fresh, "credentials.json"), credentials, 0o600))
	w.server = serve(t, fresh, more...)
	if id := checks[1].event("bought", obj{"external_id": "u0"}, nil); id != all[1].profile {
		t.Errorf("on another node profile %s is %s", all[1].profile, id)
	}
	w.server.stop()
}

// TestMigrateRefuses: what cannot be moved is left as it is, and the remedy named.
func TestMigrateRefuses(t *testing.T) {
	t.Parallel()
	remote := kafkaArgs(t)
	dir := t.TempDir()
	s := serve(t, dir)
	profile := ""
	for range 20 {
		profile = s.event(`{"event_type":"seen","user":{"external_id":"a"}}`)
	}
	refused := func(what, want string, args ...string) {
		t.Helper()
		code, out, errs := muster(t, "", append([]string{"migrate"}, args...)...)
		if code == exitOK || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s%s", what, code, out, errs)
		}
	}
	to := filepath.Join(t.TempDir(), "new")
	args := migrateArgs(dir, to, remote)
	refused("a directory that is served", "stop it first", args...)
	s.stop()
	refused("nowhere", "--kafka BROKERS", "--data", dir)
	refused("no place for the state", "--to DIR", append([]string{"--data", filepath.Join(dir, "data")}, remote...)...)
	refused("no directory", "no data directory", migrateArgs(t.TempDir(), to, remote)...)
	refused("the same directory", "another directory than --data", append([]string{"--data", filepath.Join(dir, "data"), "--to", filepath.Join(dir, "data", ".")}, remote...)...)
	full := t.TempDir()
	ok(t, os.Mkdir(filepath.Join(full, "data"), 0o700))
	ok(t, os.WriteFile(filepath.Join(full, "data", "x"), nil, 0o600))
	refused("a directory in use", "is not empty", migrateArgs(dir, full, kafkaArgs(t))...)

	// Another installation's topic, and its database.
	others, other := t.TempDir(), kafkaArgs(t)
	o := serve(t, others, append(other, "--kafka-session-timeout", "6s")...)
	o.stop()
	refused("a topic with records", "new topic", migrateArgs(dir, to, other)...)
	refused("a database of another", "belongs to another", migrateArgs(dir, to, append(slices.Clone(remote[:4]), other[4:]...))...)
	refused("a directory of a log in Kafka", "log of its own", migrateArgs(others, to, remote)...)

	// A log that is damaged.
	broken := t.TempDir()
	ok(t, os.CopyFS(filepath.Join(broken, "data"), os.DirFS(filepath.Join(dir, "data"))))
	files, err := filepath.Glob(filepath.Join(broken, "data", "log", "*", "*"))
	ok(t, err)
	damaged := false
	for _, f := range files {
		b, err := os.ReadFile(f)
		ok(t, err)
		// In the first event, far from the end.
		if at := bytes.Index(b, []byte("seen")); at > 0 {
			b[at] ^= 0x55
			ok(t, os.WriteFile(f, b, 0o600))
			damaged = true
		}
	}
	if !damaged {
		t.Fatalf("nothing to damage in %q", files)
	}
	refused("a damaged log", "damaged", migrateArgs(broken, to, kafkaArgs(t))...)

	// None of that has done any harm. One that was begun and is served again is of
	// no use.
	if !cutOff(t, "history:", args...) {
		t.Error("it ended without a word of history")
	}
	s = serve(t, dir)
	if id := s.event(`{"event_type":"seen","user":{"external_id":"a"}}`); id != profile {
		t.Errorf("profile %s is %s", profile, id)
	}
	s.stop()
	refused("a directory that was served meanwhile", "was served since", args...)
	refused("another place", "was being moved elsewhere", migrateArgs(dir, to, kafkaArgs(t))...)
	ok(t, os.Remove(filepath.Join(dir, "data", "migration.json")))
	args = migrateArgs(dir, filepath.Join(t.TempDir(), "newer"), kafkaArgs(t))
	if code, out, errs := muster(t, "", append([]string{"migrate"}, args...)...); code != exitOK {
		t.Fatalf("migrate: %d %s%s", code, out, errs)
	}
}
