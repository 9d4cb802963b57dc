package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
)

// person is somebody whose every detail occurs nowhere else.
type erasedPerson struct{ tag string }

func (p erasedPerson) email() string { return p.tag + "-mail@people.example" }
func (p erasedPerson) user(with ...string) obj {
	u := obj{"first_name": p.tag + "-Firstname", "last_name": p.tag + "-Lastname", "attributes": obj{p.tag + "_attribute": p.tag + "-attributevalue", "city": p.tag + "-city"}}
	for _, w := range with {
		u[w] = map[string]string{"email": p.email(), "external_id": p.tag + "-id", "phone": "+49 30 7" + p.digits()}[w]
	}
	return u
}
func (p erasedPerson) digits() string {
	return strings.Repeat(fmt.Sprint(len(p.tag)%10), 3) + "5551234"
}
func (p erasedPerson) properties() obj {
	return obj{p.tag + "_property": p.tag + "-propertyvalue", "url": "https://shop.example/" + p.tag}
}

// holds lists the files below a directory that hold a text in any letter case.
func holds(t *testing.T, dir, text string) (in []string) {
	t.Helper()
	ok(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // removed meanwhile
		}
		b, err := os.ReadFile(path)
		if err == nil && bytes.Contains(bytes.ToLower(b), bytes.ToLower([]byte(text))) {
			in = append(in, strings.TrimPrefix(path, dir))
		}
		return nil
	}))
	return in
}

// restart ends the server and starts it on the same files; between is called while it
// is down.
func (w *world) restart(t *testing.T, args []string, between func()) {
	t.Helper()
	w.server.stop()
	between()
	w.again(t, args)
}

// again starts the server on the files that are there.
func (w *world) again(t *testing.T, args []string) {
	t.Helper()
	w.server = serveWith(t, w.dir, w.trust, append(slices.Clone(args), "--smtp", w.relay.addr, "--smtp-tls", "none", "--allow-private-webhooks")...)
	w.admin = w.signIn(t, w.server.creds.ConsoleEmail, w.server.creds.ConsolePassword)
}

// TestErasedPersonIsInNoFile: whatever way a person came in, after the erasure no file
// of the data directory has anything of it, nor a backup; neither has one after the
// person was sent again and refused. With state and history removed everything else
// comes back as it was.
func TestErasedPersonIsInNoFile(t *testing.T) {
	t.Parallel()
	args := []string{"--checkpoint-interval", "1s"}
	w := newWorld(t, args)
	c := (&check{T: t, world: w}).first()
	data := filepath.Join(w.dir, "data")
	slow := obj{"url": c.remote.plain.URL + "/refused", "events": []string{"*"}}
	w.remote.mu.Lock()
	w.remote.fails["/refused"] = 1_000_000 // so that what is told waits, and dies
	w.remote.mu.Unlock()
	c.console("POST", "/webhooks", slow).http(200)

	// The others, among them some who had to do with the erased.
	var others []string
	for i := range 40 {
		e := fmt.Sprintf("other%d@people.example", i)
		id := c.event("bought", obj{"email": e, "external_id": fmt.Sprint("other-", i), "first_name": "Other", "attributes": obj{"plan": []string{"pro", "free"}[i%2]}}, obj{"value": i})
		others = append(others, id)
	}
	segment := c.segment(obj{"kind": "activity", "event": "bought", "count": obj{"op": ">=", "value": 1}})

	persons := map[string]erasedPerson{}
	ids := map[string]string{}
	for _, path := range []string{"event", "merge", "campaign", "webhook", "contact", "import", "upload"} {
		persons[path] = erasedPerson{"zq" + path + "zq"}
	}
	for path, p := range persons {
		switch path {
		case "merge":
			c.event("seen", p.user("email"), p.properties())
			c.event("seen", p.user("external_id"), p.properties())
			ids[path] = c.event("seen", p.user("email", "external_id", "phone"), p.properties())
		case "campaign":
			ids[path] = c.contact(obj{"email": p.email(), "first_name": p.tag + "-Firstname"})
			id := c.campaign(obj{"subject": "For {{first_name}}", "body": `<p>Dear {{first_name}} <a href="https://shop.example/a">A</a></p>`})
			c.send(id, c.list(p.email(), "other1@people.example")).success()
			l := c.links(p.email())
			c.fetch(l.pixel)
			c.fetch(l.clicks[0])
		case "contact":
			ids[path] = c.contact(obj{"email": p.email(), "first_name": p.tag + "-Firstname", "last_name": p.tag + "-Lastname"})
			c.console("PATCH", "/profiles/"+ids[path], obj{"first_name": p.tag + "-Secondname", "attributes": obj{"x": p.tag + "-attributevalue"}})
			c.event("seen", p.user("email"), p.properties())
		case "import":
			events := []obj{{"event_type": "seen", "timestamp": "2026-01-02T03:04:05Z", "user": obj{"email": "other2@people.example"}},
				{"event_type": "seen", "timestamp": "2026-01-02T03:04:05Z", "user": p.user("email"), "properties": p.properties()}}
			c.b("/events/batch", obj{"events": events}).http(202)
			ids[path] = c.event("seen", p.user("email"), p.properties())
		case "upload":
			// Imported, with a row that is refused and kept with its reason; complete and
			// not started; and not complete.
			c.uploadPerson(p)
			ids[path] = c.event("seen", p.user("email"), p.properties())
		default:
			ids[path] = c.event("seen", p.user("email", "external_id"), p.properties())
			for i := range 50 {
				c.event("seen", p.user("email"), obj{"n": i, "text": p.tag + "-text"})
			}
		}
	}
	for path, p := range persons {
		if len(holds(t, data, p.tag)) == 0 {
			t.Fatalf("%s: the test does not find what is stored", path)
		}
		if path == "campaign" {
			c.a("DELETE", "/contacts/"+ids[path], nil).success()
		} else {
			c.console("DELETE", "/profiles/"+ids[path], nil).http(200)
		}
	}
	// Wherever it is broken off, it is taken up again.
	for i := range 4 {
		time.Sleep(time.Duration(i) * 60 * time.Millisecond) // not to wait for: to be somewhere else in it
		w.server.kill()
		w.again(t, args)
	}
	c = (&check{T: t, world: w}).first()
	nobody := func(when, dir string) {
		t.Helper()
		for path, p := range persons {
			for _, in := range holds(t, dir, p.tag) {
				t.Errorf("%s, %s: %s has it", when, path, in)
			}
		}
	}
	c.until("the files are rid of them", func() bool {
		for _, p := range persons {
			if len(holds(t, data, p.tag)) > 0 {
				return false
			}
		}
		return true
	})

	// Who is erased and comes again is refused, and in no file.
	for _, p := range persons {
		c.b("/events", obj{"event_type": "seen", "user": p.user("email"), "properties": p.properties()}).http(202).eq("success", false)
		c.b("/events/batch", obj{"events": []obj{{"event_type": "seen", "user": obj{"email": "other3@people.example"}}, {"event_type": "seen", "user": p.user("email"), "properties": p.properties()}}}).http(202)
		c.a("POST", "/contacts", obj{"email": p.email(), "first_name": p.tag + "-Firstname"})
	}
	nobody("refused", data)

	type picture map[string]string
	look := func() picture {
		out := picture{}
		for _, id := range others {
			for _, part := range []string{"", "/events?limit=100"} {
				a := c.console("GET", "/profiles/"+id+part, nil).http(200)
				delete(a.body.(obj)["data"].(obj), "as_of")
				b, err := json.Marshal(a.body)
				ok(t, err)
				out[id+part] = string(b)
			}
		}
		out["segment"] = fmt.Sprint(c.members(segment))
		return out
	}
	before := look()
	store := t.TempDir()
	w.restart(t, args, func() {
		nobody("stopped", data)
		if code, out, errs := muster(t, "", "backup", "--data", data, "--to", "file://"+filepath.ToSlash(store)); code != 0 {
			t.Fatalf("%d %s %s", code, out, errs)
		}
		nobody("backup", store)
		ok(t, os.RemoveAll(filepath.Join(data, "state")))
		found, err := filepath.Glob(filepath.Join(data, "history.duckdb*"))
		ok(t, err)
		for _, name := range found {
			ok(t, os.RemoveAll(name))
		}
	})
	c = (&check{T: t, world: w}).first()
	last := ""
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(last)
		}
	})
	c.until("everything is back", func() bool {
		after := look()
		for k, v := range before {
			if after[k] != v {
				last = fmt.Sprintf("%s was\n%s\nand is\n%s", k, v, after[k])
				return false
			}
		}
		return true
	})
	nobody("rebuilt", data)
	for path, id := range ids {
		if c.console("GET", "/profiles/"+id, nil).status != 404 {
			t.Errorf("%s is back", path)
		}
	}
}

// uploadPerson uploads files that have the person: one that is imported, of which rows are
// refused, one that is not started, and one that is not complete.
func (c *check) uploadPerson(p erasedPerson) {
	c.Helper()
	s := c.server
	row := func(at string) string {
		return fmt.Sprintf("%s,seen,%s,%s-note,\"%s-cell, of\ntwo lines\"\n", p.email(), at, p.tag, p.tag)
	}
	header := "email,event,timestamp,note,text\n"
	others := strings.Repeat("other4@people.example,seen,2026-01-02T03:04:05Z,a note,\n", 3)
	x := s.upload(api.ImportEvents, header+others+row("2026-01-02T03:04:05Z")+row(p.tag+"-never")+others)
	s.console("POST", "/imports/"+x.ID+"/start", `{}`, nil)
	if x = s.untilImport(x.ID, func(x api.Import) bool { return x.EndedAt != nil }); x.Refused == 0 || x.Taken == 0 {
		c.Fatalf("%+v", x)
	}
	s.upload(api.ImportEvents, header+others+row("2026-01-03T03:04:05Z"))
	body, err := json.Marshal(api.ImportFile{Name: "part.csv", Kind: api.ImportEvents, Text: header + row("2026-01-04T03:04:05Z") + others, More: true})
	ok(c.T, err)
	s.console("POST", "/imports", string(body), nil)
}

// TestStopFinishesErasures: a stop right after an erasure ends when the person's data is
// in no file any more, which otherwise would wait for the next start.
func TestStopFinishesErasures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, "--drain-timeout", "1m")
	p := erasedPerson{"stopped"}
	event := func(user, properties obj) string {
		b, err := json.Marshal(obj{"event_type": "seen", "user": user, "properties": properties})
		ok(t, err)
		return s.event(string(b))
	}
	id := event(p.user("email", "external_id"), p.properties())
	for i := range 20 {
		event(obj{"email": fmt.Sprintf("other%d@x.io", i)}, obj{"n": i})
	}
	data := filepath.Join(dir, "data")
	if len(holds(t, data, p.tag)) == 0 {
		t.Fatal("nothing is to be erased")
	}
	s.console("DELETE", "/profiles/"+id, "", nil)
	s.stop()
	if in := holds(t, data, p.tag); len(in) > 0 {
		t.Errorf("after the stop the person is in %v\n%s", in, s.log())
	}
	if strings.Contains(s.log(), "erasures are not out of all files yet") {
		t.Errorf("%s", s.log())
	}
	s = serve(t, dir)
	if n := s.events("seen"); n != 21 && n != 20 {
		t.Errorf("%d events", n)
	}
	s.stop()
}
