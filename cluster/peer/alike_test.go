package peer

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/ingest"
)

// raw writes a request as it is given and returns status and body of the answer.
func (m *member) raw(parts ...string) string {
	m.t.Helper()
	c, err := net.Dial("tcp", m.Address)
	ok(m.t, err)
	defer c.Close()
	ok(m.t, c.SetDeadline(time.Now().Add(30*time.Second)))
	go func() {
		for _, p := range parts {
			if _, err := io.WriteString(c, p); err != nil {
				return // it is answered before its end
			}
		}
	}()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "no answer: " + err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ok(m.t, err)
	return fmt.Sprint(res.StatusCode, " ", string(b))
}

// TestHeadsAlike: how long a head may be does not depend on which node it comes to,
// whatever it is like.
func TestHeadsAlike(t *testing.T) {
	t.Parallel()
	const limit = 8 << 10
	_, router, owner := two(t, 2*time.Second)
	owner.handle = func(rc *fasthttp.RequestCtx) {
		fmt.Fprintf(rc, "%d headers", rc.Request.Header.Len())
	}
	start, end := "POST /x HTTP/1.1\r\n"+testPartition+": 1\r\nHost: x\r\n", "Content-Length: 0\r\n\r\n" // no type
	left := limit - len(start) - len(end)
	for name, x := range map[string]func(n int) string{
		"one long header":   func(n int) string { return "X-Long: " + strings.Repeat("x", n-10) + "\r\n" },
		"no spaces":         func(n int) string { return strings.Repeat("a:b\r\n", n/6) },
		"empty values":      func(n int) string { return strings.Repeat("a:\r\n", n/5) },
		"cookies":           func(n int) string { return "Cookie: a" + strings.Repeat(";a", (n-11)/3) + "\r\n" },
		"many cookie lines": func(n int) string { return strings.Repeat("Cookie: a=b\r\n", n/13) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{left - 20, left, left + 20, left + HeadRoom, 2 * limit} {
				head := start + x(n) + end
				here, there := owner.raw(head), router.raw(head)
				want := "200 "
				if n > left {
					want = "431 "
				}
				if !strings.HasPrefix(here, want) || !strings.HasPrefix(there, want) || n > left && here != there {
					t.Errorf("a head of %d of %d bytes: the owner answers %.80q, another node %.80q", n, left, here, there)
				}
			}
		})
	}
	// The address counts as well.
	for _, n := range []int{left - 20, left + 20} {
		head := strings.Replace(start, "/x", "/x"+strings.Repeat("y", n), 1) + end
		if here, there := owner.raw(head), router.raw(head); here[:4] != there[:4] || (here[:4] == "200 ") != (n < left) {
			t.Errorf("an address of %d bytes: the owner answers %.80q, another node %.80q", n, here, there)
		}
	}
}

// TestBodiesAlike: what is wrong with a body is answered in the words of the owner's
// handlers, and only if they have nothing else against the request, whichever node
// it comes to.
func TestBodiesAlike(t *testing.T) {
	t.Parallel()
	_, router, owner := two(t, 2*time.Second)
	const limit = 1 << 20
	owner.handle = func(rc *fasthttp.RequestCtx) {
		if len(rc.Request.Header.Peek("X-Stranger")) > 0 {
			rc.SetStatusCode(401)
			rc.SetBodyString("who are you?")
			return
		}
		body, err := ingest.ReadBody(rc, owner.memory, limit)
		if err != nil {
			rc.SetStatusCode(400)
			rc.SetBodyString("the handler says: " + err.Error())
			return
		}
		fmt.Fprintf(rc, "%d bytes", len(body))
	}
	post := func(headers ...string) string {
		return "POST /x HTTP/1.1\r\nHost: x\r\n" + testPartition + ": 1\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
	}
	chunk := func(n int) string { return fmt.Sprintf("%x\r\n%s\r\n", n, strings.Repeat("x", n)) }
	const most = 4 << 20 // what nodes take of each other
	for name, x := range map[string]struct {
		parts []string
		want  string
	}{
		"fits":                    {[]string{post("Content-Length: 9"), "123456789"}, "200 9 bytes"},
		"at the limit":            {[]string{post(fmt.Sprint("Content-Length: ", limit)), strings.Repeat("x", limit)}, fmt.Sprintf("200 %d bytes", limit)},
		"over the limit":          {[]string{post(fmt.Sprint("Content-Length: ", limit+1)), strings.Repeat("x", limit+1)}, "400 the handler says: body is too large: over 1048576 bytes"},
		"over all limits":         {[]string{post(fmt.Sprint("Content-Length: ", most+1)), strings.Repeat("x", most+1)}, "400 the handler says: body is too large: over 1048576 bytes"},
		"chunks over the limit":   {[]string{post("Transfer-Encoding: chunked"), chunk(limit), chunk(1), chunk(0)}, "400 the handler says: body is too large: over 1048576 bytes"},
		"chunks over all limits":  {[]string{post("Transfer-Encoding: chunked"), chunk(most), chunk(1), chunk(0)}, "400 the handler says: body is too large: over 1048576 bytes"},
		"no chunks":               {[]string{post("Transfer-Encoding: chunked"), "no number\r\n"}, "400 the handler says: the body ended before its announced length, or its chunks are malformed; send the request again"},
		"of a stranger":           {[]string{post("X-Stranger: 1", "Content-Length: 9"), "123456789"}, "401 who are you?"},
		"too much, of a stranger": {[]string{post("X-Stranger: 1", fmt.Sprint("Content-Length: ", most+1)), strings.Repeat("x", most+1)}, "401 who are you?"},
	} {
		t.Run(name, func(t *testing.T) {
			if here, there := owner.raw(x.parts...), router.raw(x.parts...); here != x.want || there != x.want {
				t.Errorf("the owner answers %.100q, another node %.100q, want %.100q", here, there, x.want)
			}
		})
	}
	// A request with this header must be a node's.
	if have := router.raw(post("Content-Length: 2", headerBody+": too-large"), "ab"); have != "200 2 bytes" {
		t.Errorf("a client says that its body is too large, and is believed: %s", have)
	}
}
