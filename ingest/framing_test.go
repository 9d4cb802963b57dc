package ingest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A request's parts for the tables below: $ stands for the credentials and type.
const (
	smuggled = "POST /smuggled HTTP/1.1\r\nHost: s\r\nContent-Length: 0\r\n\r\n"
	eventLen = "Content-Length: 39\r\n"
)

func filledIn(s string) string { return strings.ReplaceAll(s, "$", credentials) }

// malformed are the shapes by which requests are smuggled, and others that RFC 9112
// does not allow. A second request stands behind each.
var malformed = map[string]string{
	"length and coding":                "POST /api/v1/events HTTP/1.1\r\n$Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"coding and length":                "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
	"two codings":                      "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"two codings, one identity":        "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
	"chunked twice":                    "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
	"unknown coding":                   "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
	"coding identity":                  "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: identity\r\n\r\n",
	"chunked not last":                 "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
	"chunked behind gzip":              "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	"coding with a parameter":          "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n",
	"coding in quotes":                 "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
	"coding cut short":                 "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunke\r\n\r\n0\r\n\r\n",
	"empty coding":                     "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding:\r\n\r\n0\r\n\r\n",
	"coding behind a vertical tab":     "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n",
	"coding in HTTP/1.0":               "POST /api/v1/events HTTP/1.0\r\n$Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"two lengths, different":           "POST /api/v1/events HTTP/1.1\r\n$Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
	"two lengths, the same":            "POST /api/v1/events HTTP/1.1\r\n$Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
	"a list of lengths":                "POST /api/v1/events HTTP/1.1\r\n$Content-Length: 0, 0\r\n\r\n",
	"length with a sign":               "POST /api/v1/events HTTP/1.1\r\n$Content-Length: +0\r\n\r\n",
	"negative length":                  "POST /api/v1/events HTTP/1.1\r\n$Content-Length: -1\r\n\r\n",
	"length in hexadecimal":            "POST /api/v1/events HTTP/1.1\r\n$Content-Length: 0x0\r\n\r\n",
	"length with a space inside":       "POST /api/v1/events HTTP/1.1\r\n$Content-Length: 0 0\r\n\r\n",
	"length that overflows":            "POST /api/v1/events HTTP/1.1\r\n$Content-Length: 18446744073709551616\r\n\r\n",
	"empty length":                     "POST /api/v1/events HTTP/1.1\r\n$Content-Length: \r\n\r\n",
	"no host":                          "GET /api/v1/events HTTP/1.1\r\n\r\n",
	"no host among others":             "GET /api/v1/events HTTP/1.1\r\nHosts: x\r\n\r\n",
	"two hosts":                        "GET /api/v1/events HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
	"two hosts, the same":              "GET /api/v1/events HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n",
	"two hosts in HTTP/1.0":            "GET /api/v1/events HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
	"host with a space":                "GET /api/v1/events HTTP/1.1\r\nHost: a b\r\n\r\n",
	"host with a path":                 "GET /api/v1/events HTTP/1.1\r\nHost: a/b\r\n\r\n",
	"host with a user":                 "GET /api/v1/events HTTP/1.1\r\nHost: a@b\r\n\r\n",
	"space before a colon":             "GET /api/v1/events HTTP/1.1\r\n$Content-Length : 0\r\n\r\n",
	"tab before a colon":               "GET /api/v1/events HTTP/1.1\r\n$Transfer-Encoding\t: chunked\r\n\r\n",
	"space before a name":              "GET /api/v1/events HTTP/1.1\r\n Host: x\r\n\r\n",
	"a folded field":                   "GET /api/v1/events HTTP/1.1\r\n$X-A: b\r\n c\r\n\r\n",
	"a field folded by a tab":          "GET /api/v1/events HTTP/1.1\r\n$X-A: b\r\n\tTransfer-Encoding: chunked\r\n\r\n",
	"a folded coding":                  "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
	"no colon":                         "GET /api/v1/events HTTP/1.1\r\n$X-A\r\n\r\n",
	"no name":                          "GET /api/v1/events HTTP/1.1\r\n$: a\r\n\r\n",
	"bare CR in a value":               "GET /api/v1/events HTTP/1.1\r\n$X-A: b\rX-B: c\r\n\r\n",
	"bare CR before a line's end":      "GET /api/v1/events HTTP/1.1\r\n$X-A: b\r\r\n\r\n",
	"bare LF behind a field":           "GET /api/v1/events HTTP/1.1\r\n$X-A: b\n\r\n",
	"bare LF in a value":               "GET /api/v1/events HTTP/1.1\r\n$X-A: b\nTransfer-Encoding: chunked\r\n\r\n",
	"bare LF behind the first line":    "GET /api/v1/events HTTP/1.1\n$\r\n",
	"bare LF for the empty line":       "GET /api/v1/events HTTP/1.1\r\n$\n",
	"bare LF before a request":         "\nGET /api/v1/events HTTP/1.1\r\n$\r\n",
	"bare LFs only":                    "GET /api/v1/events HTTP/1.0\n\nGET /x HTTP/1.0\r\nX: y\r\n\r\n",
	"NUL in a name":                    "GET /api/v1/events HTTP/1.1\r\n$X-\x00A: b\r\n\r\n",
	"NUL in a value":                   "GET /api/v1/events HTTP/1.1\r\n$X-A: b\x00c\r\n\r\n",
	"NUL in the path":                  "GET /api/v1/\x00events HTTP/1.1\r\n$\r\n",
	"NUL for a request":                "\x00",
	"control in a value":               "GET /api/v1/events HTTP/1.1\r\n$X-A: \x7f\r\n\r\n",
	"bracket in a name":                "GET /api/v1/events HTTP/1.1\r\n$X[A]: b\r\n\r\n",
	"letter outside ASCII in a name":   "GET /api/v1/events HTTP/1.1\r\n$X-\u00c4: b\r\n\r\n",
	"two spaces in the first line":     "GET  /api/v1/events HTTP/1.1\r\n$\r\n",
	"tab in the first line":            "GET\t/api/v1/events HTTP/1.1\r\n$\r\n",
	"space behind the version":         "GET /api/v1/events HTTP/1.1 \r\n$\r\n",
	"space in the path":                "GET /api/v1/events x HTTP/1.1\r\n$\r\n",
	"version in small letters":         "GET /api/v1/events http/1.1\r\n$\r\n",
	"version 2":                        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"version 1.2":                      "GET /api/v1/events HTTP/1.2\r\n$\r\n",
	"no version":                       "GET /api/v1/events\r\n",
	"no method":                        " /api/v1/events HTTP/1.1\r\n$\r\n",
	"three empty lines before":         "\r\n\r\n\r\nGET /api/v1/events HTTP/1.1\r\n$\r\n",
	"TLS":                              "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	"chunk size that is no number":     "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\ng\r\n\r\n0\r\n\r\n",
	"empty chunk size":                 "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n\r\n0\r\n\r\n",
	"chunk size with a prefix":         "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
	"chunk size with a sign":           "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n",
	"chunk size with a space behind":   "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n1 \r\n1\r\n0\r\n\r\n",
	"chunk size with a space before":   "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n 1\r\n1\r\n0\r\n\r\n",
	"chunk size that overflows":        "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n1\r\n0\r\n\r\n",
	"chunk size that ends with LF":     "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n1\n1\r\n0\r\n\r\n",
	"chunk longer than its size":       "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n1\r\n12\r\n0\r\n\r\n",
	"chunk that ends with LF":          "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n1\r\n1\n0\r\n\r\n",
	"chunk extension with LF":          "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n1;a\n1\r\n0\r\n\r\n",
	"chunk extension with CR":          "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n1;a\rb\r\n1\r\n0\r\n\r\n",
	"chunk extension that is long":     "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("a", 5000) + "\r\n1\r\n0\r\n\r\n",
	"chunk extensions that are many":   "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("a", 100)+"\r\n1\r\n", 50) + "0\r\n\r\n",
	"length among the trailers":        "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 3\r\n\r\n",
	"coding among the trailers":        "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n",
	"host among the trailers":          "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n0\r\nHost: a\r\n\r\n",
	"trailer without a colon":          "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n0\r\nabc\r\n\r\n",
	"trailer with a space before":      "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n0\r\na: b\r\n c\r\n\r\n",
	"trailers that end with a bare LF": "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n0\r\n\n",
}

// TestMalformedRequestIsRefused: whatever could be understood in two ways is answered
// 400, once, and the connection is closed: what stands behind it is never a request.
func TestMalformedRequestIsRefused(t *testing.T) {
	t.Parallel()
	opts := testOptions()
	node := newFakeNode()
	addr, _ := listen(t, node, opts, route)
	for name, request := range malformed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, before := range []string{"", post("events", goodEvent)} {
				c := dial(t, addr)
				c.write(before, filledIn(request), smuggled)
				if before != "" {
					c.expect(202, `"success":true`, false)
				}
				status, body, closed := c.answer()
				if status != 400 || !closed {
					t.Errorf("answered %d, closing %v: %s", status, closed, body)
				}
				if rest, err := io.ReadAll(c.r); err != nil || len(rest) > 0 {
					t.Errorf("behind the answer: %q, %v", rest, err)
				}
			}
		})
	}
}

// wellFormed are requests as they may be; each is answered, and so is what follows.
var wellFormed = map[string]string{
	"length":                 "POST /api/v1/events HTTP/1.1\r\n$" + eventLen + "\r\n" + goodEvent,
	"chunked":                "POST /api/v1/events HTTP/1.1\r\n$Transfer-Encoding: chunked\r\n\r\n27\r\n" + goodEvent + "\r\n0\r\n\r\n",
	"chunked, otherwise":     "POST /api/v1/events HTTP/1.1\r\n$transfer-ENCODING:\t Chunked \r\n\r\n0027;a=\"b c\";d\r\n" + goodEvent + "\r\n000;x\r\nX-Sum: 1\r\nX-A:\r\n\r\n",
	"small letters":          "POST /api/v1/events HTTP/1.1\r\n$content-length:39\r\n\r\n" + goodEvent,
	"spaces around a length": "POST /api/v1/events HTTP/1.1\r\n$Content-Length: \t 39 \t\r\n\r\n" + goodEvent,
	"zeros before a length":  "POST /api/v1/events HTTP/1.1\r\n$Content-Length: 0039\r\n\r\n" + goodEvent,
	"an empty line before":   "\r\nPOST /api/v1/events HTTP/1.1\r\n$" + eventLen + "\r\n" + goodEvent,
	"odd names and values":   "POST /api/v1/events HTTP/1.1\r\n$!#$%&'*+-.^_`|~09az: \u00e4\t\"(),/:;<=>?@[\\]{}\r\nX-Empty:\r\nX-Empty:   \r\n" + eventLen + "\r\n" + goodEvent,
	"names that are similar": "POST /api/v1/events HTTP/1.1\r\n$Content-Lengths: 1\r\nXContent-Length: 2\r\nTransfer-Encoding-X: chunked\r\nHosts: a b\r\n" + eventLen + "\r\n" + goodEvent,
	"HTTP/1.0, kept alive":   "POST /api/v1/events HTTP/1.0\r\n$Connection: keep-alive\r\n" + eventLen + "\r\n" + goodEvent,
	"a whole URL":            "POST http://test/api/v1/events HTTP/1.1\r\n$" + eventLen + "\r\n" + goodEvent,
}

// TestWellFormedRequestIsServed: well-formed requests are served however their bytes
// are cut into packets, one after the other on one connection.
func TestWellFormedRequestIsServed(t *testing.T) {
	t.Parallel()
	addr, _ := listen(t, newFakeNode(), testOptions(), route)
	for name, request := range wellFormed {
		t.Run(name, func(t *testing.T) {
			request = strings.Replace(request, "$", credentials, 1) // one name below has a dollar
			c := dial(t, addr)
			c.write(strings.Repeat(request, 3))
			for range 3 {
				c.expect(202, `"success":true`, false)
			}
			for i := range len(request) {
				c.write(request[i : i+1])
			}
			c.expect(202, `"success":true`, false)
		})
	}
	c := dial(t, addr)
	c.write("GET / HTTP/1.0\r\n\r\n")
	if b, err := io.ReadAll(c); err != nil || !bytes.HasPrefix(b, []byte("HTTP/1.1 404 ")) {
		t.Errorf("%q %v", b, err)
	}
}

// TestFramingIsAlikeInPieces: what is wrong is found at the same byte however the
// bytes come.
func TestFramingIsAlikeInPieces(t *testing.T) {
	t.Parallel()
	for name, request := range malformed {
		stream := []byte(filledIn(request) + smuggled)
		var whole framing
		n, err := whole.scan(stream)
		var pieces framing
		at := slices.IndexFunc(stream, func(c byte) bool {
			_, err := pieces.scan([]byte{c})
			return err != nil
		})
		if err == nil || at != n {
			t.Errorf("%s: found at %d, byte by byte at %d: %v", name, n, at, err)
		}
	}
}

// FuzzFraming compares framing with net/http's reading of a request: what framing
// lets through, net/http understands, and both see it end at the same byte.
func FuzzFraming(f *testing.F) {
	for _, requests := range []map[string]string{malformed, wellFormed} {
		for _, request := range requests {
			f.Add([]byte(filledIn(request)), uint16(7))
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte, cut uint16) {
		var f, pieces framing
		n, bad := f.scan(stream)
		if bad == nil && n != len(stream) {
			t.Fatalf("%d of %d bytes without an error", n, len(stream))
		}
		k := min(int(cut), len(stream))
		m, err := pieces.scan(stream[:k])
		if err == nil {
			var more int
			more, err = pieces.scan(stream[k:])
			m += more
		}
		if m != n || !errors.Is(err, bad) {
			t.Fatalf("in one piece %d %v, in two %d %v", n, bad, m, err)
		}
		if bad != nil || f.state != frameStart {
			return // no whole requests
		}
		r := bufio.NewReader(bytes.NewReader(stream))
		for {
			if _, err := r.Peek(1); err == io.EOF {
				return
			}
			req, err := http.ReadRequest(r)
			if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
				if left := strings.Trim(string(stream), "\r\n"); left == "" {
					return
				}
				t.Fatalf("net/http wants more of %q", stream)
			}
			if err != nil {
				return // it is stricter in what is no matter of framing, such as URLs
			}
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return
			}
		}
	})
}

// BenchmarkFraming is what framing adds to a request.
func BenchmarkFraming(b *testing.B) {
	for name, request := range map[string]string{
		"event":        post("events", goodEvent),
		"batch of 100": post("events/batch", string(benchBody(100))),
	} {
		b.Run(name, func(b *testing.B) {
			stream := []byte(request)
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			var f framing
			for b.Loop() {
				if _, err := f.scan(stream); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
