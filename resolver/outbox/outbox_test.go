package outbox

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver/internal/featuretest"
	"github.com/musterhq/muster/resolver/internal/state"
)

// world is an account without the machine.
type world struct{ *featuretest.World[*State] }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := featuretest.New(t, Commands, func(store *state.Store) *State {
		return New(featuretest.Account, NewShared(store, new(Work)), func() map[string]uint64 { return map[string]uint64{} })
	})
	w.Begin = w.State.shared.queued.Begin
	return &world{w}
}

func (w *world) endpoint(ordered bool) string {
	w.T.Helper()
	url, events := "https://hooks.example.com/", []string{"*"}
	return w.Must(CommandWebhookCreate, WebhookSave{URL: &url, Events: &events, Secret: "whsec_1", Ordered: &ordered})
}

// put queues a webhook for an endpoint.
func (w *world) put(endpoint string, payload []byte) *Item {
	w.T.Helper()
	seq, refusal := w.State.Queue(w.Tx(), Item{Kind: KindWebhook, Ordinal: NoProfile, Endpoint: endpoint, Ref: "x"}, payload)
	if refusal != nil {
		w.T.Fatal(refusal)
	}
	return w.State.items[seq]
}

// done reports the item's attempt.
func (w *world) done(it *Item, result string) {
	w.T.Helper()
	c := Done{Seq: it.Seq, Attempt: it.Attempt, Result: result, DelayMs: 5000, Reason: "500", Log: &DeliveryAnswer{Status: 500}}
	if refusal := w.State.DoneWebhook(w.Tx(), it, &c); refusal != nil {
		w.T.Fatal(refusal)
	}
}

// payloads counts those in the store.
func (w *world) payloads() (n int) {
	for k, b := range w.State.shared.Store.Entities {
		if k[0] == state.TablePayload && b != nil {
			n++
		}
	}
	return n
}

// TestDeliveryLogIsBounded: failures outlast what was delivered, and payloads leave
// with their lines.
func TestDeliveryLogIsBounded(t *testing.T) {
	w := newWorld(t)
	id := w.endpoint(false)
	for range 10 {
		w.done(w.put(id, []byte("x")), ResultRetry)
	}
	first := w.put(id, []byte("x"))
	w.done(first, ResultSent)
	for range maxDeliveries + 5 {
		w.done(w.put(id, []byte("x")), ResultSent)
	}
	g := w.State.logs[id]
	if len(g.lines) != maxDeliveries || g.delivered != maxDeliveries-10 || w.payloads() != maxDeliveries || w.State.line(id, first.Origin) != nil {
		t.Fatalf("%d lines, %d delivered, %d payloads", len(g.lines), g.delivered, w.payloads())
	}
	for range maxDeliveries {
		w.done(w.put(id, []byte("x")), ResultRetry)
	}
	if g.delivered != maxDeliveredKept || len(g.lines) != maxDeliveries {
		t.Fatalf("%d lines, %d delivered", len(g.lines), g.delivered)
	}
	large := []byte(strings.Repeat("x", maxPayload))
	for range 2 * maxDeliveryBytes / maxPayload {
		w.done(w.put(id, large), ResultSent)
	}
	if g.bytes > maxDeliveryBytes {
		t.Fatalf("payloads of %d bytes", g.bytes)
	}
	// Each waiting item still has its payload.
	for seq, it := range w.State.items {
		if b, err := w.State.Payload(it.Origin); err != nil || b == nil {
			t.Fatalf("item %d has no payload", seq)
		}
	}
}

func TestEndpointIsRemovedInPieces(t *testing.T) {
	w := newWorld(t)
	id := w.endpoint(true)
	first := w.put(id, []byte("0"))
	for i := range droppedPerRecord + 9 {
		w.put(id, fmt.Appendf(nil, "%d", i))
	}
	w.done(first, ResultFailed)
	if refusal := w.State.DeleteWebhook(w.Tx(), WebhookRef{ID: id}); refusal != nil {
		t.Fatal(refusal)
	}
	if due := w.State.Due(KindWebhook, 1<<60, 10, func(uint64) bool { return false }); len(due) != 0 {
		t.Fatal("what is left is delivered")
	}
	for step := range 2 {
		if done, err := w.State.DropEndpoint(id); err != nil || done != (step == 1) {
			t.Fatalf("step %d: done %v, %v", step, done, err)
		}
	}
	if s := w.State; len(s.items)+len(s.lanes)+len(s.dead)+len(s.logs) != 0 || w.payloads() != 0 {
		t.Fatalf("%d items, %d lanes, %d payloads are left", len(s.items), len(s.lanes), w.payloads())
	}
}

// TestFullLaneDropsEvents: an endpoint without room counts what it misses, and keeps what
// it has.
func TestFullLaneDropsEvents(t *testing.T) {
	w := newWorld(t)
	id := w.endpoint(true)
	l := w.State.lane(id)
	l.items = make([]*Item, maxLane)
	for i := range l.items {
		l.items[i] = &Item{at: -1}
	}
	w.State.Notify(w.Tx(), NoProfile, "contact.created", map[string]any{})
	if e := w.State.endpoints[id]; e.Dropped != 1 || w.State.shared.Dropped != 1 || len(l.items) != maxLane {
		t.Fatalf("%+v, %d items", e, len(l.items))
	}
}

func TestDeadLettersAreBounded(t *testing.T) {
	w := newWorld(t)
	id := w.endpoint(true)
	var first uint64
	for range maxDeadLetters + 1 {
		it := w.put(id, []byte("x"))
		first = cmp.Or(first, it.Origin)
		w.State.die(w.Tx(), it, "why")
	}
	letters, err := w.State.DeadLetters(id, 0, 1)
	if err != nil || len(w.State.dead[id]) != maxDeadLetters || letters[0].Origin == first {
		t.Fatalf("%d, %+v, %v", len(w.State.dead[id]), letters, err)
	}
	if b, _ := w.State.Payload(first); b != nil {
		t.Fatal("the payload of the oldest is left behind")
	}
}

func TestSecretsOverlapForADay(t *testing.T) {
	w := newWorld(t)
	id := w.endpoint(true)
	w.Must(CommandWebhookRotate, WebhookRef{ID: id, Secret: "whsec_2"})
	e, _ := w.State.Endpoint(id)
	if got := e.Signing(w.Now); !slices.Equal(got, []string{"whsec_2", "whsec_1"}) {
		t.Fatalf("%v", got)
	}
	if got := e.Signing(w.Now + dayMs); !slices.Equal(got, []string{"whsec_2"}) {
		t.Fatalf("%v", got)
	}
	for i := range 10 {
		w.Must(CommandWebhookRotate, WebhookRef{ID: id, Secret: fmt.Sprintf("whsec_%d", i)})
	}
	if e, _ := w.State.Endpoint(id); len(e.Secrets) != maxSecretsHeld {
		t.Fatalf("%d secrets", len(e.Secrets))
	}
	if text := fmt.Sprintf("%v %+v %#v", e, e, e); strings.Contains(text, "whsec_") {
		t.Fatalf("a secret is printed: %s", text)
	}
}

func TestDueItemsComeInOrder(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h := new(dueHeap)
		var all []*Item
		for range rng.IntN(60) {
			switch n := len(all); {
			case n > 0 && rng.IntN(4) == 0:
				i := rng.IntN(n)
				h.remove(all[i])
				all = slices.Delete(all, i, i+1)
			case n > 0 && rng.IntN(4) == 0:
				it := all[rng.IntN(n)]
				it.DueMs = rng.Int64N(10)
				h.fix(it)
			default:
				it := &Item{Seq: rng.Uint64N(1 << 40), DueMs: rng.Int64N(10)}
				h.push(it)
				all = append(all, it)
			}
			until, limit := rng.Int64N(12), rng.IntN(20)
			skip := func(it *Item) bool { return it.Seq%3 == seed%3 }
			var want []*Item
			for _, it := range slices.SortedFunc(slices.Values(all), byDue) {
				if it.DueMs <= until && !skip(it) && len(want) < limit {
					want = append(want, it)
				}
			}
			if got := h.page(until, limit, skip); !slices.Equal(got, want) {
				t.Fatalf("seed %d: %v, expected %v", seed, got, want)
			}
		}
	}
}
