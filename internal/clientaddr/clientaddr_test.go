package clientaddr

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestClient(t *testing.T) {
	for _, x := range []struct {
		name, proxies, peer string
		forwarded           []string
		want                string
	}{
		{"no proxies, no header", "", "192.0.2.1", nil, "192.0.2.1"},
		{"no proxies: the header is ignored", "", "192.0.2.1", []string{"198.51.100.7"}, "192.0.2.1"},
		{"a stranger's header is ignored", "10.0.0.0/8", "192.0.2.1", []string{"198.51.100.7"}, "192.0.2.1"},
		{"a proxy without the header", "10.0.0.0/8", "10.0.0.1", nil, "10.0.0.1"},
		{"one proxy", "10.0.0.0/8", "10.0.0.1", []string{"198.51.100.7"}, "198.51.100.7"},
		{"what the client sent stands to the left", "10.0.0.0/8", "10.0.0.1", []string{"203.0.113.9, 198.51.100.7"}, "198.51.100.7"},
		{"the client claims to be a proxy", "10.0.0.0/8", "10.0.0.1", []string{"10.0.0.2, 198.51.100.7"}, "198.51.100.7"},
		{"two proxies", "10.0.0.0/8", "10.0.0.1", []string{"203.0.113.9, 198.51.100.7, 10.0.0.2"}, "198.51.100.7"},
		{"two proxies of two networks", "10.0.0.0/8,172.16.0.1", "10.0.0.1", []string{"198.51.100.7,172.16.0.1"}, "198.51.100.7"},
		{"a neighbour of a trusted address", "10.0.0.1", "10.0.0.1", []string{"198.51.100.7, 10.0.0.2"}, "10.0.0.2"},
		{"several headers", "10.0.0.0/8", "10.0.0.1", []string{"203.0.113.9", "198.51.100.7", "10.0.0.2"}, "198.51.100.7"},
		{"several headers, the last of proxies alone", "10.0.0.0/8", "10.0.0.1", []string{"203.0.113.9, 198.51.100.7", "10.0.0.3, 10.0.0.2"}, "198.51.100.7"},
		{"proxies alone", "10.0.0.0/8", "10.0.0.1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"garbage to the left", "10.0.0.0/8", "10.0.0.1", []string{"<script>, unknown, 198.51.100.7"}, "198.51.100.7"},
		{"garbage to the right", "10.0.0.0/8", "10.0.0.1", []string{"198.51.100.7, unknown"}, "10.0.0.1"},
		{"garbage behind a proxy", "10.0.0.0/8", "10.0.0.1", []string{"198.51.100.7, _hidden, 10.0.0.2"}, "10.0.0.2"},
		{"an empty header", "10.0.0.0/8", "10.0.0.1", []string{""}, "10.0.0.1"},
		{"an empty entry", "10.0.0.0/8", "10.0.0.1", []string{"198.51.100.7,"}, "10.0.0.1"},
		{"an address that is cut", "10.0.0.0/8", "10.0.0.1", []string{"198.51.100"}, "10.0.0.1"},
		{"with a port", "10.0.0.0/8", "10.0.0.1", []string{"203.0.113.9, 198.51.100.7:4711"}, "198.51.100.7"},
		{"tabs and spaces", "10.0.0.0/8", "10.0.0.1", []string{"203.0.113.9 ,\t 198.51.100.7 "}, "198.51.100.7"},
		{"IPv6", "2001:db8:ff::/48", "2001:db8:ff::1", []string{"2001:db8:ff::9, 2001:db8:1::7"}, "2001:db8:1::7"},
		{"IPv6 with a port", "2001:db8:ff::/48", "2001:db8:ff::1", []string{"[2001:db8:1::7]:443"}, "2001:db8:1::7"},
		{"IPv6 in brackets", "2001:db8:ff::/48", "2001:db8:ff::1", []string{"[2001:db8:1::7]"}, "2001:db8:1::7"},
		{"IPv6 with a zone", "fe80::/10", "fe80::1%eth0", []string{"2001:db8:1::7%eth0"}, "2001:db8:1::7"},
		{"IPv4 on a listener of IPv6", "10.0.0.0/8", "::ffff:10.0.0.1", []string{"::ffff:198.51.100.7"}, "198.51.100.7"},
		{"a network written as IPv6", "::ffff:10.0.0.0/104", "10.0.0.1", []string{"198.51.100.7"}, "198.51.100.7"},
		{"everybody is trusted", "0.0.0.0/0,::/0", "10.0.0.1", []string{"203.0.113.9, 198.51.100.7"}, "203.0.113.9"},
	} {
		p, err := Parse(x.proxies)
		ok(t, err)
		var forwarded [][]byte
		for _, v := range x.forwarded {
			forwarded = append(forwarded, []byte(v))
		}
		if have := p.Client(netip.MustParseAddr(x.peer), forwarded).String(); have != x.want {
			t.Errorf("%s: %s, want %s", x.name, have, x.want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, bad := range []string{"x", "10.0.0.0/33", "10.0.0.1,", "10.0.0.0/8 172.16.0.0/12", "::ffff:0.0.0.0/90", "10.0.0.0/8;", "localhost"} {
		if _, err := Parse(bad); err == nil || !strings.Contains(err.Error(), "such as 10.0.0.0/8") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	p, err := Parse(" 10.0.0.7 , fd00::/8,192.168.1.9/16")
	ok(t, err)
	for addr, want := range map[string]bool{"10.0.0.7": true, "10.0.0.8": false, "fd12::1": true, "fe80::1": false, "192.168.200.1": true, "::ffff:192.168.0.1": true} {
		if p.Trust(netip.MustParseAddr(addr)) != want {
			t.Errorf("trust in %s is %v", addr, !want)
		}
	}
}

// TestHandler: each request of one connection has its own client.
func TestHandler(t *testing.T) {
	p, err := Parse("127.0.0.1")
	ok(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	s := &fasthttp.Server{Handler: p.Handler(func(rc *fasthttp.RequestCtx) { fmt.Fprint(rc, rc.RemoteIP()) })}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	defer func() { ok(t, s.Shutdown()); ok(t, <-done) }()
	c, err := net.Dial("tcp", ln.Addr().String())
	ok(t, err)
	defer c.Close()
	in := bufio.NewReader(c)
	for _, x := range []struct{ header, want string }{
		{"X-Forwarded-For: 198.51.100.7\r\n", "198.51.100.7"},
		{"", "127.0.0.1"},
		{"x-forwarded-for: 203.0.113.9\r\nX-Forwarded-For: 2001:db8::7\r\n", "2001:db8::7"},
		{"X-Forwarded-For: nonsense\r\n", "127.0.0.1"},
	} {
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\n%s\r\n", x.header)
		res, err := http.ReadResponse(in, nil)
		ok(t, err)
		b := make([]byte, res.ContentLength)
		_, err = res.Body.Read(b)
		if string(b) != x.want {
			t.Errorf("%q: %s, want %s (%v)", x.header, b, x.want, err)
		}
	}
}

func FuzzClient(f *testing.F) {
	f.Add("10.0.0.2, 198.51.100.7", "x")
	f.Fuzz(func(t *testing.T, a, b string) {
		p, err := Parse("10.0.0.0/8")
		ok(t, err)
		peer := netip.MustParseAddr("10.0.0.1")
		have := p.Client(peer, [][]byte{[]byte(a), []byte(b + ",198.51.100.7")})
		if have.String() != "198.51.100.7" {
			t.Errorf("%q %q: %s", a, b, have)
		}
		p.Client(peer, [][]byte{[]byte(a), []byte(b)})
	})
}
