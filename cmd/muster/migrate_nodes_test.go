package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/api"
)

// moved is what is asked of a tenant, before a move and after.
type moved struct {
	*tenant
	segment, profile, merged string
	key                      string // an event that was sent, with its idempotency key
	paths                    []string
}

// fill gives a tenant of a server something to be moved.
func (c *nodes) fill(x *tenant) *moved {
	s := c.as(0, x)
	s.token = ""
	m := &moved{tenant: x}
	var made struct {
		ID string `json:"_id"`
	}
	s.console("POST", "/segments", `{"name":"twice","definition":{"kind":"activity","event":"bought","window":{"last_days":30},"count":{"op":">=","value":2}}}`, &made)
	x.token, m.segment = s.token, made.ID
	for n := range 20 {
		id := s.event(fmt.Sprintf(`{"event_type":"bought","user":{"external_id":"u%d","email":"u%d.%d@x.io"},"properties":{"value":%d}}`, n%7, n%7, x.partition, n))
		if n == 0 {
			m.profile = id
		}
	}
	s.event(`{"event_type":"seen","user":{"external_id":"also u3"}}`)
	m.merged = s.event(fmt.Sprintf(`{"event_type":"seen","user":{"external_id":"also u3","email":"u3.%d@x.io"}}`, x.partition))
	m.key = `{"event_type":"bought","user":{"external_id":"u1"},"idempotency_key":"once"}`
	s.event(m.key)
	var contact struct{ Status, Message string }
	if s.call("POST", "/api/v1/contacts", fmt.Sprintf(`{"email":"contact%d@x.io","first_name":"C"}`, x.partition), &contact, "Authorization", "Bearer "+x.APIKey); contact.Status != "success" {
		c.t.Fatalf("a contact: %s", contact.Message)
	}
	s.untilLive(m.segment)
	m.paths = []string{
		"/segments", "/segments/" + m.segment, "/segments/" + m.segment + "/members", "/catalog", "/profiles/" + m.profile, "/profiles/" + m.profile + "/events?limit=100",
		"/profiles/" + m.merged, "/profiles?external_id=u4", "/settings", "/users", "/export/events", "/export/profiles", "key /contacts?limit=100", "key /lists", "key /analytics/overview",
	}
	return m
}

// tell is what a node answers to all that is asked of a tenant.
func (c *nodes) tell(i int, m *moved) facts {
	out := facts{}
	for _, p := range m.paths {
		path, token := api.Prefix+p, m.token
		if rest, ok := strings.CutPrefix(p, "key "); ok {
			path, token = "/api/v1"+rest, m.APIKey
		}
		lines := strings.Split(ofTheMoment.ReplaceAllString(c.all[i].get("GET", path, "", "Authorization", "Bearer "+token), ""), "\n")
		slices.Sort(lines) // of an export, whose order is not promised
		out[p] = strings.Join(lines, "\n")
	}
	return out
}

// TestMigratedToNodes (L1, L2, R1): a directory in files is moved to three partitions,
// and three nodes serve it, two of them with nothing but the shared checkpoints. Each
// answers for each company as the directory did, also after the owner of a partition
// was stopped.
func TestMigratedToNodes(t *testing.T) {
	t.Parallel()
	remote := kafkaArgs(t)
	dir := t.TempDir()
	alone := &nodes{t: t, dirs: []string{dir}, all: []*server{serve(t, dir, "--public-url", "http://muster.test")}}
	tenants := alone.tenants(alone.all[0])
	var all []*moved
	var before []facts
	for _, x := range tenants {
		all = append(all, alone.fill(x))
	}
	for _, m := range all {
		before = append(before, alone.tell(0, m))
	}
	alone.all[0].stop()

	shared := "file://" + t.TempDir()
	c := &nodes{t: t, args: slices.Concat(remote, []string{"--checkpoints", shared, "--kafka-session-timeout", "6s", "--cluster-secret", clusterSecret,
		"--checkpoint-interval", "2s", "--cache-bytes", "16MiB", "--public-url", "http://muster.test"})}
	c.dirs = []string{t.TempDir(), t.TempDir(), t.TempDir()}
	args := migrateArgs(dir, c.dirs[0], remote, "--kafka-partitions", fmt.Sprint(clusterPartitions), "--checkpoints", shared)
	if code, out, errs := muster(t, "", append([]string{"migrate"}, args...)...); code != exitOK {
		t.Fatalf("migrate: %d %s%s", code, out, errs)
	}
	for _, d := range c.dirs {
		c.all = append(c.all, launch(t, d, c.args...))
	}
	for _, s := range c.all {
		s.untilReady()
	}
	c.untilSpread(1, 0, 1, 2)
	for i := range c.all {
		if _, err := os.Stat(filepath.Join(c.dirs[i], "credentials.json")); err == nil {
			t.Errorf("node %d made a company, where there are some", i)
		}
	}
	same := func(when string, through ...int) {
		t.Helper()
		for n, m := range all {
			for _, i := range through {
				have := c.tell(i, m)
				for what, want := range before[n] {
					if have[what] != want {
						t.Errorf("%s, partition %d through node %d: %s\nis  %.1000s\nwas %.1000s", when, m.partition, i, what, have[what], want)
					}
				}
			}
		}
	}
	same("on three nodes", 0, 1, 2)

	victim := c.owner(1)
	if victim < 0 {
		t.Fatal("no node owns a partition")
	}
	left := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == victim })
	c.all[victim].stop()
	same("after the owner was stopped", left...)

	// What comes now is added to what was there.
	for _, m := range all {
		for k, i := range left {
			s := c.as(i, m.tenant)
			s.event(m.key) // counts no more
			if id := s.event(`{"event_type":"bought","user":{"external_id":"u0"}}`); id != m.profile {
				t.Errorf("partition %d through node %d: profile %s is %s", m.partition, i, m.profile, id)
			}
			if n := s.events("bought"); n != 21+k+1 {
				t.Errorf("partition %d through node %d: %d events, want %d", m.partition, i, n, 21+k+1)
			}
			var refused struct{ Status, Message string }
			for _, other := range all {
				s.call("POST", "/api/v1/contacts", fmt.Sprintf(`{"email":"CONTACT%d@x.io","first_name":"C"}`, other.partition), &refused, "Authorization", "Bearer "+m.APIKey)
				if refused.Status != "failure" || !strings.Contains(refused.Message, "already exists") {
					t.Errorf("partition %d through node %d: the e-mail of a contact of partition %d is taken: %+v", m.partition, i, other.partition, refused)
				}
			}
		}
	}
	if t.Failed() {
		t.Log(c.logs())
	}
	for _, i := range left {
		c.all[i].stop()
	}
}
