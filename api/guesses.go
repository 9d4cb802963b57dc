package api

import (
	"container/list"
	"crypto/sha256"
	"net"
	"strings"
	"sync"
	"time"
)

// guesses slows down who guesses passwords. It counts failed sign-ins per
// e-mail and per address; behind a few free ones each further failure doubles
// the pause before the next attempt. The table is bounded: the entry that was
// touched longest ago gives way, and to push one out takes as many password
// checks as the table has entries.
type guesses struct {
	now func() time.Time
	max int
	mu  struct {
		sync.Mutex // guards what follows
		entries    map[guessKey]*list.Element
		recent     *list.List // of *guessEntry, the latest first
	}
}

type guessKey [sha256.Size]byte

type guessEntry struct {
	key      guessKey
	failures int
	last     time.Time
	until    time.Time
}

// pause is how failures turn into waiting.
type pause struct {
	free    int // failures without a pause
	longest time.Duration
}

var (
	// Anybody can make an e-mail wait, so its pause stays short; an address
	// hurts only itself.
	emailPause   = pause{free: 5, longest: 5 * time.Minute}
	addressPause = pause{free: 20, longest: 15 * time.Minute}
)

// guessMemory is after how long without a failure the count starts anew.
const guessMemory = time.Hour

func (p pause) after(failures int) time.Duration {
	n := failures - p.free
	if n <= 0 {
		return 0
	}
	if n > 20 {
		return p.longest
	}
	return min(p.longest, time.Second<<(n-1))
}

func newGuesses(now func() time.Time, limit int) *guesses {
	g := &guesses{now: now, max: limit}
	g.mu.entries = map[guessKey]*list.Element{}
	g.mu.recent = list.New()
	return g
}

// attempt is one sign-in under way.
type attempt struct {
	g              *guesses
	email, address guessKey
}

// begin counts an attempt as failed until it succeeds, so that attempts at the
// same time count as well. wait is positive when it must not be made yet.
func (g *guesses) begin(email string, ip net.IP) (a attempt, wait time.Duration) {
	a = attempt{g, emailKey(email), addressKey(ip)}
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range []guessKey{a.email, a.address} {
		if e := g.find(k, now); e != nil {
			wait = max(wait, e.until.Sub(now))
		}
	}
	if wait > 0 {
		return a, wait
	}
	g.fail(a.email, emailPause, now)
	g.fail(a.address, addressPause, now)
	return a, 0
}

// succeeded forgets the e-mail's failures and takes back this attempt's from
// the address: who has a password of their own must not reset the count of
// guesses at others'.
func (a attempt) succeeded() {
	a.g.mu.Lock()
	defer a.g.mu.Unlock()
	a.g.remove(a.email)
	a.g.takeBack(a.address, addressPause)
}

// undo takes back an attempt at which the password was not looked at.
func (a attempt) undo() {
	a.g.mu.Lock()
	defer a.g.mu.Unlock()
	a.g.takeBack(a.email, emailPause)
	a.g.takeBack(a.address, addressPause)
}

func (g *guesses) find(k guessKey, now time.Time) *guessEntry {
	el := g.mu.entries[k]
	if el == nil {
		return nil
	}
	e := el.Value.(*guessEntry)
	if now.Sub(e.last) > guessMemory {
		g.remove(k)
		return nil
	}
	return e
}

func (g *guesses) fail(k guessKey, p pause, now time.Time) {
	e := g.find(k, now)
	if e == nil {
		for len(g.mu.entries) >= g.max {
			g.remove(g.mu.recent.Back().Value.(*guessEntry).key)
		}
		e = &guessEntry{key: k}
		g.mu.entries[k] = g.mu.recent.PushFront(e)
	} else {
		g.mu.recent.MoveToFront(g.mu.entries[k])
	}
	e.failures++
	e.last = now
	e.until = now.Add(p.after(e.failures))
}

func (g *guesses) takeBack(k guessKey, p pause) {
	el := g.mu.entries[k]
	if el == nil {
		return
	}
	e := el.Value.(*guessEntry)
	if e.failures--; e.failures <= 0 {
		g.remove(k)
		return
	}
	e.until = e.last.Add(p.after(e.failures))
}

func (g *guesses) remove(k guessKey) {
	if el := g.mu.entries[k]; el != nil {
		g.mu.recent.Remove(el)
		delete(g.mu.entries, k)
	}
}

func (g *guesses) size() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.mu.entries)
}

func emailKey(email string) guessKey {
	return sha256.Sum256([]byte("e" + strings.ToLower(strings.TrimSpace(email))))
}

// addressKey takes an IPv6 network of 64 bits for one address: that much is
// handed to each customer of a provider.
func addressKey(ip net.IP) guessKey {
	if v4 := ip.To4(); v4 != nil {
		ip = v4
	} else if len(ip) == net.IPv6len {
		ip = ip[:8]
	}
	return sha256.Sum256(append([]byte("a"), ip...))
}
