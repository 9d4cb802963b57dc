package accounts

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/servertest"
)

var home = net.IPv4(192, 0, 2, 1)

// failN makes attempts that fail, each as soon as it may be made.
func failN(t *testing.T, g *loginThrottle, c *servertest.Clock, email string, ip net.IP, n int) (waited time.Duration) {
	t.Helper()
	for range n {
		_, wait := g.begin(email, ip)
		if wait > 0 {
			waited += wait
			c.Advance(wait)
			if _, wait = g.begin(email, ip); wait > 0 {
				t.Fatalf("still paused for %s after waiting", wait)
			}
		}
	}
	return waited
}

func TestGuessesPausePerEmail(t *testing.T) {
	c := servertest.NewClock(time.Unix(1e9, 0))
	g := newLoginThrottle(c.Now, 100)
	if w := failN(t, g, c, "a@x.io", home, 5); w != 0 {
		t.Errorf("the first five attempts waited %s", w)
	}
	if _, wait := g.begin(" A@X.io", home); wait != 0 { // however it is written
		t.Errorf("the fifth failure already pauses for %s", wait)
	}
	if _, wait := g.begin("a@x.io", home); wait != time.Second {
		t.Errorf("after six failures the pause is %s, want 1 s", wait)
	}
	c.Advance(time.Second)
	if w := failN(t, g, c, "a@x.io", home, 4); w != 2*time.Second+4*time.Second+8*time.Second {
		t.Errorf("pauses do not double: waited %s", w)
	}
	failN(t, g, c, "a@x.io", home, 8)
	if _, wait := g.begin("a@x.io", home); wait != emailPause.longest {
		t.Errorf("the longest pause is %s, want %s", wait, emailPause.longest)
	}
	if _, wait := g.begin("b@x.io", home); wait != 0 {
		t.Errorf("another e-mail waits %s", wait)
	}
	c.Advance(failureMemory + time.Second)
	if _, wait := g.begin("a@x.io", home); wait != 0 {
		t.Errorf("failures are not forgotten: %s", wait)
	}
}

// TestGuessesFromElsewhere: however often an e-mail is guessed at elsewhere, an
// address that has not failed may try it; each that guesses has to wait longer.
func TestGuessesFromElsewhere(t *testing.T) {
	c := servertest.NewClock(time.Unix(1e9, 0))
	g := newLoginThrottle(c.Now, 10_000)
	for i := range 500 {
		if _, wait := g.begin("a@x.io", net.IPv4(10, 0, byte(i>>8), byte(i))); wait != 0 {
			t.Fatalf("address %d waits %s at its first attempt", i, wait)
		}
	}
	if _, wait := g.begin("a@x.io", home); wait != 0 {
		t.Errorf("an address that never failed waits %s", wait)
	}
	if _, wait := g.begin("a@x.io", home); wait != 0 {
		t.Errorf("the first failure pauses for %s", wait)
	}
	if _, wait := g.begin("a@x.io", home); wait != attackedPause.first {
		t.Errorf("after the second failure with an e-mail under attack the pause is %s, want %s", wait, attackedPause.first)
	}
	if _, wait := g.begin("quiet@x.io", home); wait != 0 {
		t.Errorf("another e-mail waits %s", wait)
	}
}

// TestGuessesKnownDevice: a known device waits for its own failures alone, and
// makes no other user wait.
func TestGuessesKnownDevice(t *testing.T) {
	c := servertest.NewClock(time.Unix(1e9, 0))
	g := newLoginThrottle(c.Now, 100)
	device, other := newThrottleKey("d", []byte("1")), newThrottleKey("d", []byte("2"))
	failN(t, g, c, "a@x.io", home, 30)
	for i := range 6 {
		if _, wait := g.beginKnown(device); wait != 0 {
			t.Fatalf("attempt %d waits %s", i, wait)
		}
	}
	if _, wait := g.beginKnown(device); wait != time.Second {
		t.Errorf("after six failures of its own it waits %s, want 1 s", wait)
	}
	if _, wait := g.beginKnown(other); wait != 0 {
		t.Errorf("another device waits %s", wait)
	}
	c.Advance(time.Second)
	a, wait := g.beginKnown(device)
	if wait != 0 {
		t.Fatalf("still waits %s", wait)
	}
	a.succeeded()
	for range 6 {
		if _, wait = g.beginKnown(device); wait != 0 {
			t.Errorf("a success clears nothing: %s", wait)
		}
	}
}

func TestGuessesPausePerAddress(t *testing.T) {
	c := servertest.NewClock(time.Unix(1e9, 0))
	g := newLoginThrottle(c.Now, 1000)
	for i := range 21 {
		if _, wait := g.begin(fmt.Sprintf("%d@x.io", i), net.ParseIP(fmt.Sprintf("2001:db8::%x", i+1))); wait != 0 {
			t.Fatalf("attempt %d waits %s", i, wait)
		}
	}
	if _, wait := g.begin("new@x.io", net.ParseIP("2001:db8::ffff")); wait != time.Second {
		t.Errorf("another e-mail from the same network waits %s, want 1 s", wait)
	}
	for i := range 79 { // 100 of the customer's network in all, with the 21 of before
		if _, wait := g.begin("new@x.io", net.ParseIP(fmt.Sprintf("2001:db8:0:%x::1", i+1))); wait != 0 {
			t.Errorf("another network waits %s", wait)
		}
	}
	g.begin("new@x.io", net.ParseIP("2001:db8:0:8000::1"))
	if _, wait := g.begin("new@x.io", net.ParseIP("2001:db8:0:8001::1")); wait != time.Second {
		t.Errorf("after 101 failures another part of the customer's network waits %s, want 1 s", wait)
	}
	if _, wait := g.begin("new@x.io", net.ParseIP("2001:db8:1::1")); wait != 0 {
		t.Errorf("another customer waits %s", wait)
	}
}

// TestGuessesSuccess: a success clears the e-mail but not what the address did
// to others; an attempt that was not judged counts for nothing.
func TestGuessesSuccess(t *testing.T) {
	c := servertest.NewClock(time.Unix(1e9, 0))
	g := newLoginThrottle(c.Now, 100)
	failN(t, g, c, "victim@x.io", home, 20)
	c.Advance(attackedPause.longest)
	for range 3 {
		a, wait := g.begin("own@x.io", home)
		if wait > 0 {
			t.Fatalf("attempt waits %s", wait)
		}
		a.succeeded()
	}
	if e := g.find(newThrottleKey("a", home.To4()), c.Now()); e == nil || e.failures != 20 {
		t.Errorf("the address has %+v, want its 20 failures", e)
	}
	if e := g.find(newThrottleKey("p", home.To4(), []byte("own@x.io")), c.Now()); e != nil {
		t.Errorf("after a success the e-mail has %+v", e)
	}
	for range 50 {
		a, wait := g.begin("undone@x.io", net.IPv4(10, 0, 0, 1))
		if wait > 0 {
			t.Fatalf("attempts that were undone pause for %s", wait)
		}
		a.undo()
	}
}

// TestGuessesBounded (Q1): the table holds no more than its limit, and drops
// what was touched longest ago.
func TestGuessesBounded(t *testing.T) {
	c := servertest.NewClock(time.Unix(1e9, 0))
	g := newLoginThrottle(c.Now, 50)
	for i := range 500 {
		failN(t, g, c, fmt.Sprintf("%d@x.io", i), net.IPv4(10, 0, byte(i>>8), byte(i)), 1)
		failN(t, g, c, "busy@x.io", net.IPv4(10, 1, byte(i>>8), byte(i)), 1)
	}
	if n := g.size(); n > 50 {
		t.Errorf("the table has %d entries, its limit is 50", n)
	}
	if g.find(newThrottleKey("e", []byte("busy@x.io")), c.Now()) == nil {
		t.Error("the e-mail that is guessed at all the time was dropped")
	}
}
