package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/musterhq/muster/bench/internal/gate"
	"github.com/musterhq/muster/bench/internal/surface"
)

// counts is what a worker did.
type counts struct {
	requests, retried, repeated, twins, givenUp int
}

// worker posts until it is to finish, and then until nothing is open.
type worker struct {
	plan    plan
	book    *book
	people  *people
	site    *surface.Site
	clients [2]*client
	counts  counts
	// think bounds the random pause between requests.
	think time.Duration
}

func newWorker(number int, seed uint64, site *surface.Site, people *people, think time.Duration) *worker {
	l := &book{worker: number}
	w := &worker{book: l, people: people, site: site, think: think}
	w.plan = plan{
		rng: rand.New(rand.NewPCG(seed, uint64(number)+1)), book: l, people: people, batches: number%2 == 1,
	}
	if w.plan.batches {
		// Batches would otherwise make more events than a check wants to hold.
		w.think = max(think, 6*time.Millisecond)
	}
	for i := range w.clients {
		w.clients[i] = newClient(site)
	}
	return w
}

// run works until finish is closed; what is open then is still delivered. An
// error is a broken promise of the server, or ctx's.
func (w *worker) run(ctx context.Context, finish <-chan struct{}) error {
	defer func() {
		for i := range w.clients {
			w.clients[i].caller.Close()
		}
	}()
	return gate.Until(ctx, finish, w.plan.rng, w.think, func(ctx context.Context) error { return w.deliver(ctx, w.plan.next()) })
}

// deliver sends a request until it is acknowledged or given up.
func (w *worker) deliver(ctx context.Context, r request) error {
	for _, n := range r.items {
		if w.book.events[n].Acked {
			w.counts.repeated++
		}
	}
	open := []request{r}
	var err error
	for try := 0; len(open) > 0; try++ {
		if try >= w.site.Tries {
			return fmt.Errorf("request with key %s was tried %d times: %w", w.book.key(open[0].items[0]), try, err)
		}
		if stopped := w.site.Gate.Wait(ctx); stopped != nil {
			return errors.Join(stopped, err)
		}
		if try > 0 {
			w.counts.retried++
		}
		err = w.send(open[0])
		switch {
		case err == nil:
			open = open[1:]
		case !errors.Is(err, surface.ErrNoAnswer):
			return fmt.Errorf("worker %d, key %s: %w", w.book.worker, w.book.key(open[0].items[0]), err)
		case r.giveUp:
			w.counts.givenUp += len(r.items)
			return nil
		default:
			if len(open) == 1 {
				open = w.plan.split(open[0])
			}
			time.Sleep(w.site.Pause)
		}
	}
	return nil
}

// send sends a request once, or a twin twice at once, and enters the answer.
func (w *worker) send(r request) error {
	w.counts.requests++
	body := w.book.body(r)
	if !r.twin {
		ids, err := w.clients[0].post(body, len(r.items), r.batch)
		if err != nil {
			return err
		}
		return w.enter(r, ids)
	}
	w.counts.twins++
	type answer struct {
		ids []string
		err error
	}
	other := make(chan answer, 1)
	go func() {
		ids, err := w.clients[1].post(body, len(r.items), r.batch)
		other <- answer{ids, err}
	}()
	ids, err := w.clients[0].post(body, len(r.items), r.batch)
	second := <-other
	// One acknowledgement delivers the request, two must agree.
	for _, a := range []answer{{ids, err}, second} {
		if a.err == nil {
			if err := w.enter(r, a.ids); err != nil {
				return err
			}
		} else if !errors.Is(a.err, surface.ErrNoAnswer) {
			return a.err
		}
	}
	if err != nil && second.err != nil {
		return err
	}
	return nil
}

// enter notes an acknowledgement.
func (w *worker) enter(r request, ids []string) error {
	for i, n := range r.items {
		e := &w.book.events[n]
		if err := w.people.answered(e, ids[i]); err != nil {
			return err
		}
		e.Acked = true
	}
	return nil
}
