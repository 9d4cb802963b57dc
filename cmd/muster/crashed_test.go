package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/eventually"
)

// crashed is a server, or the nodes of a cluster, whose processes are killed and started again
// while clients talk to it.
type crashed struct {
	mu      sync.RWMutex // held for writing while clients have no server
	*server              // clients talk to it: of several nodes to one that runs, and does not own the account

	dir   string // of the one server
	args  []string
	run   func(*exec.Cmd)
	nodes *nodes // nil with one server
	kills []down // how long a process was away at each kill
}

// crash starts a server that will be killed, with an empty directory.
func crash(t *testing.T, args ...string) *crashed {
	t.Helper()
	return crashWith(t, plainly, args...)
}

// crashWith is crash, with a last word on how the command is run.
func crashWith(t *testing.T, run func(*exec.Cmd), args ...string) *crashed {
	t.Helper()
	dir := t.TempDir()
	return &crashed{server: serveWith(t, dir, run, args...), dir: dir, args: args, run: run}
}

// start starts what a test kills. run has the last word on how the command is run.
type start func(t *testing.T, run func(*exec.Cmd), args ...string) *crashed

// plainly runs the command as it is.
func plainly(*exec.Cmd) {}

// inFilesAndCluster runs a test that kills with one server whose log and history are in files, and
// with two nodes that share Kafka and ClickHouse, of which one at a time is killed.
func inFilesAndCluster(t *testing.T, test func(t *testing.T, start start)) {
	t.Run("files", func(t *testing.T) { test(t, crashWith) })
	t.Run("cluster", func(t *testing.T) { test(t, crashCluster) })
}

// inModesAndCluster is inFilesAndCluster, and runs the test with one server whose log and history
// are in Kafka and ClickHouse as well.
func inModesAndCluster(t *testing.T, test func(t *testing.T, start start)) {
	inFilesAndCluster(t, test)
	t.Run("kafka", func(t *testing.T) { test(t, crashKafka) })
}

func crashKafka(t *testing.T, run func(*exec.Cmd), args ...string) *crashed {
	t.Helper()
	return crashWith(t, run, append(kafkaArgs(t), args...)...)
}

// crashCluster starts two nodes. Clients talk to the one that does not have the account.
func crashCluster(t *testing.T, run func(*exec.Cmd), args ...string) *crashed {
	t.Helper()
	c := &crashed{nodes: newNodes(t, 2, run, args...)}
	c.nodes.untilSpread(1, 0, 1)
	first := c.nodes.firstCompany()
	for _, s := range c.nodes.all {
		s.creds, s.token = first.creds, first.token
	}
	c.server = c.nodes.all[1-c.nodes.owner(0)]
	return c
}

// crashOnce kills a process and starts it again: of several nodes in turn the one that has the
// account, and another.
func (c *crashed) crashOnce() {
	c.t.Helper()
	away := down{from: time.Now()}
	if c.nodes == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.kill()
		c.server = serveWith(c.t, c.dir, c.run, c.args...)
	} else {
		victim := c.nodes.owner(0)
		if len(c.kills)%2 == 1 {
			victim = 1 - victim
		}
		old, other := c.nodes.all[victim], c.nodes.all[1-victim]
		c.mu.Lock()
		c.server = other
		c.mu.Unlock()
		old.kill()
		again := launchWith(c.t, c.nodes.dirs[victim], c.nodes.run, c.nodes.args...)
		again.untilReady()
		again.creds, again.token = old.creds, old.token
		c.nodes.all[victim] = again
		c.nodes.untilSpread(1, 0, 1)
		eventually.Holds(c.t, "both nodes answer for the account", func() bool {
			for _, s := range c.nodes.all {
				if s.call("GET", api.Prefix+"/session", "", nil, "Authorization", "Bearer "+s.token) != http.StatusOK {
					return false
				}
			}
			return true
		})
		c.mu.Lock()
		c.server = c.nodes.all[1-c.nodes.owner(0)]
		c.mu.Unlock()
	}
	away.to = time.Now()
	c.kills = append(c.kills, away)
}

// stopAll asks what runs to end, and waits for it.
func (c *crashed) stopAll() {
	c.t.Helper()
	if c.nodes == nil {
		c.stop()
		return
	}
	for _, s := range c.nodes.all {
		s.stop()
	}
}

// idle reports whether no message waits to be sent.
func (c *crashed) idle() bool {
	if c.nodes == nil {
		return c.idleOutbox()
	}
	for _, s := range c.nodes.all {
		if !s.idleOutbox() {
			return false
		}
	}
	return true
}

// logs are those of what runs now.
func (c *crashed) logs() string {
	if c.nodes == nil {
		return c.log()
	}
	return c.nodes.logs()
}

// reached is where clients find the server now. It is for any goroutine.
func (c *crashed) reached() (origin string) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.origin
}

// until makes a request until it is answered with a status, over all restarts,
// and reads the answer.
func (c *crashed) until(ctx context.Context, status int, path string, body, answer any, headers ...string) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	for ; ; time.Sleep(5 * time.Millisecond) { // a client that does not hurry while there is no server
		req, err := http.NewRequestWithContext(ctx, "POST", c.reached()+path, bytes.NewReader(text))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		switch {
		case err != nil || res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests:
			continue
		case res.StatusCode != status:
			return fmt.Errorf("POST %s %s: %d %s", path, text, res.StatusCode, b)
		}
		return json.Unmarshal(b, answer)
	}
}

// sendCampaign asks url to send a campaign, and waits for the answer. A kill may cut it off.
func sendCampaign(ctx context.Context, t *testing.T, url, token, body string) {
	req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	if res, err := http.DefaultClient.Do(req); err == nil {
		res.Body.Close()
	}
}

// fakeServer answers requests by h until the test ends. It returns its address.
func fakeServer(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// idCounts counts how often each message id came, by its recipient.
type idCounts map[string]map[string]int

// add counts an id that came, and returns how often it has come.
func (c idCounts) add(recipient, id string) int {
	if c[recipient] == nil {
		c[recipient] = map[string]int{}
	}
	c[recipient][id]++
	return c[recipient][id]
}

// killWhile kills at random moments, spread over the time in which messages reach so many people.
func (c *crashed) killWhile(t *testing.T, seed uint64, kills, people int, reached func() int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range kills {
		want := (i + 1) * people / (kills + 1)
		eventually.Holds(t, "messages go out", func() bool { return reached() >= want })
		time.Sleep(time.Duration(rng.Int64N(int64(50 * time.Millisecond)))) // the moment of a kill is random
		c.crashOnce()
	}
}

// killAtRandom kills again and again, each time at a random moment after which enough has
// happened for that kill. It ends early once ctx is done: a request was refused.
func (c *crashed) killAtRandom(ctx context.Context, t *testing.T, seed uint64, kills int, what string, enough func(kill int) bool) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	for kill := range kills {
		time.Sleep(100*time.Millisecond + time.Duration(rng.Int64N(int64(500*time.Millisecond)))) // the moment of a kill is random
		eventually.Holds(t, what, func() bool { return ctx.Err() != nil || enough(kill) })
		if ctx.Err() != nil {
			return
		}
		c.crashOnce()
	}
}
