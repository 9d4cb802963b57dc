package main

import (
	"fmt"
	"testing"
	"time"
)

// scheduled is a campaign of a tenant that is to be sent by itself.
type scheduled struct {
	*tenant
	id string
}

// testSchedule: campaigns whose time comes while the owner of one of them is away are
// each sent once, by the account's owner at that time, and not again when the node
// returns.
func (c *nodes) testSchedule(t *testing.T, tenants []*tenant) {
	const people = 5
	victim := c.owner(1)
	others := []int{(victim + 1) % len(c.all), (victim + 2) % len(c.all)}
	var campaigns []scheduled
	var senders []*server
	var lists []string
	for n, x := range tenants {
		s := c.as(others[n%len(others)], x)
		s.sendToAll()
		var list struct {
			ID string `json:"_id"`
		}
		ok(t, s.surfaceA("POST", "/lists", map[string]any{"name": "scheduled"}, &list))
		for i := range people {
			ok(t, s.surfaceA("POST", "/contacts", map[string]any{"email": fmt.Sprintf("scheduled%d-%d@people.example", n, i), "list_id": list.ID}, nil))
		}
		senders, lists = append(senders, s), append(lists, list.ID)
	}
	at := time.Now().Add(8 * time.Second) // within the session of the node that is killed, and a little more
	for n, x := range tenants {
		var made struct {
			ID string `json:"_id"`
		}
		ok(t, senders[n].surfaceA("POST", "/campaign", map[string]any{
			"name": "scheduled", "channel": 2, "type": 1, "date": at.UTC().Format(time.RFC3339Nano), "subject": "Hello", "body": "<p>Hi</p>", "sender": "news@muster.local", "list_id": []string{lists[n]},
		}, &made))
		campaigns = append(campaigns, scheduled{x, made.ID})
	}
	if !time.Now().Before(at) {
		t.Fatal("the campaigns took too long to be made")
	}
	c.all[victim].kill()
	type state struct {
		Status string
		Sent   int `json:"emails_sent"`
		Failed int
		Runs   []struct{ Run int }
	}
	read := func(x scheduled, through int) (s state) {
		t.Helper()
		if err := c.as(through, x.tenant).surfaceA("GET", "/campaign/"+x.id+"/stats", nil, &s); err != nil {
			s.Status = err.Error() // the account has no owner at present
		}
		return s
	}
	for n, x := range campaigns {
		var s state
		// The pause is no wait: a key may ask 120 times a minute.
		for end := time.Now().Add(90 * time.Second); s.Status != "sent"; time.Sleep(200 * time.Millisecond) {
			if s = read(x, others[n%len(others)]); time.Now().After(end) {
				t.Fatalf("the campaign of partition %d is not sent: %+v\n%s", x.partition, s, c.logs())
			}
		}
		if time.Now().Before(at) {
			t.Errorf("the campaign of partition %d was sent before its time", x.partition)
		}
	}
	c.all[victim] = launch(c.t, c.dirs[victim], c.args...)
	c.all[victim].untilReady()
	c.untilSpread(1, 0, 1, 2)
	for _, x := range campaigns {
		for i := range c.all {
			if s := read(x, i); s.Status != "sent" || s.Sent != people || s.Failed != 0 || len(s.Runs) != 1 {
				t.Errorf("the campaign of partition %d through node %d: %+v, expected %d messages of one run", x.partition, i, s, people)
			}
		}
	}
}
