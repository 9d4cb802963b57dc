package shop

import (
	"container/heap"
	"fmt"
	"io"
	"math/rand/v2"
	"sort"
)

// generator is one history under way.
type generator struct {
	rng       *rand.Rand
	calendar  *calendar
	catalogue []product
	people    []customer
	orders    int
	made      int
	pending   queue
	totals    Totals
	out       io.Writer
}

// Generate writes the history as JSON lines in order of time.
func Generate(out io.Writer, o Options) (Totals, error) {
	if err := o.validate(); err != nil {
		return Totals{}, err
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x5107))
	g := &generator{rng: rng, calendar: newCalendar(o.Until, o.Days), catalogue: newCatalogue(rng), out: out}
	g.totals.ByType = map[string]int{}
	var activity []float64
	g.people, activity = newCustomers(rng, o.Customers, o.Days)
	for _, v := range g.visits(o, activity) {
		if err := g.flush(v.atMs); err != nil {
			return g.totals, err
		}
		g.visit(v)
	}
	return g.totals, g.flush(g.calendar.endMs)
}

// visits draws who comes when, in order of time.
func (g *generator) visits(o Options, activity []float64) []visit {
	browsing := o.Orders + o.Orders/2
	all := make([]visit, 0, o.Customers+o.Orders+browsing)
	for i := range g.people {
		all = append(all, visit{atMs: g.calendar.firstVisit(g.rng, &g.people[i]), who: uint32(i)})
	}
	for n := range o.Orders + browsing {
		who := choose(g.rng, activity)
		all = append(all, visit{atMs: g.calendar.visit(g.rng, &g.people[who]), who: uint32(who), buys: n < o.Orders})
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].atMs < all[j].atMs })
	return all
}

// add takes an event that is due at or after the present visit.
func (g *generator) add(e *event) {
	e.who.seen = true
	e.order = g.made
	g.made++
	heap.Push(&g.pending, e)
}

// flush writes what is due before the instant; what is due after the end of
// the history is never written.
func (g *generator) flush(beforeMs int64) error {
	for len(g.pending) > 0 && g.pending[0].atMs < min(beforeMs, g.calendar.endMs) {
		e := heap.Pop(&g.pending).(*event)
		line, err := e.line()
		if err != nil {
			return err
		}
		if _, err := g.out.Write(line); err != nil {
			return fmt.Errorf("writing the history: %w", err)
		}
		g.count(e)
	}
	return nil
}

func (g *generator) count(e *event) {
	t := &g.totals
	t.Events++
	t.ByType[e.EventType]++
	t.PurchasedCents += e.cents
	w := &e.who.written
	t.Profiles -= w.profiles()
	switch {
	case e.User.Email == "":
		w.external = true
	case e.User.ExternalID == "":
		w.email = true
	default:
		w.both = true
	}
	t.Profiles += w.profiles()
}
