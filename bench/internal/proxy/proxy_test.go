package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers each line with itself.
func echo(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for s := bufio.NewScanner(c); s.Scan(); {
					fmt.Fprintln(c, s.Text())
				}
			}()
		}
	}()
	return ln.Addr().String()
}

type client struct {
	t *testing.T
	net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, p *Proxy) *client {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{t, c, bufio.NewReader(c)}
}

func (c *client) ask(line string, patience time.Duration) (string, error) {
	// What is asked is always sent: only the answer may be late.
	if err := errors.Join(c.SetWriteDeadline(time.Now().Add(time.Minute)), c.SetReadDeadline(time.Now().Add(patience))); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(c, line); err != nil {
		return "", err
	}
	return c.lines.ReadString('\n')
}

func TestProxy(t *testing.T) {
	p, err := Listen(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	passes := func(c *client, when string) {
		t.Helper()
		if line, err := c.ask("hello", time.Minute); line != "hello\n" {
			t.Fatalf("%s: %q, %v", when, line, err)
		}
	}
	a := dial(t, p)
	passes(a, "at first")

	p.Stall()
	p.Stall()
	if line, err := a.ask("late", 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("while it is stalled: %q, %v", line, err)
	}
	b := dial(t, p)
	if line, err := b.ask("late", 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a new connection while it is stalled: %q, %v", line, err)
	}
	p.Mend()
	for _, c := range []*client{a, b} {
		if line, err := c.ask("next", time.Minute); line != "late\n" {
			t.Fatalf("what was sent meanwhile: %q, %v", line, err)
		}
	}

	p.Stall()
	p.Cut()
	if line, err := b.ask("cut", time.Minute); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a connection that was cut: %q, %v", line, err)
	}
	if conn, err := net.Dial("tcp", p.Addr()); err == nil { // it may be gone already
		c := &client{t, conn, bufio.NewReader(conn)}
		defer c.Close()
		if line, err := c.ask("cut", time.Minute); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a new connection while it is cut: %q, %v", line, err)
		}
	}
	p.Mend()
	d := dial(t, p)
	passes(d, "mended")

	// A server that ends the connection is passed on.
	if err := d.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := d.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if line, err := d.lines.ReadString('\n'); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("behind the end: %q, %v", line, err)
	}
}
