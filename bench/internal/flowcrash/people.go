package flowcrash

import (
	"fmt"

	"github.com/musterhq/muster/bench/internal/ledger"
)

const (
	tierGold    = "gold"
	tierPlain   = "plain"
	orderTotal  = 100
	pagePricing = "pricing"
)

// person is a person that events are about. A worker's own until the worker has
// ended.
type person struct {
	external, email string // one may be empty
	tier            string
	profile         string // as the first event was answered
	// other half of a pair that is to be one person; nil for most.
	other  *person
	merged bool

	orders, visits, carts, browses, signups, calls int
	listed, left                                   bool
}

// user is how an event names the person.
func (p *person) user() object {
	u := object{}
	if p.external != "" {
		u["external_id"] = p.external
	}
	if p.email != "" {
		u["email"] = p.email
	}
	return u
}

// event is one event as it was sent.
type event struct {
	ledger.Event
	who        *person
	properties object
	attributes object
	alsoEmail  string // joins another person to this one
}

// trigger is one call of flowCall.
type trigger struct {
	who *person
	// acked triggers have enrolled, refused ones have not; of others it is not
	// known.
	acked, refused bool
	// repeated reports that it was refused after a request without an answer, which may
	// have been carried out yet.
	repeated     bool
	fromMs, toMs int64
}

// book is one worker's record of what it did. It is the worker's own until it
// has ended.
type book struct {
	worker   int
	people   []*person
	events   []*event
	triggers []*trigger
	merges   int
}

func (l *book) eventKey(n int) string   { return fmt.Sprintf("e%d-%d", l.worker, n) }
func (l *book) triggerKey(n int) string { return fmt.Sprintf("t%d-%d", l.worker, n) }

// body is event n as it is posted.
func (l *book) body(n int) object {
	e := l.events[n]
	user := e.who.user()
	if e.attributes != nil {
		user["attributes"] = e.attributes
	}
	if e.alsoEmail != "" {
		user["email"] = e.alsoEmail
	}
	key := l.eventKey(n)
	properties := object{"key": key}
	for k, v := range e.properties {
		properties[k] = v
	}
	return object{"event_type": e.Type, "user": user, "properties": properties, "idempotency_key": key}
}
