package accounts

import (
	"container/list"
	"crypto/sha256"
	"math"
	"net"
	"strings"
	"sync"
	"time"
)

// loginThrottle slows down the guessing of passwords. It counts failed sign-ins; behind
// a few free ones each further failure doubles the pause before the next attempt.
//
// An attempt from a device that is not known is paused by what came from its own
// address: all failures there, and those there with this e-mail. Failures with the
// e-mail from other addresses never pause it, so an attacker cannot lock a person out by
// guessing with their e-mail from elsewhere. They are counted, though: an e-mail
// that is guessed at from many addresses leaves each of them one attempt instead
// of five, with longer pauses. An attempt from a known device (device.go) is
// paused by failures with that device alone.
//
// The table is bounded: the entry that was touched longest ago gives way. To push
// one out takes a quarter as many password checks as the table has entries.
type loginThrottle struct {
	now func() time.Time
	max int
	mu  struct {
		sync.Mutex // guards what follows
		entries    map[throttleKey]*list.Element
		recent     *list.List // of *throttleEntry, the latest first
	}
}

type throttleKey [sha256.Size]byte

type throttleEntry struct {
	key      throttleKey
	failures int
	last     time.Time
	until    time.Time
}

// pause is how failures turn into waiting.
type pause struct {
	free           int // failures without a pause
	first, longest time.Duration
}

var (
	// emailPause is for one e-mail from one address; attackedPause takes its place
	// while the e-mail is guessed at from many.
	emailPause    = pause{free: 5, first: time.Second, longest: 5 * time.Minute}
	attackedPause = pause{free: 1, first: 30 * time.Second, longest: 15 * time.Minute}
	// addressPause is for all e-mails from one address, networkPause for an IPv6
	// network of one customer with many addresses.
	addressPause = pause{free: 20, first: time.Second, longest: 15 * time.Minute}
	networkPause = pause{free: 100, first: time.Second, longest: 15 * time.Minute}
	// knownPause is for one known device or session.
	knownPause = pause{free: 5, first: time.Second, longest: 5 * time.Minute}
	// forgedPause is for devices shown from one address that are not known.
	forgedPause = pause{free: 10, first: time.Second, longest: 15 * time.Minute}
	// noPause only counts.
	noPause = pause{free: math.MaxInt}
)

// attackedAfter is the number of failures with an e-mail, from wherever, at which
// it counts as being guessed at.
const attackedAfter = 20

// failureMemory is after how long without a failure the count starts again.
const failureMemory = time.Hour

func (p pause) after(failures int) time.Duration {
	n := failures - p.free
	if n <= 0 {
		return 0
	}
	if n > 20 {
		return p.longest
	}
	return min(p.longest, p.first<<(n-1))
}

func newLoginThrottle(now func() time.Time, limit int) *loginThrottle {
	g := &loginThrottle{now: now, max: limit}
	g.mu.entries = map[throttleKey]*list.Element{}
	g.mu.recent = list.New()
	return g
}

// counted is an entry at which an attempt counts. A success clears the failures of one
// that is own to the e-mail or the device; elsewhere it takes back only this attempt:
// a person who has a password must not reset the count of guesses at others'.
type counted struct {
	key   throttleKey
	pause pause
	own   bool
}

// attempt is one sign-in under way.
type attempt struct {
	g       *loginThrottle
	counted []counted
}

// begin begins an attempt from a device that is not known. It counts as failed
// until it succeeds, so that attempts at the same time count as well. wait is
// positive when it must not be made yet.
func (g *loginThrottle) begin(email string, ip net.IP) (a attempt, wait time.Duration) {
	address, network := networks(ip)
	name := newThrottleKey("e", emailBytes(email))
	g.mu.Lock()
	defer g.mu.Unlock()
	pair := emailPause
	if e := g.find(name, g.now()); e != nil && e.failures >= attackedAfter {
		pair = attackedPause
	}
	counts := []counted{
		{key: name, pause: noPause},
		{key: newThrottleKey("p", address, emailBytes(email)), pause: pair, own: true},
		{key: newThrottleKey("a", address), pause: addressPause},
	}
	if network != nil {
		counts = append(counts, counted{key: newThrottleKey("n", network), pause: networkPause})
	}
	return g.beginLocked(counts)
}

// beginKnown begins an attempt from a known device, or with a session.
func (g *loginThrottle) beginKnown(device throttleKey) (a attempt, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.beginLocked([]counted{{key: device, pause: knownPause, own: true}})
}

// lookAtDevice reports whether a device that an address shows is to be looked at,
// and counts it as not known until recognised is called. It bounds the look-ups
// that invented devices cause.
func (g *loginThrottle) lookAtDevice(ip net.IP) (look bool, recognised func()) {
	address, _ := networks(ip)
	g.mu.Lock()
	defer g.mu.Unlock()
	a, wait := g.beginLocked([]counted{{key: newThrottleKey("f", address), pause: forgedPause}})
	return wait <= 0, a.undo
}

func (g *loginThrottle) beginLocked(counts []counted) (a attempt, wait time.Duration) {
	now := g.now()
	for _, c := range counts {
		if e := g.find(c.key, now); e != nil {
			wait = max(wait, e.until.Sub(now))
		}
	}
	if wait > 0 {
		return attempt{g: g}, wait
	}
	for _, c := range counts {
		g.fail(c.key, c.pause, now)
	}
	return attempt{g, counts}, 0
}

// succeeded clears the failures with this e-mail from this address, or with this
// device, and takes this attempt back elsewhere.
func (a attempt) succeeded() {
	a.g.mu.Lock()
	defer a.g.mu.Unlock()
	for _, c := range a.counted {
		if c.own {
			a.g.remove(c.key)
		} else {
			a.g.takeBack(c.key, c.pause)
		}
	}
}

// undo takes back an attempt at which the password was not looked at.
func (a attempt) undo() {
	a.g.mu.Lock()
	defer a.g.mu.Unlock()
	for _, c := range a.counted {
		a.g.takeBack(c.key, c.pause)
	}
}

func (g *loginThrottle) find(k throttleKey, now time.Time) *throttleEntry {
	el := g.mu.entries[k]
	if el == nil {
		return nil
	}
	e := el.Value.(*throttleEntry)
	if now.Sub(e.last) > failureMemory {
		g.remove(k)
		return nil
	}
	return e
}

func (g *loginThrottle) fail(k throttleKey, p pause, now time.Time) {
	e := g.find(k, now)
	if e == nil {
		for len(g.mu.entries) >= g.max {
			g.remove(g.mu.recent.Back().Value.(*throttleEntry).key)
		}
		e = &throttleEntry{key: k}
		g.mu.entries[k] = g.mu.recent.PushFront(e)
	} else {
		g.mu.recent.MoveToFront(g.mu.entries[k])
	}
	e.failures++
	e.last = now
	e.until = now.Add(p.after(e.failures))
}

func (g *loginThrottle) takeBack(k throttleKey, p pause) {
	el := g.mu.entries[k]
	if el == nil {
		return
	}
	e := el.Value.(*throttleEntry)
	if e.failures--; e.failures <= 0 {
		g.remove(k)
		return
	}
	e.until = e.last.Add(p.after(e.failures))
}

func (g *loginThrottle) remove(k throttleKey) {
	if el := g.mu.entries[k]; el != nil {
		g.mu.recent.Remove(el)
		delete(g.mu.entries, k)
	}
}

func (g *loginThrottle) size() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.mu.entries)
}

// newThrottleKey hashes what an entry is about; kind keeps kinds of entries apart.
func newThrottleKey(kind string, parts ...[]byte) throttleKey {
	h := sha256.New()
	h.Write([]byte(kind))
	for _, p := range parts {
		h.Write([]byte{byte(len(p) >> 8), byte(len(p))}) // no part has 64 KiB
		h.Write(p)
	}
	return throttleKey(h.Sum(nil))
}

// emailBytes is an e-mail as users are found by it.
func emailBytes(email string) []byte { return []byte(strings.ToLower(strings.TrimSpace(email))) }

// networks takes an IPv6 network of 64 bits for one address: that much each customer
// of a provider gets. Many get 48 bits, which is network; nil for IPv4.
func networks(ip net.IP) (address, network []byte) {
	if v4 := ip.To4(); v4 != nil {
		return v4, nil
	}
	if len(ip) == net.IPv6len {
		return ip[:8], ip[:6]
	}
	return ip, nil
}
