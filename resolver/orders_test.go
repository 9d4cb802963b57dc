package resolver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/resolver/inapp"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/orders"
	"github.com/musterhq/muster/resolver/outbox"
)

func orderEvent(typ, email, properties string) eventlog.Event {
	e := ev("email", email)
	e.Type, e.Properties = []byte(typ), []byte(properties)
	return e
}

// revenue is the revenue of a person by currency, from the state.
func (r *recorder) revenue(email string) string {
	r.t.Helper()
	o, ok := r.view().Profiles().ResolveText(r.idOf(email))
	if !ok {
		r.t.Fatalf("%s is on no profile", email)
	}
	var out []string
	for _, f := range r.view().Orders().Summary(o).Totals {
		out = append(out, fmt.Sprintf("%d %s %s", f.Orders, f.Revenue(), f.Currency))
	}
	return strings.Join(out, ", ")
}

func (r *recorder) expectRevenue(email, want string) {
	r.t.Helper()
	if got := r.revenue(email); got != want {
		r.t.Fatalf("revenue of %s is %q, want %q", email, got, want)
	}
}

// TestOrders: an order counts once, however often it is repeated; a refund takes off what is
// left; what is not as documented is an event like others.
func TestOrders(t *testing.T) {
	t.Parallel()
	r := newDurable(t, DefaultSettings())
	revenue := r.segment(`{"kind":"activity","event":"revenue_recorded","where":[{"property":"currency","op":"=","value":"EUR"}],"aggregate":{"fn":"sum","property":"amount","op":">=","value":50}}`)
	bought := r.segment(`{"kind":"activity","event":"order_placed","count":{"op":">=","value":2}}`)
	sends := func(e eventlog.Event, status EventStatus, warning string) {
		t.Helper()
		out := r.events(e).Events[0]
		if out.Status != status || !strings.Contains(out.Warning(), warning) || warning == "" && out.Warning() != "" {
			t.Fatalf("%s %s: status %d, warning %q", e.Type, e.Properties, out.Status, out.Warning())
		}
	}
	sends(orderEvent("order_placed", "a@x.io", `{"currency":"eur","order_id":"1","total":59.970000000000006,"items":[{"product_id":"p","quantity":3,"price":19.99}]}`), EventAccepted, "")
	r.expectRevenue("a@x.io", "1 59.97 EUR")
	sends(orderEvent("order_placed", "a@x.io", `{"currency":"EUR","order_id":"1","total":70}`), EventDuplicate, "not recorded again")
	sends(orderEvent("order_placed", "b@x.io", `{"currency":"EUR","order_id":"1","total":70}`), EventDuplicate, "not recorded again")
	r.expectRevenue("a@x.io", "1 59.97 EUR")
	if n, m := r.countIn(revenue), r.countIn(bought); n != 1 || m != 0 {
		t.Fatalf("%d with revenue, %d with two orders", n, m)
	}
	for _, bad := range []string{`{}`, `{"order_id":"2","total":1}`, `{"order_id":2,"total":1,"currency":"EUR"}`, `{"order_id":"2","total":"1","currency":"EUR"}`, `{"order_id":"2","total":-1,"currency":"EUR"}`,
		`{"order_id":"2","total":1,"currency":"EURO"}`, `{"order_id":" ","total":1,"currency":"EUR"}`, `{"order_id":"2","total":1e11,"currency":"EUR"}`, `{"order_id":"2","total":1,"currency":"EUR","items":{}}`,
		`{"order_id":"\u0000kAAAAAAAAAAAAAAAAAAAAAA","total":1,"currency":"EUR"}`, `{"ORDER_ID":"2","total":1,"currency":"EUR"}`} {
		sends(orderEvent("order_placed", "a@x.io", bad), EventAccepted, "not as an order")
	}
	for _, bad := range []string{`{}`, `{"order_id":"1","amount":0}`, `{"order_id":"1","amount":"5"}`} {
		sends(orderEvent("order_refunded", "a@x.io", bad), EventAccepted, "not as a refund")
	}
	sends(orderEvent("cart_updated", "a@x.io", `{"items":1}`), EventAccepted, "not as a cart")
	// Whatever else it says, the same id is a repeat, also of a browser's copy.
	flow := r.flow(`{"name":"x","reentry":"after_exit","trigger":{"type":"event","event":"order_placed"},"steps":[{"id":"t","type":"tag","add":["x"],"next":null}]}`)
	for _, bad := range []string{`{"order_id":"1"}`, `{"order_id":"1","total":"1","currency":5}`, `{"order_id":"1","total":1,"currency":"EUR","items":{}}`} {
		sends(orderEvent("order_placed", "b@x.io", bad), EventDuplicate, "not recorded again")
	}
	copied := orderEvent("order_placed", "b@x.io", `{"order_id":"1","total":59.97,"currency":"EUR"}`)
	copied.Public = true
	sends(copied, EventDuplicate, "not recorded again")
	if n := r.flowState(flow).Counts.Entered; n != 0 {
		t.Fatalf("repeats started %d flows", n)
	}
	public := orderEvent("order_placed", "a@x.io", `{"order_id":"3","total":1,"currency":"EUR"}`)
	public.Public = true
	sends(public, EventAccepted, "browser")
	r.expectRevenue("a@x.io", "1 59.97 EUR")
	r.reload()
	sends(orderEvent("order_refunded", "b@x.io", `{"order_id":"1","amount":9.97}`), EventAccepted, "")
	r.expectRevenue("a@x.io", "1 50.00 EUR")
	if n := r.countIn(revenue); n != 1 {
		t.Fatalf("%d with revenue", n)
	}
	sends(orderEvent("order_refunded", "a@x.io", `{"order_id":"1","amount":60}`), EventAccepted, "no more than what is left")
	sends(orderEvent("order_refunded", "a@x.io", `{"order_id":"1"}`), EventAccepted, "no more than what is left")
	r.expectRevenue("a@x.io", "1 0.00 EUR")
	if n := r.countIn(revenue); n != 0 {
		t.Fatalf("%d with revenue", n)
	}
	// A refund may come first, and be of another person.
	sends(orderEvent("order_refunded", "b@x.io", `{"order_id":"late","amount":3}`), EventAccepted, "")
	r.expectRevenue("b@x.io", "")
	sends(orderEvent("order_placed", "a@x.io", `{"order_id":"late","total":10,"currency":"USD"}`), EventAccepted, "")
	r.expectRevenue("a@x.io", "1 0.00 EUR, 1 7.00 USD")
	r.expectRevenue("b@x.io", "")
	r.reload()
	for _, d := range r.view().Orders().Totals() {
		if d.Currency == "EUR" && (d.Orders != 1 || d.Revenue() != 0) || d.Currency == "USD" && d.Revenue() != 70_000 {
			t.Fatalf("%+v", d)
		}
	}
	// What came under older rules is no order.
	r.eventsUnder(8, orderEvent("order_placed", "a@x.io", `{"order_id":"old","total":10,"currency":"USD"}`))
	r.expectRevenue("a@x.io", "1 0.00 EUR, 1 7.00 USD")
}

// TestCarts: the newest cart is kept, and an order at its time or later follows it.
func TestCarts(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	at := func(e eventlog.Event, ms int64) { e.HasTime, e.TimeMs = true, ms; r.events(e) }
	cart := func(id string, ms int64) {
		at(orderEvent("cart_updated", "a@x.io", fmt.Sprintf(`{"cart_id":%q,"currency":"EUR","items":[{"name":"Shoe"}],"total":5}`, id)), ms)
	}
	expect := func(id string, ordered bool) {
		t.Helper()
		o, _ := r.view().Profiles().ResolveText(r.idOf("a@x.io"))
		if s := r.view().Orders().Summary(o); s.Cart.ID != id || s.Ordered != ordered || s.Cart.Count != 1 || s.Cart.Items[0] != (orders.Item{Name: "Shoe", Quantity: 1}) {
			t.Fatalf("%+v %+v", s, s.Cart)
		}
	}
	cart("one", r.now-10)
	cart("older", r.now-20)
	expect("one", false)
	at(orderEvent("order_placed", "a@x.io", `{"order_id":"1","total":5,"currency":"EUR"}`), r.now-15)
	expect("one", false)
	at(orderEvent("order_placed", "a@x.io", `{"order_id":"2","total":5,"currency":"EUR"}`), r.now-10)
	expect("one", true)
	cart("two", r.now-5)
	expect("two", false)
}

// TestOrdersOfAProfileAreBounded: behind the bound an order is an event.
func TestOrdersOfAProfileAreBounded(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	var evs []eventlog.Event
	for i := range orders.MaxOrders + 1 {
		evs = append(evs, orderEvent("order_placed", "a@x.io", fmt.Sprintf(`{"order_id":"%d","total":0.01,"currency":"EUR"}`, i)))
	}
	out := r.events(evs...)
	if w := out.Events[orders.MaxOrders].Warning(); !strings.Contains(w, "1000 orders") || out.Events[orders.MaxOrders-1].Warning() != "" {
		t.Fatal(w)
	}
	r.expectRevenue("a@x.io", "1000 10.00 EUR")
	o, _ := r.view().Profiles().ResolveText(r.idOf("a@x.io"))
	n := 0
	for next := (*orders.Position)(nil); ; {
		var page []orders.Order
		page, next = r.view().Orders().Orders(o, next, 300)
		if n += len(page); next == nil {
			break
		}
	}
	if n != orders.MaxOrders {
		t.Fatalf("%d orders are listed", n)
	}
	codes := strings.Fields("EUR AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB FJD FKP GBP GEL GHS GIP GMD GNF GTQ")
	if len(codes) != orders.MaxCurrencies {
		t.Fatal(len(codes))
	}
	for i, code := range codes {
		r.events(orderEvent("order_placed", "b@x.io", fmt.Sprintf(`{"order_id":"c%d","total":1,"currency":%q}`, i, code)))
	}
	if w := r.events(orderEvent("order_placed", "b@x.io", `{"order_id":"cx","total":1,"currency":"USD"}`)).Events[0].Warning(); w != "" && !strings.Contains(w, "most currencies") {
		t.Fatal(w)
	}
	if n := len(r.view().Orders().Totals()); n != orders.MaxCurrencies {
		t.Fatalf("%d currencies", n)
	}
}

// TestOrdersAreReadAtOnce: each of several readers gets the order that it asks for.
func TestOrdersAreReadAtOnce(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	ids := []string{"a-1", "b-22", "c-333", "d-4444"}
	for _, id := range ids {
		r.events(orderEvent("order_placed", "a@x.io", fmt.Sprintf(`{"order_id":%q,"total":1,"currency":"EUR"}`, id)))
	}
	state := r.view().Orders()
	var readers errgroup.Group
	for _, id := range ids {
		readers.Go(func() error {
			for range 2000 {
				if x, _, ok := state.Get(id); !ok || x.ID != id {
					return fmt.Errorf("%s is read as %+v", id, x)
				}
			}
			return nil
		})
	}
	if err := readers.Wait(); err != nil {
		t.Fatal(err)
	}
}

// TestOldOrdersStartNoFlow: an old change of revenue starts no flow, as an old event starts none.
func TestOldOrdersStartNoFlow(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	flow := r.flow(`{"name":"x","reentry":"after_exit","trigger":{"type":"event","event":"revenue_recorded"},"steps":[{"id":"t","type":"tag","add":["x"],"next":null}]}`)
	entered := func(want uint64, hours int64, typ, properties string) {
		t.Helper()
		e := orderEvent(typ, "a@x.io", properties)
		e.HasTime, e.TimeMs = true, r.now-hours*3_600_000
		r.events(e)
		r.rest()
		if got := uint64(r.flowState(flow).Counts.Entered); got != want {
			t.Fatalf("%s %s: %d entered the flow, want %d", typ, properties, got, want)
		}
	}
	entered(0, 60, "order_placed", `{"order_id":"old","total":10,"currency":"EUR"}`)
	entered(0, 60, "order_refunded", `{"order_id":"old","amount":1}`)
	entered(1, 0, "order_refunded", `{"order_id":"old","amount":1}`)
	// A refund that waited is judged by its own time, and not by that of its order.
	entered(1, 60, "order_refunded", `{"order_id":"new","amount":1}`)
	entered(2, 0, "order_placed", `{"order_id":"new","total":10,"currency":"EUR"}`)
}

// TestOrdersBelongToInAppMessages: a message that was seen in the inbox is an open for orders, and
// one that was clicked is a click.
func TestOrdersBelongToInAppMessages(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	flow := r.flow(loopFlow("x", "joined", `"type":"in_app","title":"Welcome"`))
	ann := r.events(ev("email", "a@x.io", "type", "joined")).Events[0].Profile
	r.rest()
	for _, w := range r.due(outbox.KindInApp) {
		r.must(messages.CommandOutboxDone, outbox.Done{Seq: w.Seq, Attempt: w.Attempt, Ordinal: w.Ordinal, ItemName: w.ItemName, Result: outbox.ResultSent, InApp: must.PlainJSON(card.Card{Title: "Welcome"})})
	}
	message := r.expectInbox(ann, "Welcome")[0]
	for i, x := range [][2]string{{inapp.Seen, orders.TouchOpen}, {inapp.Clicked, orders.TouchClick}, {inapp.Dismissed, orders.TouchClick}} {
		r.now++
		r.must(inapp.CommandMark, inapp.MarkDeed{Profile: ann.String(), Message: message.ID, Deed: x[0]})
		id := fmt.Sprint(i)
		r.events(orderEvent("order_placed", "a@x.io", fmt.Sprintf(`{"order_id":%q,"total":1,"currency":"EUR"}`, id)))
		o, _, ok := r.view().Orders().Get(id)
		if want := (orders.Source{Channel: inapp.Channel, Flow: flow, Step: "s"}); !ok || o.Touch == nil || o.Touch.Kind != x[1] || o.Touch.Source != want {
			t.Fatalf("after it was %s the order belongs to %+v", x[0], o.Touch)
		}
	}
}

// TestRefundsThatWait: refunds that come before their order count on their own days, in whatever
// order they come, and an erasure of one sender leaves those of others.
func TestRefundsThatWait(t *testing.T) {
	t.Parallel()
	const day = 24 * 3_600_000
	var figures [2]string
	for turn := range figures {
		r := newDurable(t, DefaultSettings())
		refunds := []struct {
			email, amount string
			daysAgo       int64
		}{{"a@x.io", `,"amount":10`, 3}, {"b@x.io", `,"amount":20`, 5}, {"c@x.io", "", 2}, {"a@x.io", `,"amount":5`, 1}}
		if turn == 1 {
			slices.Reverse(refunds)
		}
		var b ProfileID
		for _, x := range refunds {
			e := orderEvent("order_refunded", x.email, fmt.Sprintf(`{"order_id":"1"%s}`, x.amount))
			e.HasTime, e.TimeMs = true, r.now-x.daysAgo*day
			if out := r.events(e).Events[0]; x.email == "b@x.io" {
				b = out.Profile
			}
		}
		r.must(CommandContactErase, ContactErase{ID: b.String()})
		r.reload()
		e := orderEvent("order_placed", "buyer@x.io", `{"order_id":"1","total":100,"currency":"EUR"}`)
		e.HasTime, e.TimeMs = true, r.now-6*day
		r.events(e)
		var sums []string
		for _, d := range r.view().Orders().Days("", "9") {
			sums = append(sums, d.Refunded.String())
		}
		figures[turn] = fmt.Sprint(sums)
		r.expectRevenue("buyer@x.io", "1 0.00 EUR")
		r.reload()
	}
	if want := "[0.00 10.00 90.00]"; figures[0] != want || figures[1] != want {
		t.Fatalf("by day %q, want %q", figures, want)
	}
	// Behind the bound a refund joins the newest.
	r := newRecorder(t, DefaultSettings())
	for i := range orders.MaxWaiting + 5 {
		e := orderEvent("order_refunded", fmt.Sprintf("p%d@x.io", i%3), `{"order_id":"1","amount":1}`)
		e.HasTime, e.TimeMs = true, r.now-int64(i)
		r.events(e)
	}
	r.events(orderEvent("order_placed", "a@x.io", `{"order_id":"1","total":100,"currency":"EUR"}`))
	r.expectRevenue("a@x.io", fmt.Sprintf("1 %d.00 EUR", 100-orders.MaxWaiting-5))
	if n := r.seen("revenue_recorded"); n != 1+orders.MaxWaiting {
		t.Fatalf("%d changes of revenue", n)
	}
}

// naiveOrders has all orders, refunds and touches in lists, and adds them up when asked.
type naiveOrders struct {
	root    func(uint32) uint32
	orders  []*naiveOrder
	touches []naiveTouch
	windows map[string]int64
	// of the account, by name or day and currency: what erasures leave
	all, days map[string]*big.Rat
}

type naiveOrder struct {
	id       string
	by       uint32 // profile of the event
	placed   bool
	atMs     int64
	total    *big.Rat
	currency string
	asked    *big.Rat
	whole    bool
	source   string
	waiting  []naiveRefund // before it is placed
}

type naiveRefund struct {
	by     uint32
	atMs   int64
	amount *big.Rat // nil for all that is left
}

type naiveTouch struct {
	by     uint32
	kind   string
	source string
	atMs   int64
}

func (n *naiveOrders) find(id string) *naiveOrder {
	for _, o := range n.orders {
		if o.id == id {
			return o
		}
	}
	return nil
}

func (n *naiveOrders) refunded(o *naiveOrder) *big.Rat {
	if o.whole || o.asked.Cmp(o.total) > 0 {
		return o.total
	}
	return o.asked
}

func (n *naiveOrders) count(o *naiveOrder, atMs int64, what string, x *big.Rat) {
	add := func(to map[string]*big.Rat, name string) {
		key := name + " " + what + " " + o.currency
		if to[key] == nil {
			to[key] = new(big.Rat)
		}
		to[key].Add(to[key], x)
	}
	add(n.all, "all")
	if o.source != "" {
		add(n.all, o.source)
	}
	add(n.days, time.UnixMilli(atMs).UTC().Format(time.DateOnly))
}

// refund takes a refund off a placed order.
func (n *naiveOrders) refund(o *naiveOrder, x naiveRefund) {
	before := n.refunded(o)
	if x.amount == nil {
		o.whole = true
	} else {
		o.asked = new(big.Rat).Add(o.asked, x.amount)
	}
	n.count(o, x.atMs, "refunded", new(big.Rat).Sub(n.refunded(o), before))
}

func (n *naiveOrders) touched(by uint32, atMs int64) string {
	var best *naiveTouch
	for _, x := range n.touches {
		age := atMs - x.atMs
		if n.root(x.by) != n.root(by) || age < 0 || age > n.windows[x.kind] {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(x.atMs, best.atMs), cmp.Compare(x.kind, best.kind), cmp.Compare(x.source, best.source)) > 0 {
			best = &x
		}
	}
	if best == nil {
		return ""
	}
	return best.source
}

func rat(text string) *big.Rat {
	x, ok := new(big.Rat).SetString(text)
	if !ok {
		panic(text)
	}
	return x
}

// TestOrdersMatchNaive: orders, repeats, refunds before and after them, touches, merges and
// erasures at random, with checkpoints, against lists that are added up when asked. Amounts,
// windows of attribution, and members of segments agree.
func TestOrdersMatchNaive(t *testing.T) {
	t.Parallel()
	seeds := testlevel.Count(12, 60)
	kinds := map[string]int{}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { ordersMatchNaive(t, rand.New(rand.NewPCG(uint64(seed), 9)), kinds) })
	}
	for _, k := range []string{"placed", "repeated", "refunded", "refunded early", "refunded early, twice", "erased one of several", "touched", "attributed", "merged", "erased"} {
		if kinds[k] == 0 {
			t.Errorf("never %s", k)
		}
	}
}

func ordersMatchNaive(t *testing.T, rng *rand.Rand, kinds map[string]int) {
	r := newDurable(t, DefaultSettings())
	settings := r.view().Settings()
	settings.Attribution = &orders.Attribution{ClickHours: 10, OpenHours: 3}
	r.must(CommandSettingsSet, settings)
	threshold := 40
	segment := r.segment(fmt.Sprintf(`{"kind":"activity","event":"revenue_recorded","where":[{"property":"currency","op":"=","value":"EUR"}],"aggregate":{"fn":"sum","property":"amount","op":">=","value":%d}}`, threshold))
	orderers := r.segment(`{"kind":"activity","event":"revenue_recorded","where":[{"property":"kind","op":"=","value":"order"}],"count":{"op":">=","value":2}}`)
	n := &naiveOrders{root: func(o uint32) uint32 { return r.m.accounts[testAccount].Profiles.Root(o) }, all: map[string]*big.Rat{}, days: map[string]*big.Rat{}, windows: map[string]int64{"click": 36_000_000, "open": 10_800_000}}
	profiles := func() (list []uint32) {
		p := r.m.accounts[testAccount].Profiles
		for o := range p.Headers.Count {
			if p.Root(o) == o && !p.Erased(o) {
				list = append(list, o)
			}
		}
		return list
	}
	idOf := func(o uint32) string { return r.m.accounts[testAccount].Profiles.Headers.Get(o).ID.String() }
	for range 150 {
		r.now += rng.Int64N(3_600_000)
		e := ev()
		// Two kinds of identifiers bring profiles together.
		person := rng.IntN(12)
		if rng.IntN(3) > 0 {
			e.Email = fmt.Appendf(nil, "u%d@x.io", person)
		}
		if rng.IntN(3) == 0 || len(e.Email) == 0 {
			e.ExternalID = fmt.Appendf(nil, "id-%d", person/(1+rng.IntN(2)))
		}
		at := r.now
		if rng.IntN(4) == 0 {
			at -= rng.Int64N(20_000_000)
			e.HasTime, e.TimeMs = true, at
		}
		id := fmt.Sprint("order-", rng.IntN(80))
		merges := r.m.resolution.Merges
		switch rng.IntN(8) {
		case 0, 1, 2, 3:
			total, currency := fmt.Sprintf("%d.%02d", rng.IntN(60), rng.IntN(100)), pick(rng, "EUR", "EUR", "usd")
			e.Type = []byte("order_placed")
			e.Properties = fmt.Appendf(nil, `{"currency":%q,"order_id":%q,"total":%s}`, currency, id, total)
			out := r.events(e).Events[0]
			old := n.find(id)
			if old != nil && old.placed {
				if out.Status != EventDuplicate || out.Profile.String() != idOf(n.root(old.by)) {
					t.Fatalf("%s again: %+v", id, out)
				}
				kinds["repeated"]++
				break
			}
			if out.Status == EventRefused { // of an erased person
				kinds["refused"]++
				break
			}
			if old == nil {
				old = &naiveOrder{id: id, asked: new(big.Rat)}
				n.orders = append(n.orders, old)
			}
			old.by, old.placed, old.atMs, old.total, old.currency = out.Profile.Ordinal(), true, at, rat(total), strings.ToUpper(currency)
			old.source = n.touched(old.by, at)
			n.count(old, at, "orders", rat("1"))
			n.count(old, at, "total", old.total)
			n.count(old, at, "refunded", new(big.Rat))
			slices.SortStableFunc(old.waiting, func(x, y naiveRefund) int { return cmp.Compare(x.atMs, y.atMs) })
			for _, x := range old.waiting {
				n.refund(old, x)
			}
			if len(old.waiting) > 1 {
				kinds["refunded early, twice"]++
			}
			old.waiting = nil
			kinds["placed"]++
			if old.source != "" {
				kinds["attributed"]++
			}
		case 4, 5:
			e.Type = []byte("order_refunded")
			amount := ""
			e.Properties = fmt.Appendf(nil, `{"order_id":%q}`, id)
			if rng.IntN(3) > 0 {
				amount = fmt.Sprintf("%d.%02d", rng.IntN(30), 1+rng.IntN(99))
				e.Properties = fmt.Appendf(nil, `{"amount":%s,"order_id":%q}`, amount, id)
			}
			out := r.events(e).Events[0]
			if out.Status == EventRefused {
				kinds["refused"]++
				break
			}
			o := n.find(id)
			if o == nil {
				o = &naiveOrder{id: id, asked: new(big.Rat)}
				n.orders = append(n.orders, o)
				kinds["refunded early"]++
			}
			x := naiveRefund{by: out.Profile.Ordinal(), atMs: at}
			if amount != "" {
				x.amount = rat(amount)
			}
			if o.placed {
				n.refund(o, x)
				kinds["refunded"]++
			} else {
				o.waiting = append(o.waiting, x)
			}
		case 6:
			if list := profiles(); len(list) > 0 {
				o := list[rng.IntN(len(list))]
				kind, step := pick(rng, messages.EngagementClick, messages.EngagementOpen), pick(rng, "a", "b")
				r.must(messages.CommandEngagement, messages.EngagementRecord{Profile: idOf(o), Channel: "email", Kind: kind, Flow: "flow", Step: step})
				n.touches = append(n.touches, naiveTouch{o, map[string]string{messages.EngagementClick: "click", messages.EngagementOpen: "open"}[kind], "flow/" + step, r.now})
				kinds["touched"]++
			}
		default:
			if list := profiles(); len(list) > 0 && rng.IntN(4) == 0 {
				o := list[rng.IntN(len(list))]
				n.orders = slices.DeleteFunc(n.orders, func(x *naiveOrder) bool {
					before := len(x.waiting)
					x.waiting = slices.DeleteFunc(x.waiting, func(w naiveRefund) bool { return n.root(w.by) == o })
					if len(x.waiting) > 0 && len(x.waiting) < before {
						kinds["erased one of several"]++
					}
					return x.placed && n.root(x.by) == o || !x.placed && len(x.waiting) == 0
				})
				n.touches = slices.DeleteFunc(n.touches, func(x naiveTouch) bool { return n.root(x.by) == o })
				r.must(CommandContactErase, ContactErase{ID: idOf(o)})
				kinds["erased"]++
			} else if rng.IntN(4) == 0 {
				r.reload()
			}
		}
		kinds["merged"] += int(r.m.resolution.Merges - merges)
	}
	compareOrders(t, r.recorder, n, profiles(), segment, orderers, threshold)
	r.reload()
	compareOrders(t, r.recorder, n, profiles(), segment, orderers, threshold)
}

func compareOrders(t *testing.T, r *recorder, n *naiveOrders, profiles []uint32, segment, orderers string, threshold int) {
	t.Helper()
	state := r.view().Orders()
	rich, often := 0, 0
	for _, o := range profiles {
		want, count := map[string]*big.Rat{}, 0
		var ids []string
		for _, x := range n.orders {
			if !x.placed || n.root(x.by) != o {
				continue
			}
			count++
			ids = append(ids, x.id)
			if want[x.currency] == nil {
				want[x.currency] = new(big.Rat)
			}
			want[x.currency].Add(want[x.currency], new(big.Rat).Sub(x.total, n.refunded(x)))
		}
		if eur := want["EUR"]; eur != nil && eur.Cmp(big.NewRat(int64(threshold), 1)) >= 0 {
			rich++
		}
		if count >= 2 {
			often++
		}
		got := map[string]*big.Rat{}
		for _, f := range state.Summary(o).Totals {
			got[f.Currency] = rat(f.Revenue().String())
		}
		if fmt.Sprint(sortedRats(got)) != fmt.Sprint(sortedRats(want)) {
			t.Fatalf("profile %d has %v, naive has %v", o, sortedRats(got), sortedRats(want))
		}
		list, _ := state.Orders(o, nil, orders.MaxOrders)
		var listed []string
		for _, x := range list {
			listed = append(listed, x.ID)
			if source := n.find(x.ID).source; (x.Touch == nil) != (source == "") || x.Touch != nil && x.Touch.Flow+"/"+x.Touch.Step != source {
				t.Fatalf("%s belongs to %+v, naive says %q", x.ID, x.Touch, source)
			}
			if y, of, ok := state.Get(x.ID); !ok || of != o || y.Total != x.Total {
				t.Fatalf("%s is of %d", x.ID, of)
			}
		}
		slices.Sort(listed)
		if slices.Sort(ids); !slices.Equal(ids, listed) {
			t.Fatalf("profile %d has the orders %v, naive has %v", o, listed, ids)
		}
	}
	if a, b := r.countIn(segment), r.countIn(orderers); a != rich || b != often {
		t.Fatalf("%d and %d in segments, naive has %d and %d", a, b, rich, often)
	}
	got := map[string]*big.Rat{}
	put := func(name, currency string, f orders.Figures) {
		got[name+" orders "+currency] = big.NewRat(f.Orders, 1)
		got[name+" total "+currency], got[name+" refunded "+currency] = rat(f.Total.String()), rat(f.Refunded.String())
	}
	for _, d := range state.Days("", "9") {
		put(d.Date, d.Currency, d.Figures)
	}
	zero := func(_ string, x *big.Rat) bool { return x.Sign() == 0 } // a day has them of what else happened on it
	maps.DeleteFunc(got, zero)
	maps.DeleteFunc(n.days, zero)
	if fmt.Sprint(sortedRats(got)) != fmt.Sprint(sortedRats(n.days)) {
		t.Fatalf("days have %v, naive has %v", sortedRats(got), sortedRats(n.days))
	}
	clear(got)
	for _, d := range state.Totals() {
		put("all", d.Currency, d.Figures)
	}
	for _, f := range state.Sources(func(*orders.Source) bool { return true }) {
		put(f.Flow+"/"+f.Step, f.Currency, f.Figures)
	}
	if fmt.Sprint(sortedRats(got)) != fmt.Sprint(sortedRats(n.all)) {
		t.Fatalf("the account has %v, naive has %v", sortedRats(got), sortedRats(n.all))
	}
}

func sortedRats(m map[string]*big.Rat) (out []string) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k].FloatString(4))
	}
	return out
}

// standardEvent is [randomEvent], mostly with orders.
func standardEvent(rng *rand.Rand, world int, now int64) eventlog.Event {
	e := randomEvent(rng, world, now)
	id := fmt.Sprint("Secret-order-", rng.IntN(30))
	switch rng.IntN(6) {
	case 0, 1, 2:
		e.Type = []byte("order_placed")
		e.Properties = fmt.Appendf(nil, `{"currency":"EUR","items":[{"name":"Secret-shoe"}],"order_id":%q,"total":%d.5}`, id, rng.IntN(50))
		if rng.IntN(5) == 0 { // none, but for its id
			rest := pick(rng, `"currency":"Secret"`, `"currency":"QQQ","total":1`, `"currency":"EUR","items":[{"name":"Secret-shoe","quantity":-3}],"total":1`)
			e.Properties = fmt.Appendf(nil, `{%s,"order_id":%q}`, rest, id)
		}
	case 3:
		e.Type = []byte("order_refunded")
		e.Properties = fmt.Appendf(nil, `{"amount":%d.25,"note":"Secret-note","order_id":%q}`, rng.IntN(20), id)
	case 4:
		e.Type = []byte("cart_updated")
		e.Properties = []byte(`{"items":[{"name":"Secret-shoe"}]}`)
	}
	return e
}

// TestReplayOfRedactedOrders is TestReplayOfRedactedLog with orders: what is left of an erased
// person's orders gives the same figures, and repeats are told as before.
func TestReplayOfRedactedOrders(t *testing.T) {
	t.Parallel()
	var sum redactSum
	for seed := range testlevel.Count[uint64](10, 40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			replayOfRedactedLog(t, seed, 50, rand.New(rand.NewPCG(seed, 1)), standardEvent, &sum)
		})
	}
	if sum.erased == 0 || sum.checked == 0 || sum.whole < testlevel.Count(7, 30) {
		t.Fatalf("%+v: the test misses a kind of record", sum)
	}
}

// TestOrdersCostOthersNothing: an event that is no standard event is recognised by
// its type alone.
func TestOrdersCostOthersNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		if orders.KindOf([]byte("page_viewed")) != orders.None {
			t.Fatal("a page is an order")
		}
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// TestRevenueEventsAreInHistory: each change of revenue is a row, of the profile that has the
// order.
func TestRevenueEventsAreInHistory(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.events(orderEvent("order_placed", "a@x.io", `{"order_id":"1","total":12.5,"currency":"EUR"}`))
	r.events(orderEvent("order_refunded", "b@x.io", `{"order_id":"1","amount":2}`))
	var got []string
	for i := range r.rows.Rows() {
		if bytes.Equal(r.rows.EventType.At(i), []byte(orders.EventRevenue)) {
			var p map[string]any
			if err := json.Unmarshal(r.rows.Properties.At(i), &p); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%d %v", r.rows.Ordinal[i], p))
		}
	}
	want := []string{"0 map[amount:12.5 currency:EUR kind:order order_id:1]", "0 map[amount:-2 currency:EUR kind:refund order_id:1]"}
	if !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
}
