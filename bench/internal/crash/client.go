package crash

import (
	"fmt"
	"time"

	"github.com/valyala/fastjson"

	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/surface"
)

// client sends requests over one connection, which it renews at a site's next node.
type client struct {
	site        *surface.Site
	credentials server.Credentials // of the connection's node
	caller      loader.Caller
	parser      fastjson.Parser
}

func newClient(site *surface.Site) *client {
	return &client{site: site, caller: loader.Caller{DialTimeout: time.Second, Timeout: site.Timeout}}
}

// post sends a body with n events and returns their profile ids. An error is
// surface.ErrNoAnswer, or a refusal, which there should be none of.
func (c *client) post(body []byte, n int, batch bool) ([]string, error) {
	if !c.caller.Connected() {
		c.credentials = c.site.Next()
	}
	target, err := c.credentials.Target(batch)
	if err != nil {
		return nil, err
	}
	answer, err := c.caller.Post(target, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", surface.ErrNoAnswer, err)
	}
	if surface.Uncertain(answer.Status) {
		c.caller.Close() // another node may know more
		return nil, fmt.Errorf("%w: status %d: %.200s", surface.ErrNoAnswer, answer.Status, answer.Body)
	}
	if answer.Status != 202 {
		return nil, fmt.Errorf("status %d: %.300s", answer.Status, answer.Body)
	}
	if !batch {
		n = 0
	}
	return loader.Profiles(&c.parser, answer.Body, n)
}
