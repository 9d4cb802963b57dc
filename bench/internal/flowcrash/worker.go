package flowcrash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/musterhq/muster/bench/internal/gate"
	"github.com/musterhq/muster/bench/internal/ledger"
	"github.com/musterhq/muster/bench/internal/surface"
)

const (
	// recent is how many of its newest people a worker acts on.
	recent = 30
	// maxEnrolments bounds the entries of a person into one flow: the server keeps ten
	// that have ended.
	maxEnrolments = 7
	// think is the usual bound of the pause between two acts of a worker.
	think = 12 * time.Millisecond
)

// worker acts until it is to finish, and then until nothing is open.
type worker struct {
	rng    *rand.Rand
	client *surface.Client
	world  *world
	book   book
	think  time.Duration
}

func (w *worker) run(ctx context.Context, finish <-chan struct{}) error {
	return gate.Until(ctx, finish, w.rng, w.think, func(ctx context.Context) error {
		if err := w.act(ctx); err != nil {
			return fmt.Errorf("worker %d: %w", w.book.worker, err)
		}
		return nil
	})
}

// act does one thing.
func (w *worker) act(ctx context.Context) error {
	people := w.book.people
	if len(people) < 5 || w.rng.IntN(100) < 12 {
		return w.addPerson(ctx)
	}
	p := people[len(people)-1-w.rng.IntN(min(recent, len(people)))]
	if p.other != nil {
		return w.actOnPair(ctx, p)
	}
	switch draw := w.rng.IntN(100); {
	case draw < 6 && len(w.book.events) > 0:
		return w.repeat(ctx)
	case draw < 14:
		return w.batch(ctx)
	case draw < 26:
		return w.call(ctx, p)
	case draw < 34:
		return w.join(ctx, p)
	case draw < 36 && !p.left && p.email != "":
		p.left = true
		return w.client.Console(ctx, "POST", "/profiles/"+p.profile+"/consent", object{"channel": "email", "status": "unsubscribed"}, nil)
	default:
		if e := w.something(p); e != nil {
			return w.post(ctx, w.rng.IntN(8) == 0, e)
		}
		return nil
	}
}

// addPerson makes a person, or a pair that is to be merged.
func (w *worker) addPerson(ctx context.Context) error {
	n := len(w.book.people)
	p := &person{external: fmt.Sprintf("x%d-%d", w.book.worker, n), tier: tierPlain}
	made := []*person{p}
	switch draw := w.rng.IntN(10); {
	case draw < 2:
		q := &person{email: fmt.Sprintf("y%d-%d@flow.example", w.book.worker, n), tier: tierPlain}
		p.other, q.other = q, p
		made = append(made, q)
	default:
		if draw < 8 {
			p.email = fmt.Sprintf("x%d-%d@flow.example", w.book.worker, n)
		}
		if w.rng.IntN(3) == 0 {
			p.tier = tierGold
		}
	}
	for _, x := range made {
		if err := w.post(ctx, false, &event{who: x, Event: ledger.Event{Type: "hello"}, attributes: object{"tier": x.tier}}); err != nil {
			return err
		}
		w.book.people = append(w.book.people, x)
	}
	return nil
}

// actOnPair has one of two order, or makes them one person.
func (w *worker) actOnPair(ctx context.Context, p *person) error {
	q := p.other
	switch {
	case !p.merged && p.orders+q.orders > 0 && w.rng.IntN(3) == 0:
		if p.external == "" {
			p, q = q, p
		}
		p.merged, q.merged = true, true
		w.book.merges++
		return w.post(ctx, false, &event{who: p, Event: ledger.Event{Type: "hello"}, alsoEmail: q.email})
	case p.orders < 2:
		p.orders++
		return w.post(ctx, false, &event{who: p, Event: ledger.Event{Type: "order_placed"}, properties: object{"total": orderTotal}})
	}
	return nil
}

// something is an event of a person, nil when there were enough.
func (w *worker) something(p *person) *event {
	e := func(count *int, most int, typ string, properties object) *event {
		if *count >= most {
			return nil
		}
		*count++
		return &event{who: p, Event: ledger.Event{Type: typ}, properties: properties}
	}
	switch w.rng.IntN(7) {
	case 0:
		return e(&p.orders, 3, "order_placed", object{"total": []int{orderTotal - 1, orderTotal, orderTotal + 50}[w.rng.IntN(3)]})
	case 1:
		return e(&p.visits, maxEnrolments, "visit", object{"page": []string{"home", pagePricing, pagePricing}[w.rng.IntN(3)]})
	case 2, 3:
		return e(&p.carts, maxEnrolments, "cart_filled", nil)
	case 4, 5:
		return e(&p.browses, maxEnrolments, "browsed", nil)
	default:
		return e(&p.signups, 3, "signed_up", nil)
	}
}

// batch posts what several people do.
func (w *worker) batch(ctx context.Context) error {
	var events []*event
	people := w.book.people
	for range 2 + w.rng.IntN(8) {
		if p := people[len(people)-1-w.rng.IntN(min(recent, len(people)))]; p.other == nil {
			if e := w.something(p); e != nil {
				events = append(events, e)
			}
		}
	}
	if len(events) == 0 {
		return nil
	}
	return w.post(ctx, w.rng.IntN(8) == 0, events...)
}

// answer is that of an event.
type answer struct {
	Success   bool    `json:"success"`
	ProfileID string  `json:"profile_id"`
	Error     *string `json:"error"`
}

// post enters new events into the ledger and posts them.
func (w *worker) post(ctx context.Context, giveUp bool, events ...*event) error {
	first := len(w.book.events)
	w.book.events = append(w.book.events, events...)
	items := make([]int, len(events))
	for i := range items {
		items[i] = first + i
	}
	return w.send(ctx, giveUp, items)
}

// repeat posts an event again that was acknowledged: nothing comes of it.
func (w *worker) repeat(ctx context.Context) error {
	n := w.rng.IntN(len(w.book.events))
	if !w.book.events[n].Acked {
		return nil
	}
	return w.send(ctx, false, []int{n})
}

func (w *worker) send(ctx context.Context, giveUp bool, items []int) error {
	answers := make([]answer, 1)
	var err error
	if len(items) == 1 {
		err = w.client.Call(ctx, surface.ByApp, "POST", "/api/v1/events", w.book.body(items[0]), &answers[0], giveUp)
	} else {
		bodies := make([]object, len(items))
		for i, n := range items {
			bodies[i] = w.book.body(n)
		}
		var all struct{ Results []answer }
		err = w.client.Call(ctx, surface.ByApp, "POST", "/api/v1/events/batch", object{"events": bodies}, &all, giveUp)
		answers = all.Results
	}
	switch {
	case err != nil && giveUp && errors.Is(err, surface.ErrNoAnswer):
		return nil
	case err != nil:
		return err
	case len(answers) != len(items):
		return fmt.Errorf("%d answers to %d events", len(answers), len(items))
	}
	for i, n := range items {
		a, e := answers[i], w.book.events[n]
		switch {
		case !a.Success:
			return fmt.Errorf("event %s was refused: %v", w.book.eventKey(n), a.Error)
		case e.who.profile == "":
			e.who.profile = a.ProfileID
		case e.who.profile != a.ProfileID && !e.who.merged:
			return fmt.Errorf("event %s went to profile %s, its person is %s", w.book.eventKey(n), a.ProfileID, e.who.profile)
		}
		e.Acked = true
	}
	return nil
}

// call enrols a person in flowCall, with a key.
func (w *worker) call(ctx context.Context, p *person) error {
	if p.calls >= maxEnrolments {
		return nil
	}
	p.calls++
	t := &trigger{who: p, fromMs: time.Now().UnixMilli()}
	key := w.book.triggerKey(len(w.book.triggers))
	w.book.triggers = append(w.book.triggers, t)
	by, path := surface.BySession, "/console/api/v1/flows/"
	if w.rng.IntN(2) == 0 {
		by, path = surface.ByKey, "/api/v1/custom-flows/"
	}
	body := object{"external_id": p.external, "idempotency_key": key, "data": object{"key": key}}
	giveUp := w.rng.IntN(8) == 0
	err := w.client.Call(ctx, by, "POST", path+w.world.flow(flowCall).id+"/trigger", body, nil, giveUp)
	t.toMs = time.Now().UnixMilli()
	var no *surface.Refusal
	switch {
	case err == nil:
		t.acked = true
	case errors.Is(err, surface.ErrNoAnswer) && giveUp:
	case errors.As(err, &no) && (no.Status == http.StatusConflict || by == surface.ByKey && no.Message == "the contact is in this flow already"):
		t.refused, t.repeated = true, no.Unanswered > 0
	default:
		return err
	}
	return nil
}

// join puts a person on the list that flowList looks at.
func (w *worker) join(ctx context.Context, p *person) error {
	if p.email == "" || p.left {
		return nil
	}
	p.listed = true
	body := object{"email": p.email, "external_id": p.external}
	return w.client.Call(ctx, surface.ByKey, "POST", "/api/v1/lists/"+w.world.places.list+"/contacts", body, nil, false)
}
