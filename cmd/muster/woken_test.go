package main

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/eventually"
)

// testWoken: an owner that was frozen while another node gave an account a new
// App Secret judges by that as soon as it wakes, or not at all.
func (c *nodes) testWoken(t *testing.T, tenants []*tenant) {
	const partition = 1
	generation := c.untilSpread(1, 0, 1, 2)
	victim, x := c.owner(partition), tenants[partition]
	if victim < 0 {
		t.Fatal("no node owns the partition")
	}
	event := func(i int, secret string) string {
		return c.all[i].get("POST", "/api/v1/events", `{"event_type":"woken","user":{"external_id":"w"}}`, "Content-Type", "application/json", "X-App-Id", x.AppID, "X-App-Secret", secret)
	}
	if a := event(victim, x.AppSecret); !strings.HasPrefix(a, "202 ") || !strings.Contains(a, `"success":true`) {
		t.Fatalf("before: %s", a)
	}
	ok(t, c.all[victim].Cmd.Process.Signal(syscall.SIGSTOP))
	thaw := sync.OnceFunc(func() { ok(t, c.all[victim].Cmd.Process.Signal(syscall.SIGCONT)) })
	defer thaw()
	frozen := time.Now()
	// It owned the partition when it was stopped: the others are still of the
	// generation in which it was given to it.
	for i, s := range c.all {
		if i == victim {
			continue
		}
		if h := s.holding(); h.generation != generation || h.has[partition] {
			t.Fatalf("the frozen node is not the owner: node %d is %+v, all were of generation %d", i, h, generation)
		}
	}
	other := c.untilTaken(t, partition, victim, generation)
	time.Sleep(time.Until(frozen.Add(2 * time.Second))) // an App Secret is taken by a state at most a second old
	var now api.Credentials
	c.as(other, x).console("POST", "/app-secret", "", &now)
	old, next := make(chan string, 1), make(chan string, 1)
	go func() { old <- event(victim, x.AppSecret) }()
	go func() { next <- event(victim, now.AppSecret) }()
	time.Sleep(300 * time.Millisecond) // nothing shows that the requests are there: a frozen node reads nothing
	if h := c.all[other].holding(); h.generation <= generation || !h.has[partition] {
		t.Errorf("when it wakes the partition is not another node's: that is %+v", h)
	}
	thaw()
	if a := <-old; strings.Contains(a, `"success":true`) {
		t.Errorf("the secret that was replaced is taken: %s", a)
	}
	if a := <-next; strings.HasPrefix(a, "202 ") && !strings.Contains(a, `"success":true`) {
		t.Errorf("the new secret is refused: %s", a)
	}
}

// untilTaken waits until a node serves a partition that was another's in a
// generation of the group, and returns its place.
func (c *nodes) untilTaken(t *testing.T, partition, from, generation int) int {
	t.Helper()
	place := 0
	eventually.Succeeds(t, func() error {
		seen := map[int]holding{}
		for i, s := range c.all {
			if i == from {
				continue
			}
			h := s.holding()
			if h.generation > generation && h.has[partition] {
				place = i
				return nil
			}
			seen[i] = h
		}
		return fmt.Errorf("no node took over: %+v\n%s", seen, c.logs())
	})
	return place
}
