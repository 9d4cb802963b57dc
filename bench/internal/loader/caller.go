package loader

import (
	"fmt"
	"net/http"
	"time"

	"github.com/valyala/fastjson"
)

// Caller makes one call after the other, on a connection that it renews after an
// error. It is used by one goroutine.
type Caller struct {
	// DialTimeout bounds connecting, Timeout a call.
	DialTimeout, Timeout time.Duration

	conn   *Conn
	parser fastjson.Parser
}

// Connected reports whether the next call uses the connection of the last.
func (c *Caller) Connected() bool { return c.conn != nil }

// Do sends a whole request. After an error it is not known whether the server took
// it.
func (c *Caller) Do(address string, request []byte) (a Answer, err error) {
	if c.conn == nil {
		if c.conn, err = Dial(address, c.DialTimeout); err != nil {
			return a, err
		}
	}
	if err = c.conn.SetDeadline(time.Now().Add(c.Timeout)); err == nil {
		a, err = c.conn.Do(request)
	}
	if err != nil || a.Closing {
		c.Close()
	}
	return a, err
}

// Post sends a body to a target.
func (c *Caller) Post(t Target, body []byte) (Answer, error) {
	return c.Do(t.Address, append(t.Head(len(body)), body...))
}

// Profile returns the profile in the answer to one event, which must be accepted.
func (c *Caller) Profile(a Answer) (string, error) {
	ids, err := Profiles(&c.parser, a.Body, 0)
	if err != nil || a.Status != http.StatusAccepted {
		return "", fmt.Errorf("an event was not accepted: status %d: %.300s (%w)", a.Status, a.Body, err)
	}
	return ids[0], nil
}

// Close ends the connection, if there is one; the next call makes another.
func (c *Caller) Close() {
	if c.conn != nil {
		_ = c.conn.Close() // nothing more is read from it
		c.conn = nil
	}
}
