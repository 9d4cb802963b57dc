package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// track sends a call of an SDK to a node with a write key and returns the status and what the
// answer says.
func (s *server) track(key, path, body string, headers ...string) (status int, answer string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "POST", s.origin+path, strings.NewReader(body))
	ok(s.t, err)
	req.Header.Set("Content-Type", "text/plain") // as analytics.js sends
	req.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(key+":")))
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	ok(s.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ok(s.t, err)
	return res.StatusCode, string(b)
}

const trackTaken = `{"success":true}`

// testTracking: a write key that one node made sends through each, and identity, duplicates,
// what a browser's key may not do, and a revocation are the same whatever node takes the call.
func (c *nodes) testTracking(t *testing.T, tenants []*tenant) {
	for n, x := range tenants {
		// The source is made through a node that does not have the account.
		maker := (c.owner(x.partition) + 1) % len(c.all)
		source := func(body string) (id, key string) {
			t.Helper()
			var made struct {
				ID  string `json:"_id"`
				Key string `json:"write_key"`
			}
			c.as(maker, x).console("POST", "/sources", body, &made)
			return made.ID, made.Key
		}
		serverID, serverKey := source(`{"name":"server","kind":"server"}`)
		_, browserKey := source(`{"name":"shop","kind":"browser","allowed_origins":["https://shop.example"]}`)
		taken := func(node int, key, path, body string, headers ...string) {
			t.Helper()
			if status, answer := c.all[node].track(key, path, body, headers...); status != 200 || answer != trackTaken {
				t.Errorf("partition %d: %s %s through node %d: %d %s", x.partition, path, body, node, status, answer)
			}
		}
		for i := range c.all {
			next := func(by int) int { return (i + by) % len(c.all) }
			name := fmt.Sprintf("t%d-%d", n, i)
			// A visit: unknown in the browser, then the login, then the server.
			taken(i, browserKey, "/v1/p", fmt.Sprintf(`{"anonymousId":"d-%s","name":"Home","messageId":"p-%[1]s"}`, name), "Origin", "https://shop.example")
			taken(next(1), browserKey, "/v1/i", fmt.Sprintf(`{"anonymousId":"d-%s","userId":"u-%[1]s","traits":{"plan":"pro"}}`, name), "Origin", "https://shop.example")
			taken(next(2), serverKey, "/v1/batch", fmt.Sprintf(`{"batch":[{"type":"track","userId":"u-%s","event":"Tracked %[1]s"},{"type":"identify","userId":"u-%[1]s","traits":{"email":"%[1]s@shop.example"}}]}`, name))
			var p struct {
				Identities   map[string][]string `json:"identities"`
				AnonymousIDs []string            `json:"anonymous_ids"`
				Attributes   map[string]any      `json:"attributes"`
			}
			c.as(next(1), x).console("GET", "/profiles?email="+name+"@shop.example", "", &p)
			if !slices.Equal(p.Identities["external_id"], []string{"u-" + name}) || !slices.Equal(p.AnonymousIDs, []string{"d-" + name}) || p.Attributes["plan"] != "pro" {
				t.Errorf("partition %d: the visit that began at node %d became %+v", x.partition, i, p)
			}

			// The same messages through all nodes at once, twice: each counts once.
			var all []string
			for m := range 50 {
				all = append(all, fmt.Sprintf(`{"type":"track","userId":"u-%s","event":"Repeated %[1]s","messageId":"m-%[1]s-%d"}`, name, m))
			}
			batch := `{"batch":[` + strings.Join(all, ",") + `]}`
			var sends sync.WaitGroup
			for range 2 {
				for node := range c.all {
					sends.Go(func() { taken(node, serverKey, "/v1/batch", batch) })
				}
			}
			sends.Wait()
			if count := c.as(i, x).events("repeated_" + strings.ReplaceAll(name, "-", "_")); count != len(all) {
				t.Errorf("partition %d: %d events count of %d messages that each node had twice", x.partition, count, len(all))
			}

			// What a browser's key may not do, through a node that has no account of it.
			for _, y := range []string{"v-" + name, "w-" + name} {
				taken(next(1), serverKey, "/v1/identify", fmt.Sprintf(`{"userId":%q,"traits":{"email":"%[1]s@shop.example"}}`, y))
			}
			status, answer := c.all[i].track(browserKey, "/v1/a", fmt.Sprintf(`{"userId":"v-%s","previousId":"w-%[1]s"}`, name))
			var refused struct {
				Rejected []struct{ Code string } `json:"rejected"`
			}
			if err := json.Unmarshal([]byte(answer), &refused); err != nil || status != 200 || len(refused.Rejected) != 1 || refused.Rejected[0].Code != "not_allowed" {
				t.Errorf("partition %d: an alias of a browser through node %d: %d %s", x.partition, i, status, answer)
			}
			taken(i, browserKey, "/v1/i", fmt.Sprintf(`{"userId":"v-%s","traits":{"email":"w-%[1]s@shop.example"}}`, name))
			var v, w struct {
				ID string `json:"profile_id"`
			}
			c.as(next(1), x).console("GET", "/profiles?external_id=v-"+name, "", &v)
			c.as(next(2), x).console("GET", "/profiles?external_id=w-"+name, "", &w)
			if v.ID == "" || v.ID == w.ID {
				t.Errorf("partition %d: a browser's key through node %d made two people %q and %q", x.partition, i, v.ID, w.ID)
			}
			if status, answer := c.all[i].track(browserKey, "/v1/t", `{"userId":"u","event":"Seen"}`, "Origin", "https://elsewhere.example"); status != 403 {
				t.Errorf("partition %d: another page through node %d: %d %s", x.partition, i, status, answer)
			}
		}
		// A key that is revoked through one node is refused by all at once.
		var s struct {
			Keys []struct {
				ID string `json:"_id"`
			}
		}
		c.as(maker, x).console("GET", "/sources/"+serverID, "", &s)
		c.as(maker, x).console("DELETE", "/sources/"+serverID+"/keys/"+s.Keys[0].ID, "", nil)
		for i := range c.all {
			if status, answer := c.all[i].track(serverKey, "/v1/t", `{"userId":"u","event":"Late"}`); status != 401 || !strings.Contains(answer, "invalid_write_key") {
				t.Errorf("partition %d: a revoked key through node %d: %d %s", x.partition, i, status, answer)
			}
		}
	}
}
