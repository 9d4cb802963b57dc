package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestS1ManyOfOneType (S1): of many counts, sums and filters on one type of events, which
// come and go, each event changes those that it concerns, and no other.
func TestS1ManyOfOneType(t *testing.T) {
	const people, skus = 4, 12
	rng := rand.New(rand.NewPCG(7, 7))
	oneByOneUpTo(t, 2)
	e := crowd(t, 19_800*dayMs, people)
	type happened struct{ n, sum [people]int }
	counts := [skus]happened{} // by article
	type question struct {
		id    string
		holds func(o int) bool
	}
	var asked []question
	all := func(o int) (n, sum int) {
		for i := range counts {
			n, sum = n+counts[i].n[o], sum+counts[i].sum[o]
		}
		return n, sum
	}
	ask := func(number, kinds, least int) {
		id, k, sku := fmt.Sprint("s", number), least+rng.IntN(30), rng.IntN(skus)
		text, q := "", question{id: id}
		switch rng.IntN(kinds) {
		case 0:
			text = fmt.Sprintf(`"count":{"op":">=","value":%d}`, k+1)
			q.holds = func(o int) bool { n, _ := all(o); return n >= k+1 }
		case 1:
			text = fmt.Sprintf(`"count":{"op":"=","value":%d}`, k+1)
			q.holds = func(o int) bool { n, _ := all(o); return n == k+1 }
		case 2:
			text = fmt.Sprintf(`"aggregate":{"fn":"sum","property":"value","op":">","value":%d}`, 5*k)
			q.holds = func(o int) bool { _, sum := all(o); return sum > 5*k }
		case 3:
			text = fmt.Sprintf(`"aggregate":{"fn":"avg","property":"value","op":">","value":%d}`, k%10)
			q.holds = func(o int) bool { n, sum := all(o); return n > 0 && sum > n*(k%10) }
		default:
			text = fmt.Sprintf(`"where":[{"property":"sku","op":"in","value":["sku-%d","sku-%d"]}],"count":{"op":">=","value":%d}`, sku, (sku+1)%skus, 1+k/6)
			q.holds = func(o int) bool { return counts[sku].n[o]+counts[(sku+1)%skus].n[o] >= 1+k/6 }
		}
		defineSegment(t, e, id, `{"kind":"activity","event":"act",`+text+`}`)
		asked = append(asked, q)
	}
	for number := range 80 {
		ask(number, 5, 4*number)
	}
	members := 0
	for step := range 1500 {
		o, sku, value := rng.IntN(people), rng.IntN(skus), rng.IntN(10)
		article := fmt.Sprintf(`"sku-%d"`, sku)
		if rng.IntN(4) == 0 {
			article = `["other",` + article + `]`
		}
		act(e, uint32(o), e.NowMs(), "act", fmt.Sprintf(`{"sku":%s,"value":%d}`, article, value))
		counts[sku].n[o]++
		counts[sku].sum[o] += value
		for _, x := range e.Transitions() {
			if !e.Has(x.Segment) {
				t.Fatalf("after %d events %s changes, which is gone", step+1, x.Segment)
			}
		}
		switch step % 50 {
		case 9:
			gone := rng.IntN(len(asked))
			e.Undefine(asked[gone].id)
			asked = append(asked[:gone], asked[gone+1:]...)
		case 19:
			// Those that come now find their state: it has counted from the first event on.
			n, _ := all(0)
			ask(100+step, 4, n)
			for !e.Live(asked[len(asked)-1].id) {
				e.Continue(100)
			}
		case 49:
			for o := range uint32(people) {
				for _, q := range asked {
					if have, want := e.Contains(q.id, o, e.NowMs()), q.holds(int(o)); have != want {
						t.Fatalf("after %d events, %s of %d: %v, want %v", step+1, q.id, o, have, want)
					} else if want {
						members++
					}
				}
			}
		}
	}
	if members < 500 {
		t.Errorf("%d members are too few to tell anything", members)
	}
}
