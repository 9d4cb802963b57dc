package loader

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// Limits of an answer.
const (
	maxHeadBytes   = 16 << 10
	maxAnswerBytes = 16 << 20
)

// Conn is one HTTP/1.1 connection that sends prepared requests. It is used by
// one goroutine, except for Close.
type Conn struct {
	net  net.Conn
	buf  []byte
	used int
}

// Dial connects to a loopback address.
func Dial(address string, timeout time.Duration) (*Conn, error) {
	if err := CheckLoopback(address); err != nil {
		return nil, err
	}
	c, err := net.DialTimeout("tcp", address, timeout)
	if err != nil {
		return nil, err
	}
	return &Conn{net: c, buf: make([]byte, 16<<10)}, nil
}

// Close ends the connection; a call under way fails.
func (c *Conn) Close() error { return c.net.Close() }

// SetDeadline bounds all calls until then.
func (c *Conn) SetDeadline(t time.Time) error { return c.net.SetDeadline(t) }

// Answer is the answer to one request.
type Answer struct {
	Status int
	// Body is valid until the connection's next call.
	Body []byte
	// Closing reports that the server closes the connection behind this answer.
	Closing bool
}

// Do sends a whole request and reads the answer. After an error the connection
// is useless and whether the server took the request is unknown.
func (c *Conn) Do(request []byte) (Answer, error) {
	if _, err := c.net.Write(request); err != nil {
		return Answer{}, err
	}
	c.used = 0
	head := -1
	for head < 0 {
		if c.used >= maxHeadBytes {
			return Answer{}, fmt.Errorf("answer's head is over %d bytes", maxHeadBytes)
		}
		from := max(0, c.used-3)
		if err := c.fill(c.used + 1); err != nil {
			return Answer{}, err
		}
		if i := bytes.Index(c.buf[from:c.used], []byte("\r\n\r\n")); i >= 0 {
			head = from + i + 4
		}
	}
	answer, length, err := parseHead(c.buf[:head])
	if err != nil {
		return Answer{}, err
	}
	if err := c.fill(head + length); err != nil {
		return Answer{}, err
	}
	if c.used != head+length {
		return Answer{}, fmt.Errorf("%d bytes behind the answer", c.used-head-length)
	}
	answer.Body = c.buf[head:c.used]
	return answer, nil
}

// fill reads until the buffer holds at least n bytes.
func (c *Conn) fill(n int) error {
	if n > len(c.buf) {
		grown := make([]byte, max(n, 2*len(c.buf)))
		copy(grown, c.buf[:c.used])
		c.buf = grown
	}
	for c.used < n {
		got, err := c.net.Read(c.buf[c.used:])
		c.used += got
		if err != nil && c.used < n {
			return err
		}
	}
	return nil
}

var errNoLength = errors.New("answer without Content-Length")

// parseHead reads an answer's status, body length and whether it is the last.
func parseHead(head []byte) (Answer, int, error) {
	var a Answer
	if len(head) < 12 || !bytes.HasPrefix(head, []byte("HTTP/1.1 ")) {
		return a, 0, fmt.Errorf("answer begins with %q", head[:min(len(head), 12)])
	}
	for _, b := range head[9:12] {
		if b < '0' || b > '9' {
			return a, 0, fmt.Errorf("answer begins with %q", head[:12])
		}
		a.Status = a.Status*10 + int(b-'0')
	}
	length := -1
	_, rest, _ := bytes.Cut(head, []byte("\r\n"))
	for len(rest) > 2 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		colon := bytes.IndexByte(line, ':')
		if colon < 0 {
			continue
		}
		value := bytes.TrimSpace(line[colon+1:])
		switch {
		case colon == len("Content-Length") && bytes.EqualFold(line[:colon], []byte("Content-Length")):
			n, err := strconv.Atoi(string(value))
			if err != nil || n < 0 || n > maxAnswerBytes {
				return a, 0, fmt.Errorf("answer of %q bytes, the limit is %d", value, maxAnswerBytes)
			}
			length = n
		case colon == len("Connection") && bytes.EqualFold(line[:colon], []byte("Connection")):
			a.Closing = bytes.EqualFold(value, []byte("close"))
		}
	}
	if length < 0 {
		return a, 0, errNoLength
	}
	return a, length, nil
}
