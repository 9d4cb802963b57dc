package main

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/eventually"
)

// check is what a rule has at hand: the world, and a company.
type check struct {
	*testing.T
	*world
	*company
}

// other is the same in a company of its own.
func (c *check) other() *check { return &check{c.T, c.world, c.world.company(c.T)} }

// first is the same in the company that the server began with.
func (c *check) first() *check {
	creds := &c.server.creds
	return &check{c.T, c.world, &company{account: creds.AccountID, app: creds.AppID, secret: creds.AppSecret, email: creds.ConsoleEmail,
		password: creds.ConsolePassword, token: c.admin, key: creds.APIKey}}
}

// a calls Surface A with a key that may do everything.
func (c *check) a(method, path string, body any) *answer {
	c.Helper()
	return c.with(c.freshKey(), method, "/api/v1"+path, body)
}

// with makes a request with a key.
func (c *check) with(key, method, path string, body any) *answer {
	c.Helper()
	return c.do(c.T, method, path, body, "Authorization", "Bearer "+key)
}

// c calls Surface C.
func (c *check) c(path string, body any) *answer {
	c.Helper()
	return c.with(c.freshKey(), "POST", "/v1"+path, body)
}

// freshKey is the company's key, another one before it comes to its limit.
func (c *check) freshKey() string {
	c.Helper()
	c.company.mu.Lock()
	c.uses++
	spent := c.uses > perKey
	c.company.mu.Unlock()
	if spent {
		key := c.newKey()
		c.company.mu.Lock()
		c.key, c.uses = key, 1
		c.company.mu.Unlock()
	}
	c.company.mu.Lock()
	defer c.company.mu.Unlock()
	return c.key
}

// newKey is a new key, with all permissions unless some are given.
func (c *check) newKey(permissions ...string) string {
	c.Helper()
	in := obj{"name": c.name("key")}
	if len(permissions) > 0 {
		in["permissions"] = permissions
	}
	return c.console("POST", "/api-keys", in).http(200).str("data.key")
}

// console calls the console API as the company's first user.
func (c *check) console(method, path string, body any) *answer {
	c.Helper()
	c.company.mu.Lock()
	token := c.token
	c.company.mu.Unlock()
	if token == "" {
		token = c.signIn(c.T, c.email, c.password)
		c.company.mu.Lock()
		c.token = token
		c.company.mu.Unlock()
	}
	return c.do(c.T, method, api.Prefix+path, body, "Authorization", "Bearer "+token)
}

// b calls Surface B with the company's credentials.
func (c *check) b(path string, body any) *answer {
	c.Helper()
	return c.do(c.T, "POST", "/api/v1"+path, body, "X-App-Id", c.app, "X-App-Secret", c.secret)
}

// event records an event and returns the profile.
func (c *check) event(kind string, user, properties obj) string {
	c.Helper()
	in := obj{"event_type": kind, "user": user}
	if properties != nil {
		in["properties"] = properties
	}
	return c.b("/events", in).http(202).eq("success", true).str("profile_id")
}

// contact makes a contact.
func (c *check) contact(fields obj) string {
	c.Helper()
	return c.a("POST", "/contacts", fields).success().str("data._id")
}

// list makes a list with contacts of these e-mails on it.
func (c *check) list(emails ...string) string {
	c.Helper()
	id := c.a("POST", "/lists", obj{"name": c.name("list")}).success().str("data._id")
	for _, e := range emails {
		c.a("POST", "/lists/"+id+"/contacts", obj{"email": e}).success()
	}
	return id
}

// segment saves a segment and waits until it is live.
func (c *check) segment(definition any) string {
	c.Helper()
	id := c.console("POST", "/segments", obj{"name": c.name("segment"), "definition": definition}).http(200).str("data._id")
	c.until("the segment is live", func() bool { return c.console("GET", "/segments/"+id, nil).str("data.status") == "live" })
	return id
}

// members are the profiles of a segment, now.
func (c *check) members(segment string) []string {
	c.Helper()
	out := []string{}
	for _, x := range c.console("GET", "/segments/"+segment+"/members", nil).http(200).array("data.members") {
		out = append(out, x.(string))
	}
	return out
}

// campaign makes an e-mail campaign; fields replace what it would have.
func (c *check) campaign(fields obj) string {
	c.Helper()
	return c.a("POST", "/campaign", campaignOf(fields)).success().str("data._id")
}

// campaignOf is the body that makes an e-mail campaign.
func campaignOf(fields obj) obj {
	in := obj{"name": "news", "channel": 2, "type": 1, "date": "2026-01-31T09:00:00Z", "subject": "News", "body": "<p>Hello</p>", "sender": "news@muster.local"}
	for k, v := range fields {
		if in[k] = v; v == nil {
			delete(in, k)
		}
	}
	return in
}

// send sends a campaign to lists.
func (c *check) send(campaign string, lists ...string) *answer {
	c.Helper()
	return c.a("POST", "/campaign/"+campaign+"/send", obj{"list_id": lists})
}

// until waits for something that follows by itself.
func (c *check) until(what string, holds func() bool) {
	c.Helper()
	eventually.Holds(c.T, what, holds)
}

// browser is how a person's program asks.
var browser = []string{"User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"}

// fetch asks for a link of a message as a person's program does.
func (c *check) fetch(link string) *answer {
	c.Helper()
	path, inside := strings.CutPrefix(link, c.server.origin)
	if !inside {
		c.Fatalf("the link %q does not lead to this server", link)
	}
	client := *c.client
	client.CheckRedirect = noRedirect
	w := &world{server: c.server, client: &client}
	return w.do(c.T, "GET", path, nil, browser...)
}
