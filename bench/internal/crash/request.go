package crash

import (
	"fmt"
	"math/rand/v2"

	"github.com/musterhq/muster/bench/internal/ledger"
)

// request is events that are sent together. items are numbers in the worker's
// book; one may be there twice.
type request struct {
	items []int
	batch bool
	// giveUp makes the worker not repeat the request when it gets no answer.
	giveUp bool
	// twin sends it on two connections at once.
	twin bool
}

// plan is how a worker chooses its requests.
type plan struct {
	rng     *rand.Rand
	book    *book
	people  *people
	batches bool
}

const maxBatch = 100

// next makes a new request and enters its events into the book.
func (p *plan) next() request {
	switch draw := p.rng.IntN(100); {
	case draw < 12 && len(p.book.events) > 0:
		return p.repeat()
	case draw < 30:
		r := p.fresh(p.size(), true)
		r.giveUp = true
		return r
	case draw < 36 && !p.batches:
		r := p.fresh(1, false)
		r.twin = true
		return r
	default:
		return p.fresh(p.size(), false)
	}
}

func (p *plan) size() int {
	if p.batches {
		return 1 + p.rng.IntN(maxBatch)
	}
	return 1
}

// fresh makes a request of new events. In a batch, some stand there twice.
func (p *plan) fresh(n int, giveUp bool) request {
	r := request{batch: p.batches}
	for range n {
		if len(r.items) > 0 && p.rng.IntN(40) == 0 {
			r.items = append(r.items, r.items[p.rng.IntN(len(r.items))])
			continue
		}
		e := event{Event: ledger.Event{Type: typeSure}, user: p.user(), value: 1 + p.rng.IntN(100)}
		if giveUp {
			e.Type = typeMaybe
		}
		e.form = p.form(e.user)
		r.items = append(r.items, p.book.add(e))
	}
	return r
}

// repeat sends acknowledged events again, old ones as well, in a batch with
// new ones among them.
func (p *plan) repeat() request {
	r := request{batch: p.batches}
	for range p.size() {
		if n := p.rng.IntN(len(p.book.events)); p.book.events[n].Acked {
			r.items = append(r.items, n)
		}
	}
	if len(r.items) == 0 || p.batches && p.rng.IntN(2) == 0 {
		r.items = append(r.items, p.fresh(1, false).items...)
	}
	return r
}

func (p *plan) user() user {
	if p.rng.IntN(4) == 0 {
		return user{shared, p.rng.IntN(sharedUsers)}
	}
	return user{p.book.worker, p.rng.IntN(ownUsers)}
}

// form chooses identifiers so that the user stays one profile: an e-mail or a
// phone goes alone only once it is known to be stitched to the external id.
func (p *plan) form(u user) form {
	answered, both, phone := p.people.known(u)
	switch {
	case u.worker == shared || !answered:
		return formExternal
	case phone:
		return form(p.rng.IntN(int(formPhone) + 1))
	case both:
		return []form{formExternal, formBoth, formEmail, formAll}[p.rng.IntN(4)]
	default:
		return formBoth
	}
}

// split divides a request that got no answer, as clients do that queue events.
func (p *plan) split(r request) []request {
	if !r.batch || len(r.items) < 2 || p.rng.IntN(3) > 0 {
		return []request{r}
	}
	middle := 1 + p.rng.IntN(len(r.items)-1)
	a, b := r, r
	a.items, b.items = r.items[:middle], r.items[middle:]
	return []request{a, b}
}

// body is the request's JSON.
func (l *book) body(r request) []byte {
	if !r.batch {
		return l.appendEvent(nil, r.items[0])
	}
	b := []byte(`{"events":[`)
	for i, n := range r.items {
		if i > 0 {
			b = append(b, ',')
		}
		b = l.appendEvent(b, n)
	}
	return append(b, `]}`...)
}

func (l *book) appendEvent(b []byte, n int) []byte {
	e := &l.events[n]
	b = fmt.Appendf(b, `{"event_type":%q,"user":{`, e.Type)
	if e.form.has(formExternal) {
		b = fmt.Appendf(b, `"external_id":%q,`, e.user.externalID())
	}
	if e.form.has(formEmail) {
		b = fmt.Appendf(b, `"email":%q,`, e.user.email())
	}
	if e.form.has(formPhone) {
		b = fmt.Appendf(b, `"phone":%q,`, e.user.phone())
	}
	return fmt.Appendf(b, `"attributes":{"last":%d}},"properties":{"value":%d},"idempotency_key":%q}`, n, e.value, l.key(n))
}
