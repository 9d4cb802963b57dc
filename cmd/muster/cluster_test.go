package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver"
)

// clusterPartitions is one for each of three nodes.
const clusterPartitions = 3

// nodes are servers that share a topic and a database.
type nodes struct {
	t    *testing.T
	args []string
	run  func(*exec.Cmd)
	dirs []string
	all  []*server
}

const clusterSecret = "a secret of the tests of clusters"

// newNodes starts nodes at once, with empty directories and a partition for each. run has the
// last word on how the command is run.
func newNodes(t *testing.T, count int, run func(*exec.Cmd), args ...string) *nodes {
	t.Helper()
	c := &nodes{t: t, run: run, args: append(kafkaArgs(t), "--kafka-partitions", fmt.Sprint(count), "--kafka-session-timeout", "6s",
		"--cluster-secret", clusterSecret, "--checkpoint-interval", "2s", "--cache-bytes", "16MiB", "--log-level", "info")}
	c.args = append(c.args, args...)
	for range count {
		c.dirs = append(c.dirs, t.TempDir())
		c.all = append(c.all, launchWith(t, c.dirs[len(c.dirs)-1], run, c.args...))
	}
	for _, s := range c.all {
		s.untilReady()
	}
	return c
}

// logs are those of all nodes.
func (c *nodes) logs() (out string) {
	for i, s := range c.all {
		out += fmt.Sprintf("node %d:\n%s", i, s.log())
	}
	return out
}

// owner is the place of the node that has a partition, -1 where no node or more
// than one says so: a frozen node takes itself for the owner until it reads of the
// new one.
func (c *nodes) owner(partition int) int {
	owner := -1
	for i, s := range c.all {
		switch {
		case !s.Running() || !s.holding().has[partition]:
		case owner >= 0:
			return -1
		default:
			owner = i
		}
	}
	return owner
}

// holding is what a node says about its place in the cluster.
type holding struct {
	// generation is the group's when the node was given its partitions, -1 where
	// it does not answer or is no member.
	generation int
	// has are the partitions that it serves.
	has map[int]bool
}

var (
	appliedMetric = regexp.MustCompile(`(?m)^muster_applied_offset\{partition="(\d+)"\}`)
	generationOf  = regexp.MustCompile(`(?m)^muster_cluster_generation (\d+)$`)
)

func (s *server) holding() holding {
	text := s.metrics()
	h := holding{generation: -1, has: map[int]bool{}}
	for _, m := range appliedMetric.FindAllStringSubmatch(text, -1) {
		p, err := strconv.Atoi(m[1])
		ok(s.t, err)
		h.has[p] = true
	}
	if m := generationOf.FindStringSubmatch(text); m != nil && strings.Contains(text, "\nmuster_cluster_member 1\n") {
		var err error
		h.generation, err = strconv.Atoi(m[1])
		ok(s.t, err)
	}
	return h
}

func (s *server) metrics() string {
	client := http.Client{Timeout: 5 * time.Second}
	res, err := client.Get(s.origin + "/metrics")
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return string(b)
}

// untilSpread waits until each of some nodes has a number of partitions, in the
// same generation of the group, and no other has them too.
func (c *nodes) untilSpread(each int, among ...int) (generation int) {
	c.t.Helper()
	eventually.Succeeds(c.t, func() error {
		var all []holding
		even := true
		had := map[int]bool{}
		for _, i := range among {
			h := c.all[i].holding()
			all = append(all, h)
			even = even && len(h.has) == each && h.generation >= 0 && h.generation == all[0].generation
			maps.Copy(had, h.has)
		}
		if !even || len(had) != each*len(among) {
			return fmt.Errorf("the nodes %v are %+v, want %d partitions for each\n%s", among, all, each, c.logs())
		}
		generation = all[0].generation
		return nil
	})
	return generation
}

// tenant is a company in one of the partitions.
type tenant struct {
	partition int
	api.Credentials
	token string
}

// tenants makes companies through all nodes in turn, until each partition has one.
func (c *nodes) tenants(admin *server) (out [clusterPartitions]*tenant) {
	c.t.Helper()
	missing := clusterPartitions
	for i := 0; missing > 0; i++ {
		if i > 60 {
			c.t.Fatalf("60 companies, and none in some partition: %v", out)
		}
		x := c.all[i%len(c.all)].as(admin.creds, admin.token)
		var made struct {
			api.Credentials
			ID string `json:"_id"`
		}
		x.console("POST", "/companies", fmt.Sprintf(`{"name":"c%d","email":"owner%d@x.io"}`, i, i), &made)
		x.console("PATCH", "/companies/"+made.ID, `{"api_access":true}`, nil)
		account, isID := resolver.ParseAppID([]byte(made.AppID))
		if !isID {
			c.t.Fatalf("app id %q", made.AppID)
		}
		if p := account % clusterPartitions; out[p] == nil {
			out[p] = &tenant{partition: int(p), Credentials: made.Credentials}
			missing--
		}
	}
	return out
}

// as is the node at a place, for requests of a tenant.
func (c *nodes) as(i int, x *tenant) *server {
	return c.all[i].as(x.Credentials, x.token)
}

// as is the same server with other credentials.
func (s *server) as(creds api.Credentials, token string) *server {
	return &server{t: s.t, Server: s.Server, origin: s.origin, creds: creds, token: token}
}

// get asks a node and returns what it answers.
func (s *server) get(method, path, body string, headers ...string) string {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.origin+path, strings.NewReader(body))
	ok(s.t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	ok(s.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ok(s.t, err)
	return fmt.Sprint(res.StatusCode, " ", res.Header.Get("Content-Type"), " ", res.Header.Get("WWW-Authenticate"), " ", string(b))
}

// TestNodes follows three nodes from an empty log through a killed owner, its
// return and a stop (L1, L2).
func TestNodes(t *testing.T) {
	t.Parallel()
	c := newNodes(t, clusterPartitions, plainly)
	c.untilSpread(1, 0, 1, 2)
	admin := c.firstCompany()
	tenants := c.tenants(admin)
	t.Run("requests", func(t *testing.T) { c.testRequests(t, admin, tenants[:]) })
	t.Run("tracking", func(t *testing.T) { c.testTracking(t, tenants[:]) })
	t.Run("strangers", func(t *testing.T) { c.testStrangers(t) })
	t.Run("changes", func(t *testing.T) { c.testChanges(t, tenants[:]) })
	t.Run("schedule", func(t *testing.T) { c.testSchedule(t, tenants[:]) })
	t.Run("woken", func(t *testing.T) { c.testWoken(t, tenants[:]) })
	for _, s := range c.all {
		if s.Running() {
			s.stop()
		}
	}
}

// firstCompany is the one that was made: by one node, in the first partition.
func (c *nodes) firstCompany() *server {
	c.t.Helper()
	var made []*server
	for i, s := range c.all {
		creds, err := api.LoadCredentials(filepath.Join(c.dirs[i], "credentials.json"))
		if err == nil {
			s.creds = creds
			made = append(made, s)
		}
	}
	if len(made) != 1 {
		c.t.Fatalf("%d nodes made a company\n%s", len(made), c.logs())
	}
	if account, _ := resolver.ParseAppID([]byte(made[0].creds.AppID)); account%uint64(len(c.all)) != 0 {
		c.t.Errorf("the first company is of partition %d", account%uint64(len(c.all)))
	}
	made[0].console("GET", "/companies", "", nil) // signs in
	return made[0]
}

// testRequests: each kind of request, through each node, is answered alike.
func (c *nodes) testRequests(t *testing.T, admin *server, tenants []*tenant) {
	for n, x := range tenants {
		for i := range c.all { // each node takes everything for each account
			s := c.as(i, x)
			s.token = ""
			if id := s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"p%d@x.io"},"properties":{"n":%d}}`, i, n)); id == "" {
				t.Errorf("an event through node %d has no profile", i)
			}
			var batch struct {
				Accepted int `json:"accepted"`
			}
			status := s.call("POST", "/api/v1/events/batch", `{"events":[{"event_type":"seen","user":{"email":"q@x.io"}},{"event_type":"seen","user":{"email":"r@x.io"}}]}`, &batch,
				"X-App-Id", x.AppID, "X-App-Secret", x.AppSecret)
			if status != 202 || batch.Accepted != 2 {
				t.Errorf("a batch through node %d: %d %+v", i, status, batch)
			}
			s.console("GET", "/session", "", nil) // signs in, through this node
			x.token = s.token
			var seg struct {
				ID string `json:"_id"`
			}
			s.console("POST", "/segments", fmt.Sprintf(`{"name":"s%d","definition":{"kind":"activity","event":"seen"}}`, i), &seg)
			s.untilLive(seg.ID)
			// Acknowledged through one node, read through the next.
			s = c.as((i+1)%len(c.all), x)
			var read struct{ Count int }
			if s.console("GET", "/segments/"+seg.ID, "", &read); read.Count != 2+i+1 {
				t.Errorf("a segment counts %d through node %d, want %d", read.Count, i, 3+i)
			}
			var contact struct{ Status, Message string }
			s.call("POST", "/api/v1/contacts", fmt.Sprintf(`{"email":"c%d-%d@x.io","first_name":"C"}`, n, i), &contact, "Authorization", "Bearer "+x.APIKey)
			if contact.Status != "success" {
				t.Errorf("a contact through node %d: %s", i, contact.Message)
			}
		}
		c.testAlike(t, x)
		c.testStream(t, x)
	}
	// An e-mail is one contact's among all companies, wherever they are.
	for i := range c.all {
		var refused struct{ Status, Message string }
		c.all[i].call("POST", "/api/v1/contacts", `{"email":"c1-0@x.io","first_name":"C"}`, &refused, "Authorization", "Bearer "+tenants[(1+i)%clusterPartitions].APIKey)
		if refused.Status != "failure" {
			t.Errorf("an e-mail that another contact has, through node %d: %+v", i, refused)
		}
	}
	// Companies are gathered from all nodes; so are users.
	var want []string
	for i := range c.all {
		s := c.all[i].as(admin.creds, admin.token)
		var have []string
		cursor := ""
		for {
			var page struct {
				Data []struct {
					AccountID string `json:"account_id"`
				}
				Next string
			}
			ok(t, json.Unmarshal([]byte(strings.SplitN(s.get("GET", api.Prefix+"/companies?limit=2&cursor="+cursor, "", "Authorization", "Bearer "+s.token), "  ", 2)[1]), &page))
			for _, x := range page.Data {
				have = append(have, x.AccountID)
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if want == nil {
			want = have
		}
		if !slices.Equal(have, want) || !slices.IsSorted(have) || len(have) < clusterPartitions {
			t.Errorf("companies through node %d: %v, want %v", i, have, want)
		}
		if have := s.get("POST", api.Prefix+"/session", `{"email":"nobody@x.io","password":"x"}`, "Content-Type", "application/json"); !strings.HasPrefix(have, "401 ") {
			t.Errorf("signing in with an unknown e-mail through node %d: %s", i, have)
		}
	}
}

// own is what an answer has of its own: its instant, and the request's id.
var own = regexp.MustCompile(`"(as_of|request_id)":"[^"]*"`)

// testAlike: what changes nothing is answered the same byte for byte by all nodes.
func (c *nodes) testAlike(t *testing.T, x *tenant) {
	session := []string{"Authorization", "Bearer " + x.token}
	key := []string{"Authorization", "Bearer " + x.APIKey}
	other := []string{"Authorization", "Bearer " + x.APIKey[:len(x.APIKey)-4] + "AAAA"}
	app := []string{"X-App-Id", x.AppID, "X-App-Secret", x.AppSecret, "Content-Type", "application/json"}
	long := []string{"X-Long", strings.Repeat("x", 8200)}
	large, huge := strings.Repeat(" ", 1<<20+1), strings.Repeat(" ", 8<<20+1)
	for _, r := range []struct {
		method, path, body string
		headers            []string
		status             string
	}{
		{"GET", api.Prefix + "/catalog", "", session, "200"}, {"GET", api.Prefix + "/session", "", session, "200"}, {"GET", api.Prefix + "/users", "", session, "200"},
		{"GET", api.Prefix + "/profiles?email=p0@x.io", "", session, "200"}, {"GET", api.Prefix + "/settings", "", session, "200"},
		{"GET", api.Prefix + "/companies", "", session, "403"}, {"GET", api.Prefix + "/nothing", "", session, "404"}, {"PATCH", api.Prefix + "/catalog", "", session, "405"},
		{"GET", api.Prefix + "/catalog", "", []string{"Cookie", "muster_session=" + x.token}, "200"},
		{"POST", api.Prefix + "/segments", "{}", []string{"Cookie", "muster_session=" + x.token}, "403"}, // no CSRF token
		{"GET", api.Prefix + "/catalog", "", nil, "401"}, {"GET", api.Prefix + "/catalog", "", key, "401"},
		{"GET", api.Prefix + "/export/profiles", "", session, "200"},
		{"GET", "/api/v1/push/segments", "", key, "200"}, {"GET", "/api/v1/push/segments", "", other, "401"}, {"GET", "/api/v1/nothing", "", key, "200"},
		{"POST", "/api/v1/events", "{", []string{"X-App-Id", x.AppID, "X-App-Secret", x.AppSecret, "Content-Type", "application/json"}, "400"},
		{"POST", "/api/v1/events", "{}", []string{"X-App-Id", x.AppID, "X-App-Secret", "wrong", "Content-Type", "application/json"}, "202"},
		{"GET", "/api/v1/events", "", []string{"X-App-Id", x.AppID}, "405"},
		{"POST", "/api/v1/events", huge, app, "413"}, {"POST", "/api/v1/events", huge, app[:4], "415"}, {"POST", api.Prefix + "/segments", huge, session, "415"},
		{"POST", api.Prefix + "/segments", huge, append(session, "Content-Type", "application/json"), "413"},
		{"POST", api.Prefix + "/segments", large, append(session, "Content-Type", "application/json"), "413"},
		{"POST", "/api/v1/contacts", huge, append(key, "Content-Type", "application/json"), "200"}, {"POST", "/v1/events", huge, append(key, "Content-Type", "application/json"), "413"},
		{"POST", "/api/v1/events", "{}", append(app, long...), "431"}, {"GET", api.Prefix + "/catalog", "", append(session, long...), "431"},
		{"GET", "/api/v1/push/segments", "", append(key, long...), "200"}, {"GET", "/nothing", "", long, "431"},
		{"POST", "/inbound/" + x.AccountID + "/ses", "{}", nil, "401"}, {"POST", "/inbound/" + x.AccountID + "/mail/wrong", "x", nil, "401"},
		{"GET", "/t/AQ" + strings.Repeat("A", 56), "", nil, "404"},
		{"GET", "/openapi.json", "", nil, "200"}, {"GET", "/reference", "", nil, "200"}, {"GET", "/healthz", "", nil, "200"}, {"GET", "/readyz", "", nil, "200"},
		{"GET", "/nothing", "", nil, "404"}, {"POST", "/cluster/v1/command/1", "x", nil, "404"},
	} {
		want := ""
		for i, s := range c.all {
			have := own.ReplaceAllString(s.get(r.method, r.path, r.body, r.headers...), `"$1":""`)
			if want == "" {
				want = have
			}
			if have != want || !strings.HasPrefix(have, r.status+" ") {
				at := 0
				for at < min(len(have), len(want)) && have[at] == want[at] {
					at++
				}
				at = max(0, at-60)
				t.Errorf("%s %s through node %d: want %s, have %.60s … %.120s\nelse … %.120s", r.method, r.path, i, r.status, have, have[min(at, len(have)):], want[min(at, len(want)):])
			}
		}
	}
}

// testStream: events are watched through a node that does not have the account.
func (c *nodes) testStream(t *testing.T, x *tenant) {
	router := (c.owner(x.partition) + 1) % len(c.all)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", c.all[router].origin+api.Prefix+"/events/live", nil)
	ok(t, err)
	req.Header.Set("Authorization", "Bearer "+x.token)
	res, err := http.DefaultClient.Do(req)
	ok(t, err)
	defer res.Body.Close()
	in := bufio.NewScanner(res.Body)
	if !in.Scan() || in.Text() != ": watching" {
		t.Fatalf("a stream begins with %q", in.Text())
	}
	c.as((router+1)%len(c.all), x).event(`{"event_type":"watched","user":{"email":"w@x.io"}}`)
	for in.Scan() && !strings.Contains(in.Text(), "watched") {
	}
	if !strings.Contains(in.Text(), "watched") {
		t.Errorf("the event does not come: %v", in.Err())
	}
}

// testStrangers: a node with another secret, or none, is turned away, and so is one
// that gives another's address for its own.
func (c *nodes) testStrangers(t *testing.T) {
	for _, change := range [][]string{
		{"same --cluster-secret", "--cluster-secret", "another secret of the tests"},
		{"same --cluster-secret", "--cluster-secret", ""},
		{"leads to another server", "--advertise", strings.TrimPrefix(c.all[1].origin, "http://")},
	} {
		args := append([]string{"serve", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0"}, c.args...)
		code, out, errs := muster(t, "", append(args, change[1:]...)...)
		if code != exitFailed || !strings.Contains(errs, change[0]) || strings.Contains(out, "ready") {
			t.Errorf("%q: %d %s %s", change, code, out, errs)
		}
	}
	c.untilSpread(1, 0, 1, 2)
}

// load sends events of a tenant through a node until told to stop: one after the
// other, each until it is acknowledged, as clients do.
type load struct {
	stop    chan struct{}
	done    sync.WaitGroup
	mu      sync.Mutex
	acked   []int           // per sender
	longest []time.Duration // between two acknowledgements, per sender
	status  map[int]int
}

func (c *nodes) load(x *tenant, name string, through ...int) *load {
	l := &load{stop: make(chan struct{}), acked: make([]int, len(through)), longest: make([]time.Duration, len(through)), status: map[int]int{}}
	for sender, node := range through {
		origin := c.all[node].origin
		l.done.Go(func() {
			client := http.Client{Timeout: 15 * time.Second}
			last := time.Now()
			for n := 0; ; n++ {
				body := fmt.Sprintf(`{"event_type":"%s","user":{"external_id":"%s-%d-%d"},"idempotency_key":"%s-%d-%d"}`, name, name, sender, n, name, sender, n)
				for {
					req, err := http.NewRequest("POST", origin+"/api/v1/events", strings.NewReader(body))
					if err != nil {
						c.t.Error(err)
						return
					}
					req.Header.Set("Content-Type", "application/json")
					req.Header.Set("X-App-Id", x.AppID)
					req.Header.Set("X-App-Secret", x.AppSecret)
					status, retry := 0, ""
					if res, err := client.Do(req); err == nil {
						io.Copy(io.Discard, res.Body)
						res.Body.Close()
						status, retry = res.StatusCode, res.Header.Get("Retry-After")
					}
					l.mu.Lock()
					l.status[status]++
					l.mu.Unlock()
					if status == 202 {
						break
					}
					if status != 503 || retry == "" {
						c.t.Errorf("an event of partition %d is answered %d, Retry-After %q", x.partition, status, retry)
					}
					select {
					case <-l.stop:
						return
					case <-time.After(50 * time.Millisecond):
					}
				}
				l.mu.Lock()
				l.acked[sender]++
				l.longest[sender] = max(l.longest[sender], time.Since(last))
				l.mu.Unlock()
				last = time.Now()
				select {
				case <-l.stop:
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
		})
	}
	return l
}

// total is how many were acknowledged.
func (l *load) total() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.acked {
		n += a
	}
	return n
}

// end stops the load and checks that each acknowledged event counts once.
func (l *load) end(c *nodes, x *tenant, name string, through int) {
	c.t.Helper()
	close(l.stop)
	l.done.Wait()
	s := c.as(through, x)
	// One event more per sender may have been stored without an answer.
	if have := s.events(name); have < l.total() || have > l.total()+len(l.acked) {
		c.t.Errorf("%s: %d events count, %d were acknowledged\n%s", name, have, l.total(), c.logs())
	}
	c.t.Logf("%s: %d events, the longest pause %v, statuses %v", name, l.total(), slices.Max(l.longest), l.status)
}

// testChanges: an owner is killed, comes back, is stopped and frozen, while events
// come through the other nodes: none is lost, none counts twice, and the pause is
// short.
func (c *nodes) testChanges(t *testing.T, tenants []*tenant) {
	victim := c.owner(1)
	others := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == victim })
	within := func(name string, bound time.Duration, change func()) {
		t.Helper()
		var loads []*load
		for _, x := range tenants {
			loads = append(loads, c.load(x, fmt.Sprint(name, x.partition), others...))
		}
		time.Sleep(300 * time.Millisecond) // the pauses between two acknowledgements are what is tested, also before
		change()
		time.Sleep(300 * time.Millisecond) // and after the change
		for i, l := range loads {
			l.end(c, tenants[i], fmt.Sprint(name, tenants[i].partition), others[i%len(others)])
			if longest := slices.Max(l.longest); longest > bound {
				t.Errorf("%s: nothing of partition %d was acknowledged for %v\n%s", name, tenants[i].partition, longest, c.logs())
			}
		}
	}
	dir := c.dirs[victim]
	within("killed", 20*time.Second, func() { // a session of 6 s, and the group's and the loading's time
		c.all[victim].kill()
		eventually.Holds(t, "partition 1 has an owner", func() bool { return c.owner(1) >= 0 })
	})
	within("returned", 10*time.Second, func() {
		c.all[victim] = launch(c.t, dir, c.args...)
		c.all[victim].untilReady()
		c.untilSpread(1, 0, 1, 2)
	})
	within("stopped", 10*time.Second, func() {
		c.all[victim].stop()
		eventually.Holds(t, "each partition has an owner", func() bool { return c.owner(1) >= 0 && c.owner(0) >= 0 && c.owner(2) >= 0 })
	})
	c.all[victim] = launch(c.t, dir, c.args...)
	c.all[victim].untilReady()
	c.untilSpread(1, 0, 1, 2)
	within("frozen", 20*time.Second, func() {
		ok(t, c.all[victim].Cmd.Process.Signal(syscall.SIGSTOP))
		time.Sleep(9 * time.Second) // that it is frozen for longer than its session is what is tested
		ok(t, c.all[victim].Cmd.Process.Signal(syscall.SIGCONT))
		c.untilSpread(1, 0, 1, 2)
	})
	// The node that was away has all of it.
	for _, x := range tenants {
		var want int
		for i := range c.all {
			s := c.as(i, x)
			n := s.events(fmt.Sprint("killed", x.partition))
			if i == 0 {
				want = n
			}
			if n != want || n == 0 {
				t.Errorf("through node %d there are %d events of partition %d, else %d", i, n, x.partition, want)
			}
		}
	}
}
