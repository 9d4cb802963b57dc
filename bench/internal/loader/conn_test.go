package loader

import (
	"net"
	"strings"
	"testing"
	"time"
)

// serveRaw answers the first request of a connection with the given pieces.
func serveRaw(t *testing.T, pieces ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf := make([]byte, 1024)
		if _, err := c.Read(buf); err != nil {
			return
		}
		for _, p := range pieces {
			if _, err := c.Write([]byte(p)); err != nil {
				return
			}
			time.Sleep(5 * time.Millisecond) // so that pieces come apart: nothing tells when one was read
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func TestConnReadsAnswers(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, c := range []struct {
		name   string
		pieces []string
		body   string
		status int
		fault  string
	}{
		{"whole", []string{"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok"}, "ok", 202, ""},
		{"split within the head's end", []string{"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r", "\n\r", "\no", "k"}, "ok", 202, ""},
		{"other case of names", []string{"HTTP/1.1 503 Busy\r\ncontent-length:0\r\nconnection: Close\r\n\r\n"}, "", 503, ""},
		{"long body", []string{"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", long}, long, 200, ""},
		{"no length", []string{"HTTP/1.1 200 OK\r\n\r\n"}, "", 0, "Content-Length"},
		{"negative length", []string{"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"}, "", 0, "bytes"},
		{"too long", []string{"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"}, "", 0, "limit"},
		{"bytes behind", []string{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nok"}, "", 0, "behind"},
		{"no HTTP", []string{"SSH-2.0-OpenSSH\r\n\r\n"}, "", 0, "begins"},
		{"cut short", []string{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok"}, "", 0, "EOF"},
		{"endless head", []string{"HTTP/1.1 200 OK\r\nX: " + long}, "", 0, "head"},
	} {
		conn, err := Dial(serveRaw(t, c.pieces...), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		answer, err := conn.Do([]byte("GET / HTTP/1.1\r\n\r\n"))
		conn.Close()
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: error %v, want one with %q", c.name, err, c.fault)
			}
			continue
		}
		if err != nil || answer.Status != c.status || string(answer.Body) != c.body {
			t.Errorf("%s: %d %.20q, %v", c.name, answer.Status, answer.Body, err)
		}
		if answer.Closing != strings.Contains(c.pieces[0], "Close") {
			t.Errorf("%s: closing is %v", c.name, answer.Closing)
		}
	}
}
