package crash

import (
	"fmt"
	"maps"
	"sync"

	"github.com/musterhq/muster/bench/internal/ledger"
)

// The event types. Events of requests that may be given up have their own, so
// that the count of the others is known exactly.
const (
	typeSure  = "crash_sure"
	typeMaybe = "crash_maybe"
)

// ownUsers is how many users belong to one worker alone; sharedUsers belong to
// all.
const (
	ownUsers    = 60
	sharedUsers = 25
	// shared is the worker number of shared users.
	shared = -1
)

// user is a person events are sent for.
type user struct {
	worker, number int
}

func (u user) externalID() string {
	if u.worker == shared {
		return fmt.Sprintf("crash-shared-%d", u.number)
	}
	return fmt.Sprintf("crash-%d-%d", u.worker, u.number)
}

func (u user) email() string { return u.externalID() + "@crash.example" }

// phone is known by its digits alone.
func (u user) phone() string { return fmt.Sprintf("+1 555 %03d %04d", u.worker+1, u.number) }

// book is what one worker's clients know of their events. Event n has key
// "k<worker>-<n>". It is used by the worker's goroutine until that has ended.
type book struct {
	worker int
	events []event
}

// event is one event as it was sent.
type event struct {
	ledger.Event
	user  user
	value int
	// form is which identifiers it carried.
	form form
}

// form says which identifiers an event carries.
type form uint8

const (
	formExternal form = iota
	formBoth          // external id and e-mail
	formEmail
	formAll // and phone
	formPhone
)

// has reports whether events of a form carry another form's identifier.
func (f form) has(other form) bool {
	return f == other || f == formAll || f == formBoth && other != formPhone
}

func (l *book) key(n int) string { return fmt.Sprintf("k%d-%d", l.worker, n) }

func (l *book) add(e event) int {
	l.events = append(l.events, e)
	return len(l.events) - 1
}

// sure reports whether the event is repeated until it is acknowledged.
func (e *event) sure() bool { return e.Type == typeSure }

// people is which profile each user was answered, over all workers.
type people struct {
	mu struct {
		sync.Mutex
		profiles map[user]string
		// both: an event with external id and e-mail was acknowledged; phone: one with
		// the phone as well.
		both, phone map[user]bool
	}
}

func newPeople() *people {
	p := &people{}
	p.mu.profiles = map[user]string{}
	p.mu.both, p.mu.phone = map[user]bool{}, map[user]bool{}
	return p
}

// answered notes the profile an event was answered with; an error means that
// the user had another one before.
func (p *people) answered(e *event, profileID string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, ok := p.mu.profiles[e.user]; ok && before != profileID {
		return fmt.Errorf("user %s was profile %s before and is %s now", e.user.externalID(), before, profileID)
	}
	p.mu.profiles[e.user] = profileID
	if e.form == formBoth || e.form == formAll {
		p.mu.both[e.user] = true
	}
	if e.form == formAll {
		p.mu.phone[e.user] = true
	}
	return nil
}

// known reports whether the user's profile was ever answered, and whether the
// e-mail and the phone are known to belong to it.
func (p *people) known(u user) (answered, both, phone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, answered = p.mu.profiles[u]
	return answered, p.mu.both[u], p.mu.phone[u]
}

// all is a copy of the profiles answered.
func (p *people) all() map[user]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.mu.profiles)
}
