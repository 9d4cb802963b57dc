package peer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/cluster"
	"github.com/musterhq/muster/internal/eventually"
)

// TestForwardedAlike: a request through any node is the request that the owner
// sees, and its answer the client's, but for what concerns the connections.
func TestForwardedAlike(t *testing.T) {
	t.Parallel()
	_, router, owner := two(t, time.Second)
	var seen string
	owner.handle = func(rc *fasthttp.RequestCtx) {
		host, _, _ := net.SplitHostPort(rc.RemoteAddr().String())
		seen = fmt.Sprintf("%s %s|%s|%s|%s|%d|%s|%q", rc.Method(), rc.URI().PathOriginal(), rc.QueryArgs(), rc.Host(), rc.Request.Header.Peek("X-Mine"),
			len(rc.Request.Body()), host, rc.Request.Header.Peek(headerSigned))
		if stream := rc.RequestBodyStream(); stream != nil {
			b, _ := io.ReadAll(stream)
			seen += fmt.Sprint("|", len(b))
		}
		rc.Response.Header.Add("Set-Cookie", "a=1; Path=/")
		rc.Response.Header.Add("X-Twice", "1")
		rc.Response.Header.Add("X-Twice", "2")
		switch string(rc.Path()) {
		case "/empty":
			rc.SetStatusCode(204)
		case "/redirect":
			rc.SetStatusCode(302)
			rc.Response.Header.Set("Location", "https://example.com/?q=1")
		case "/large":
			rc.SetBody(bytes.Repeat([]byte("0123456789"), 300_000))
		case "/chunked":
			rc.SetBodyStream(strings.NewReader(strings.Repeat("x", 200_000)), -1)
		case "/missing":
			rc.SetStatusCode(404)
			rc.SetBodyString("no such thing")
		default:
			rc.SetContentType("application/json")
			rc.SetBodyString(`{"a":1}`)
		}
	}
	for _, x := range []struct{ method, path string }{
		{"GET", "/plain"}, {"HEAD", "/plain"}, {"POST", "/plain?a=b&c=%2F"}, {"DELETE", "/a%2Fb//c/../d"}, {"PUT", "/plain"}, {"OPTIONS", "/plain"},
		{"GET", "/empty"}, {"GET", "/redirect"}, {"GET", "/large"}, {"HEAD", "/large"}, {"GET", "/chunked"}, {"GET", "/missing"}, {"PATCH", "/plain"},
	} {
		var body []byte
		if x.method == "POST" || x.method == "PUT" {
			body = bytes.Repeat([]byte("b"), 100_000)
		}
		headers := []string{"X-Mine", "yes", headerSigned, "forged", headerClient, "9.9.9.9:1", "Connection", "keep-alive"}
		answer := func(m *member) string {
			t.Helper()
			for range 3 { // connections between nodes are used again
				res, b := m.send(x.method, x.path, body, headers...)
				h := maps.Clone(res.Header)
				delete(h, "Date")
				seen += fmt.Sprintf(" -> %d %v %d %d %.40s", res.StatusCode, h, res.ContentLength, len(b), b)
			}
			return seen
		}
		direct := answer(owner)
		// What is forwarded has had its forged header dropped.
		direct = strings.Replace(direct, `|"forged"`, `|""`, 1)
		if forwarded := answer(router); bodyAside(forwarded) != bodyAside(direct) {
			t.Errorf("%s %s:\nforwarded %s\ndirect    %s", x.method, x.path, forwarded, direct)
		}
	}
}

// bodyAside drops where the handler found the body: in a stream or whole.
func bodyAside(seen string) string {
	before, after, _ := strings.Cut(seen, " -> ")
	parts := strings.Split(before, "|")
	total := 0
	for _, i := range []int{4, 7} {
		n := 0
		if i < len(parts) {
			fmt.Sscan(parts[i], &n)
		}
		total += n
	}
	return fmt.Sprint(parts[:4], total, parts[5:7], " -> ", after)
}

// TestStream: pieces of an answer arrive as they are written, and the owner
// learns that the client has gone.
func TestStream(t *testing.T) {
	t.Parallel()
	_, router, owner := two(t, time.Second)
	pieces, gone := make(chan string), make(chan struct{})
	owner.handle = func(rc *fasthttp.RequestCtx) {
		rc.SetContentType("text/event-stream")
		rc.Response.ImmediateHeaderFlush = true
		rc.SetBodyStreamWriter(func(w *bufio.Writer) {
			defer close(gone)
			for {
				select {
				case s := <-pieces:
					w.WriteString(s + "\n")
				case <-time.After(20 * time.Millisecond):
					w.WriteString("\n")
				}
				if w.Flush() != nil {
					return
				}
			}
		})
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+router.Address+"/", nil)
	ok(t, err)
	req.Header.Set(testPartition, "1")
	res, err := http.DefaultClient.Do(req)
	ok(t, err)
	in := bufio.NewScanner(res.Body)
	for i := range 5 {
		want := fmt.Sprint("piece ", i)
		pieces <- want
		for in.Scan() && in.Text() == "" {
		}
		if in.Text() != want {
			t.Fatalf("have %q, want %q", in.Text(), want)
		}
	}
	res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Error("the owner does not learn that the client has gone")
	}
}

// TestDrainEndsStreams: a stream that another node sends ends when this one stops, as
// one of its own does, though nothing comes for a while: with a last message, unless
// that would stand in the middle of another.
func TestDrainEndsStreams(t *testing.T) {
	t.Parallel()
	for sent, end := range map[string]string{"data: 1\n\n": "event: end\ndata: {}\n\n", "data: 2": ""} {
		_, router, owner := two(t, time.Second)
		silent := make(chan struct{})
		owner.handle = func(rc *fasthttp.RequestCtx) {
			rc.SetContentType("text/event-stream")
			rc.Response.ImmediateHeaderFlush = true
			rc.SetBodyStreamWriter(func(w *bufio.Writer) {
				w.WriteString(sent)
				ok(t, w.Flush())
				<-silent
			})
		}
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+router.Address+"/", nil)
		ok(t, err)
		req.Header.Set(testPartition, "1")
		res, err := http.DefaultClient.Do(req)
		ok(t, err)
		first := make([]byte, len(sent))
		_, err = io.ReadFull(res.Body, first)
		ok(t, err)
		router.router.Drain()
		rest, err := io.ReadAll(res.Body)
		if string(first) != sent || string(rest) != end || err != nil {
			t.Errorf("%q, then %q %v", first, rest, err)
		}
		res.Body.Close()
		close(silent)
	}
}

// TestWaitsForAnOwner: an owner that is unknown, loading, dead or another by now
// is waited for; nothing is carried out twice; in the end the answer is 503 with
// Retry-After.
func TestWaitsForAnOwner(t *testing.T) {
	t.Parallel()
	x, router, owner := two(t, time.Minute)
	third := newMember(t, x, "third", secret, time.Second)
	var calls atomic.Int64
	for _, m := range []*member{owner, third, router} {
		m.handle = func(rc *fasthttp.RequestCtx) {
			calls.Add(1)
			fmt.Fprintf(rc, "%s %d", m.ID, len(readAll(rc)))
		}
	}
	dead := cluster.Node{ID: "dead", Address: closedAddr(t)}
	begin := func() func() (int, string, string) {
		calls.Store(0)
		var status int
		var body, retry string
		done := make(chan struct{})
		since := router.state.looked(1)
		go func() {
			defer close(done)
			res, b := router.send("POST", "/", make([]byte, 10_000))
			status, body, retry = res.StatusCode, b, res.Header.Get("Retry-After")
		}()
		router.state.tried(t, 1, since)
		return func() (int, string, string) { <-done; return status, body, retry }
	}
	for _, c := range []struct {
		what       string
		set, later func()
		want       string
	}{
		{"unknown", func() { x.change(func() { delete(x.owners, 1) }) }, func() { x.set(1, owner.Node) }, "owner 10000"},
		{"loading", func() { owner.state.own(1, false) }, func() { owner.state.own(1, true) }, "owner 10000"},
		{"dead", func() { x.set(1, dead) }, func() { x.set(1, owner.Node) }, "owner 10000"},
		{"another by now", func() { owner.state.own(1, false) }, func() { third.state.own(1, true); x.set(1, third.Node) }, "third 10000"},
		{"this node", func() { third.state.own(1, false); x.set(1, router.Node) }, func() { router.state.own(1, true) }, "router 10000"},
	} {
		c.set()
		end := begin()
		if n := calls.Load(); n != 0 {
			t.Errorf("%s: answered before there is an owner", c.what)
		}
		c.later()
		if status, body, _ := end(); status != 200 || body != c.want || calls.Load() != 1 {
			t.Errorf("%s: %d %s, %d calls", c.what, status, body, calls.Load())
		}
	}
	router.state.own(1, false)
	const wait = 700 * time.Millisecond
	router.peers.opts.Wait = wait
	for what, set := range map[string]func(){
		"unknown": func() { x.change(func() { delete(x.owners, 1) }) }, "dead": func() { x.set(1, dead) }, "loading": func() { x.set(1, owner.Node) },
	} {
		set()
		begun := time.Now()
		status, body, retry := begin()()
		if took := time.Since(begun); status != 503 || retry != "1" || !strings.HasPrefix(body, "refused: ") || calls.Load() != 0 || took < wait || took > 30*time.Second {
			t.Errorf("%s, for too long: %d %q %s after %v", what, status, retry, body, took)
		}
	}
	eventually.Holds(t, "all bytes are given back", func() bool { return router.memory.Used() == 0 })
}

func readAll(rc *fasthttp.RequestCtx) []byte {
	if stream := rc.RequestBodyStream(); stream != nil {
		b, _ := io.ReadAll(stream)
		return b
	}
	return rc.Request.Body()
}

// closedAddr is an address without a listener.
func closedAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer ln.Close()
	return ln.Addr().String()
}

// TestBrokenOff: an answer in chunks that the owner breaks off is broken off for
// the client, also between two chunks; one that ends is whole.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	_, router, owner := two(t, time.Second)
	const piece = 10_000
	owner.handle = func(rc *fasthttp.RequestCtx) {
		pieces, fail := 3, string(rc.Path()) == "/broken"
		rc.Response.ImmediateHeaderFlush = true
		rc.SetBodyStream(readerFunc(func(b []byte) (int, error) {
			if pieces--; pieces < 0 {
				if fail {
					return 0, errors.New("history failed")
				}
				return 0, io.EOF
			}
			return copy(b, bytes.Repeat([]byte("x"), min(piece, len(b)))), nil
		}), -1)
	}
	for _, m := range []*member{owner, router} {
		for range 3 {
			for path, whole := range map[string]bool{"/whole": true, "/broken": false} {
				req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+m.Address+path, nil)
				ok(t, err)
				req.Header.Set(testPartition, "1")
				res, err := http.DefaultClient.Do(req)
				ok(t, err)
				_, err = io.ReadAll(res.Body)
				res.Body.Close()
				if (err == nil) != whole || res.Header.Get(headerWhole) != "" || len(res.Trailer) > 0 {
					t.Errorf("%s: %v %v %v", path, err, res.Header, res.Trailer)
				}
			}
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestNotRepeated: what may have reached an owner that was lost is answered 503,
// and sent once; one that is frozen is given up when it has left the cluster.
func TestNotRepeated(t *testing.T) {
	t.Parallel()
	x, router, _ := two(t, time.Second)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	var calls atomic.Int64
	reached := make(chan net.Conn, 8)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 64<<10)
			c.Read(buf)
			calls.Add(1)
			reached <- c
		}
	})
	defer serving.Wait()
	defer ln.Close()
	odd := cluster.Node{ID: "odd", Address: ln.Addr().String()}
	x.change(func() { x.all = append(x.all, odd); x.owners[1] = odd })
	for what, lose := range map[string]func(net.Conn){
		"it is killed":       func(c net.Conn) { c.Close() },
		"it is frozen":       func(net.Conn) { x.change(func() { x.gone["odd"] = true }) },
		"it answers rubbish": func(c net.Conn) { c.Write([]byte("rubbish\r\n\r\n")); c.Close() },
	} {
		calls.Store(0)
		x.change(func() { x.gone["odd"] = false })
		go func() { lose(<-reached) }()
		res, body := router.send("PUT", "/", []byte("x"))
		if res.StatusCode != 503 || res.Header.Get("Retry-After") != "1" || !strings.Contains(body, "not known") || calls.Load() != 1 {
			t.Errorf("%s: %d %s, %d calls", what, res.StatusCode, body, calls.Load())
		}
	}
}

// TestSecrets: a caller without the secret gets the answer of a path that does not
// exist, and an owner with another secret is none.
func TestSecrets(t *testing.T) {
	t.Parallel()
	x, router, owner := two(t, time.Second)
	stranger := newMember(t, x, "stranger", "another secret of the tests", time.Second)
	owner.handle = func(rc *fasthttp.RequestCtx) { t.Error("let in") }
	for _, path := range []string{Prefix, forwardPath + "/x", commandPath + "1", askPath + "companies"} {
		for _, headers := range [][]string{nil, {headerSigned, "x"}, {headerSigned, "1 00", headerBody, bodyHash(nil)}} {
			if res, _ := owner.send("POST", path, nil, headers...); res.StatusCode != 404 {
				t.Errorf("POST %s with %q: %d", path, headers, res.StatusCode)
			}
		}
	}
	x.set(1, stranger.Node)
	stranger.state.own(1, true)
	stranger.handle = owner.handle
	if res, _ := router.send("GET", "/", nil); res.StatusCode != 503 {
		t.Errorf("an owner with another secret: %d", res.StatusCode)
	}
	if _, err := router.peers.Command(t.Context(), 1, nil); err == nil || !strings.Contains(err.Error(), "same secret") {
		t.Errorf("a command to it: %v", err)
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	if _, err := NewSecret("too short"); err == nil {
		t.Error("a short secret is taken")
	}
	s, err := NewSecret(secret)
	ok(t, err)
	other, err := NewSecret(secret + "!")
	ok(t, err)
	if (Secret{}).Fingerprint("t") != "" || s.Fingerprint("t") == other.Fingerprint("t") || s.Fingerprint("t") == s.Fingerprint("u") || strings.Contains(fmt.Sprintf("%v %#v %+v", s, s, s), "[") {
		t.Error("fingerprints")
	}
	now := time.UnixMilli(1_700_000_000_000)
	c := call{"POST", "/x", "1.2.3.4:5", "ab"}
	made := stamp{now.UnixMilli(), "to", "from", 7}
	good := s.sign(c, made)
	for _, at := range []time.Duration{0, maxSkew, -maxSkew} {
		if have, ok := s.verify(c, good, now.Add(at)); !ok || have != made {
			t.Errorf("refused %v off: %+v", at, have)
		}
	}
	if have, ok := s.verify(c, s.sign(c, stamp{ms: made.ms, from: "from", number: 1}), now); !ok || have.to != "" || have.from != "from" {
		t.Errorf("a call of a process that does not know the other: %+v", have)
	}
	verify := func(s Secret, c call, signed string, off time.Duration) bool {
		_, ok := s.verify(c, signed, now.Add(off))
		return ok
	}
	for what, refused := range map[string]bool{
		"late": verify(s, c, good, maxSkew+time.Millisecond), "early": verify(s, c, good, -maxSkew-time.Millisecond),
		"other secret": verify(other, c, good, 0), "no secret": verify(Secret{}, c, Secret{}.sign(c, made), 0),
		"method": verify(s, call{"GET", "/x", "1.2.3.4:5", "ab"}, good, 0), "uri": verify(s, call{"POST", "/y", "1.2.3.4:5", "ab"}, good, 0),
		"client": verify(s, call{"POST", "/x", "1.2.3.4:6", "ab"}, good, 0), "body": verify(s, call{"POST", "/x", "1.2.3.4:5", "ac"}, good, 0),
		"shifted": verify(s, call{"POST", "/x1", ".2.3.4:5", "ab"}, good, 0),
		"empty":   verify(s, c, "", 0), "time": verify(s, c, "1"+good, 0), "cut": verify(s, c, good[:len(good)-1], 0),
		"to": verify(s, c, strings.Replace(good, " to ", " ot ", 1), 0), "from": verify(s, c, strings.Replace(good, " from ", " form ", 1), 0),
		"number": verify(s, c, strings.Replace(good, " 7 ", " 8 ", 1), 0), "moved": verify(s, c, strings.Replace(good, " to from ", " tofrom  ", 1), 0),
	} {
		if refused {
			t.Errorf("let in: %s", what)
		}
	}
}

// TestBounds: bodies that are forwarded count in the memory, and are bounded; so
// are heads.
func TestBounds(t *testing.T) {
	t.Parallel()
	_, router, owner := two(t, time.Second)
	hold := make(chan struct{})
	owner.handle = func(rc *fasthttp.RequestCtx) { readAll(rc); <-hold }
	done := make(chan struct{})
	go func() {
		defer close(done)
		if res, _ := router.send("POST", "/", make([]byte, 1<<20)); res.StatusCode != 200 {
			t.Errorf("a body of 1 MiB: %d", res.StatusCode)
		}
	}()
	eventually.Holds(t, "a body on its way is counted", func() bool { return router.memory.Used() >= 1<<20 })
	close(hold)
	<-done
}

// TestLeftMeanwhile: an account that leaves a node while it answers looks unknown
// to the handlers; the client is answered to come back instead.
func TestLeftMeanwhile(t *testing.T) {
	t.Parallel()
	_, _, owner := two(t, time.Second)
	owner.handle = func(rc *fasthttp.RequestCtx) {
		owner.state.own(1, false)
		rc.SetStatusCode(401)
	}
	if res, _ := owner.send("GET", "/", nil); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Errorf("have %d", res.StatusCode)
	}
	owner.handle = func(rc *fasthttp.RequestCtx) { rc.SetStatusCode(401) }
	owner.state.own(1, true)
	if res, _ := owner.send("GET", "/", nil); res.StatusCode != 401 {
		t.Errorf("have %d", res.StatusCode)
	}
}
