package main

import (
	"encoding/json"
	"html"
	"regexp"
	"strconv"
	"time"

	"github.com/musterhq/muster/messaging/webhook"
)

// links are those of the newest letter to an address.
type links struct {
	c      *check
	pixel  string
	clicks []string // in the order of the text
}

var (
	pixelPattern = regexp.MustCompile(`<img[^>]+src="([^"]*/t/[^"]*)"`)
	clickPattern = regexp.MustCompile(`<a[^>]+href="([^"]*/t/[^"]*)"`)
	linkPattern  = regexp.MustCompile(`https?://[^\s<>"]+/t/[A-Za-z0-9_-]+`)
)

func (c *check) links(email string) links {
	c.Helper()
	list := c.relay.to(email)
	if len(list) == 0 {
		c.Fatalf("nothing came for %s", email)
	}
	newest := list[len(list)-1]
	out := links{c: c}
	if m := pixelPattern.FindStringSubmatch(newest.html); m != nil {
		out.pixel = html.UnescapeString(m[1])
	}
	for _, m := range clickPattern.FindAllStringSubmatch(newest.html, -1) {
		out.clicks = append(out.clicks, html.UnescapeString(m[1]))
	}
	return out
}

// in is the first link of the server's in a text.
func (l links) in(text string) string {
	l.c.Helper()
	link := linkPattern.FindString(text)
	if link == "" {
		l.c.Fatalf("no link in %q", text)
	}
	return link
}

// lastStats are those of the campaign made last.
func (c *check) lastStats() *answer {
	c.Helper()
	list := c.a("GET", "/campaign?limit=1000", nil).success().array("data")
	return c.a("GET", "/campaign/"+list[len(list)-1].(obj)["_id"].(string)+"/stats", nil).success()
}

// report hands in what a provider tells, signed.
func (c *check) report(events ...obj) {
	c.Helper()
	set := c.console("PUT", "/inbound-providers/generic", obj{"generate": true}).http(200)
	secret, err := webhook.ParseSecret(set.str("data.once.secrets.0"))
	ok(c.T, err)
	body, err := json.Marshal(events)
	ok(c.T, err)
	now := time.Now()
	c.do(c.T, "POST", set.str("data.details.path"), string(body), webhook.HeaderID, "msg_1", webhook.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10),
		webhook.HeaderSignature, webhook.Sign("msg_1", now, body, []webhook.Secret{secret})).http(200).eq("data.recorded", len(events))
}
