package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

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
	testlevel.SkipQuick(t, "stores and erases persons by every way")
	t.Parallel()
	args := []string{"--checkpoint-interval", "1s"}
	w := newWorld(t, args)
	c := (&check{T: t, world: w}).first()
	data := filepath.Join(w.dir, "data")
	slow := obj{"url": c.remote.plain.URL + "/refused", "events": []string{"*"}}
	w.remote.mu.Lock()
	w.remote.fails["/refused"] = 1_000_000 // so that deliveries wait, and become dead letters
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

	e := newEraser(c)
	persons := map[string]erasedPerson{}
	ids := map[string]string{}
	for _, path := range erasedPaths {
		p := erasedPerson{"zq" + path.name + "zq"}
		persons[path.name] = p
		path.come(e, p)
		ids[path.name] = e.event("seen", p.user("email"), p.properties())
	}
	e.untilShown(data, erasedPaths, persons)
	w.restart(t, args, func() { mustHold(t, readStopped(t, data), erasedPaths, persons) })
	c = (&check{T: t, world: w}).first()
	for path, id := range ids {
		if path == "campaigns" {
			c.a("DELETE", "/contacts/"+id, nil).success()
		} else {
			c.console("DELETE", "/profiles/"+id, nil).http(200)
		}
	}
	// Wherever it is broken off, it is taken up again.
	for i := range 4 {
		time.Sleep(time.Duration(i) * 60 * time.Millisecond) // not to wait for: to be somewhere else in it
		w.server.kill()
		w.again(t, args)
	}
	c = (&check{T: t, world: w}).first()
	without := func(when string, files files) {
		t.Helper()
		mustNotHold(t, when, files, persons)
	}
	untilRid(t, data, persons)

	// An erased person that comes again is refused, and in no file.
	for _, p := range persons {
		c.b("/events", obj{"event_type": "seen", "user": p.user("email"), "properties": p.properties()}).http(202).eq("success", false)
		c.b("/events/batch", obj{"events": []obj{{"event_type": "seen", "user": obj{"email": "other3@people.example"}}, {"event_type": "seen", "user": p.user("email"), "properties": p.properties()}}}).http(202)
		c.a("POST", "/contacts", obj{"email": p.email(), "first_name": p.tag + "-Firstname"})
	}
	without("refused", readFiles(t, data))

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
		without("stopped", readStopped(t, data))
		if code, out, errs := muster(t, "", "check", "--data", data, "--deep", "--temp", t.TempDir()); code != 0 {
			t.Errorf("check --deep after the erasures: %d\n%s%s", code, out, errs)
		}
		if code, out, errs := muster(t, "", "backup", "--data", data, "--to", "file://"+filepath.ToSlash(store)); code != 0 {
			t.Fatalf("%d %s %s", code, out, errs)
		}
		without("backup", readStopped(t, store))
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
	without("rebuilt", readFiles(t, data))
	for path, id := range ids {
		if c.console("GET", "/profiles/"+id, nil).status != 404 {
			t.Errorf("%s is back", path)
		}
	}
}

// TestAnswerAfterErasureIsInNoFile: relays and providers answer when the person whom they repeat
// is erased already; no file has anything of their answers.
func TestAnswerAfterErasureIsInNoFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, []string{"--checkpoint-interval", "1s"})
	e := newEraser((&check{T: t, world: w}).first())
	persons := map[string]erasedPerson{}
	for _, path := range latePaths {
		p := erasedPerson{"zq" + path.name + "zq"}
		persons[path.name] = p
		path.come(e, p)
	}
	const answers = 12
	e.until("the answers are awaited", func() bool { return e.providers.held() == answers })
	for _, p := range persons {
		e.console("DELETE", "/profiles/"+e.profile(p), nil).http(200)
	}
	data := filepath.Join(w.dir, "data")
	untilRid(t, data, persons)
	e.providers.tell()
	e.underWay.Wait()
	w.server.stop()
	mustNotHold(t, "answered", readStopped(t, data), persons)
	if code, out, errs := muster(t, "", "check", "--data", data, "--deep", "--temp", t.TempDir()); code != 0 {
		t.Errorf("check --deep: %d\n%s%s", code, out, errs)
	}
}

// untilShown waits until all that the ways bring is in the files.
func (e *eraser) untilShown(data string, paths []erasedPath, persons map[string]erasedPerson) {
	e.Helper()
	missing := []string{"all"}
	// Not package eventually, which ends the test: what is missing is one of its findings.
	// Each look reads all files, so that there is a pause between two.
	for end := time.Now().Add(eventually.Limit); len(missing) > 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		missing = nil
		files := readFiles(e.T, data)
		for _, path := range paths {
			if path.shows == nil {
				continue
			}
			for _, text := range path.shows(persons[path.name]) {
				if len(files.with(text)) == 0 {
					missing = append(missing, path.name+": "+text)
				}
			}
		}
	}
	if len(missing) > 0 {
		e.Errorf("not in the files: %q", missing)
	}
}

// mustHold checks that a search finds every person: as bytes, in tables of state, and in history.
func mustHold(t *testing.T, files files, paths []erasedPath, persons map[string]erasedPerson) {
	t.Helper()
	for _, path := range paths {
		kinds := map[string]bool{}
		for _, in := range files.with(persons[path.name].texts()...) {
			kinds[strings.SplitN(strings.TrimPrefix(in, "/"), "/", 2)[0]] = true
		}
		for _, kind := range []string{"log", "state", "history.duckdb (read)"} {
			if !kinds[kind] {
				t.Errorf("%s: the search does not find what %s has", path.name, kind)
			}
		}
	}
}

// untilRid waits until a search of the files finds none of the persons. If it still finds one
// in the end, the test fails with the place.
func untilRid(t *testing.T, data string, persons map[string]erasedPerson) {
	t.Helper()
	defer func() {
		if t.Failed() {
			mustNotHold(t, "in the end", readFiles(t, data), persons)
		}
	}()
	eventually.Holds(t, "the files are rid of the erased persons", func() bool { return !anyIn(readFiles(t, data), persons) })
}

// anyIn reports whether a search finds any of the persons.
func anyIn(files files, persons map[string]erasedPerson) bool {
	for _, p := range persons {
		if len(files.with(p.texts()...)) > 0 {
			return true
		}
	}
	return false
}

// mustNotHold checks that a search finds none of the persons.
func mustNotHold(t *testing.T, when string, files files, persons map[string]erasedPerson) {
	t.Helper()
	for path, p := range persons {
		for _, in := range files.with(p.texts()...) {
			t.Errorf("%s, %s: %s has it: %s", when, path, in, files.around(in, p.texts()...))
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
	testlevel.SkipQuick(t, "starts several servers")
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
