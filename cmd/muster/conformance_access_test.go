package main

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

func accessPart() part {
	return part{"authentication", []rule{
		{"unknown, revoked, malformed and missing keys, a deactivated account and API access off: one answer", func(c *check) {
			made := c.console("POST", "/api-keys", obj{"name": "r"}).http(200)
			revoked := made.str("data.key")
			c.console("DELETE", "/api-keys/"+made.str("data._id"), nil).http(200)
			off, deactivated := c.other(), c.other()
			c.asAdmin(c.T, "PATCH", "/companies/"+off.id, obj{"api_access": false}).http(200)
			c.asAdmin(c.T, "PATCH", "/companies/"+deactivated.id, obj{"active": false}).http(200)
			flipped := []byte(c.freshKey())
			if flipped[len(flipped)-3] != 'A' {
				flipped[len(flipped)-3] = 'A'
			} else {
				flipped[len(flipped)-3] = 'B'
			}
			for _, path := range []string{"/api/v1/contacts", "/api/v1/nonsense", "/v1/events"} {
				method := "GET"
				if path == "/v1/events" {
					method = "POST"
				}
				want := c.do(c.T, method, path, nil).http(401)
				for what, header := range map[string]string{
					"unknown": "Bearer " + string(flipped), "revoked": "Bearer " + revoked, "no access": "Bearer " + off.key, "deactivated": "Bearer " + deactivated.key,
					"no key": "Bearer ", "another prefix": "Bearer sk_test_abc", "prefix alone": "Bearer svc_live_", "another scheme": "Basic " + c.freshKey(), "a session": "Bearer " + c.admin,
				} {
					got := c.do(c.T, method, path, nil, "Authorization", header).http(401)
					if a, b := sameness(got), sameness(want); a != b {
						got.fault("a key that is %s: expected the answer to no key at all, %s; have %s", what, b, a)
					}
				}
			}
		}},
		{"a key is sent as a bearer", func(c *check) {
			key := c.freshKey()
			c.do(c.T, "GET", "/api/v1/lists", nil, "Authorization", "Bearer "+key).success()
			for _, header := range [][]string{{"Authorization", key}, {"Authorization", "Token " + key}, {"X-Api-Key", key}} {
				c.do(c.T, "GET", "/api/v1/lists", nil, header...).http(401)
			}
			c.do(c.T, "GET", "/api/v1/lists?api_key="+key+"&token="+key, nil).http(401)
		}},
		{"API access is a switch of each company, turned by an administrator", func(c *check) {
			x := c.other()
			key := x.freshKey()
			x.with(key, "GET", "/api/v1/lists", nil).success()
			c.asAdmin(c.T, "PATCH", "/companies/"+x.id, obj{"api_access": false}).http(200).eq("data.api_access", false)
			x.with(key, "GET", "/api/v1/lists", nil).http(401)
			x.with(key, "POST", "/v1/events", obj{"email": "a@b.c", "event": "seen"}).http(401)
			c.with(c.freshKey(), "GET", "/api/v1/lists", nil).success() // another company's stays
			x.console("PATCH", "/companies/"+x.id, obj{"api_access": true}).http(403)
			c.asAdmin(c.T, "PATCH", "/companies/"+x.id, obj{"api_access": true}).http(200)
			x.with(key, "GET", "/api/v1/lists", nil).success()
		}},
		{"a new company has no API access until it is given", func(c *check) {
			made := c.asAdmin(c.T, "POST", "/companies", obj{"name": "fresh", "email": c.mail("owner")}).http(200).eq("data.api_access", false)
			c.with(made.str("data.api_key"), "GET", "/api/v1/lists", nil).http(401)
		}},
		{"keys of a deactivated account are refused, and hold again when it is active", func(c *check) {
			x := c.other()
			key := x.freshKey()
			c.asAdmin(c.T, "PATCH", "/companies/"+x.id, obj{"active": false}).http(200)
			x.with(key, "GET", "/api/v1/lists", nil).http(401)
			x.b("/events", obj{"event_type": "seen", "user": obj{"email": "a@b.c"}}).http(202).eq("success", false)
			c.asAdmin(c.T, "PATCH", "/companies/"+x.id, obj{"active": true}).http(200)
			x.with(key, "GET", "/api/v1/lists", nil).success()
		}},
		{"only signed-in people make keys", func(c *check) {
			c.do(c.T, "POST", "/console/api/v1/api-keys", obj{"name": "x"}).http(401)
			c.person("contacts:read").console("POST", "/api-keys", obj{"name": "x"}).http(403)
		}},
	}}
}

// sameness is all of an answer but what names the request or its time.
func sameness(a *answer) string {
	h := a.header.Clone()
	h.Del("Date")
	h.Del("X-Request-Id")
	body := regexp.MustCompile(`"request_id":"[^"]*"`).ReplaceAll(a.raw, []byte(`"request_id":""`))
	head, err := json.Marshal(h)
	ok(a.t, err)
	return strconv.Itoa(a.status) + string(head) + string(body)
}

// storm makes n requests with 32 workers and returns how many were let through,
// and the answers to the others.
func storm(t *testing.T, n int, call func() *answer) (passed int, refused []*answer) {
	t.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range 32 {
		workers.Go(func() {
			for left.Add(-1) >= 0 {
				a := call()
				mu.Lock()
				if a.status == http.StatusTooManyRequests {
					refused = append(refused, a)
				} else {
					passed++
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return passed, refused
}

func rateAPart() part {
	wait := regexp.MustCompile(`^Too many requests\. Try again in ([0-9]+) seconds\.$`)
	return part{"rate of Surface A", []rule{
		{"120 requests a minute on one key, whatever the number of workers; the others say when to come again", func(c *check) {
			key := c.newKey()
			passed, refused := storm(c.T, 140, func() *answer { return c.with(key, "GET", "/api/v1/lists", nil) })
			if passed != 120 || len(refused) != 20 {
				c.Errorf("%d of 140 passed, %d were refused", passed, len(refused))
			}
			for _, a := range refused {
				a.http(429).only("", "message", "success").eq("success", false)
				m := wait.FindStringSubmatch(a.str("message"))
				if m == nil {
					a.fault("expected the fixed message")
					continue
				}
				// The first of them leaves the minute 60 seconds after it came.
				if n, _ := strconv.Atoi(m[1]); n < 30 || n > 60 || a.header.Get("Retry-After") != m[1] {
					a.fault("the wait; Retry-After is %s", a.header.Get("Retry-After"))
				}
			}
			if !bytes.HasPrefix(refused[0].raw, []byte(`{"message":"Too many requests. Try again in `)) {
				refused[0].fault("the order of fields")
			}
			// Requests of all kinds count, and to all paths.
			c.with(key, "GET", "/api/v1/nonsense", nil).http(429)
			c.with(key, "POST", "/api/v1/contacts", obj{}).http(429)
		}},
		{"each key has its own minute", func(c *check) {
			c.with(c.newKey(), "GET", "/api/v1/lists", nil).success()
		}},
		{"failures count, requests that were turned away do not lengthen the wait", func(c *check) {
			key := c.newKey()
			passed, _ := storm(c.T, 120, func() *answer { return c.with(key, "GET", "/api/v1/nonsense", nil) })
			first, second := c.with(key, "GET", "/api/v1/lists", nil).http(429), c.with(key, "GET", "/api/v1/lists", nil).http(429)
			a, _ := strconv.Atoi(first.header.Get("Retry-After"))
			b, _ := strconv.Atoi(second.header.Get("Retry-After"))
			if passed != 120 || b > a || math.Abs(float64(a-b)) > 5 {
				c.Errorf("%d passed; the waits are %d and %d", passed, a, b)
			}
		}},
		{"Surface B is not under this limit", func(c *check) {
			passed, _ := storm(c.T, 150, func() *answer {
				return c.b("/events", obj{"event_type": "seen", "user": obj{"email": "rate@b.example"}})
			})
			if passed != 150 {
				c.Errorf("%d of 150 passed", passed)
			}
		}},
	}}
}

func rateCPart() part {
	return part{"rate of Surface C", []rule{
		{"600 requests a minute, unless more is agreed", func(c *check) {
			c.asAdmin(c.T, "GET", "/companies/"+c.id, nil).http(200).eq("data.surface_c_per_minute", 600)
			key := c.newKey("events:write")
			call := func() *answer { return c.with(key, "POST", "/v1/events", obj{}) }
			passed, refused := storm(c.T, 620, call)
			if passed != 600 {
				c.Errorf("%d of 620 passed", passed)
			}
			for _, a := range refused {
				a.only("", "status", "code", "message", "request_id").eq("status", "error").eq("code", "rate_limited")
			}
			c.with(key, "GET", "/api/v1/lists", nil).failure(denied) // Surface A counts apart
			c.asAdmin(c.T, "PATCH", "/companies/"+c.id, obj{"surface_c_per_minute": 700}).http(200)
			if passed, _ := storm(c.T, 120, call); passed != 100 {
				c.Errorf("with 700 agreed, %d more passed, expected 100", passed)
			}
		}},
	}}
}
