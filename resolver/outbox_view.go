package resolver

import (
	"cmp"
	"maps"
	"slices"
)

// OutboxWork is an item to be carried out, with its payload.
type OutboxWork struct {
	OutboxItem
	// Root is the profile that the item concerns now, NoProfile for none.
	Root    uint32
	Payload []byte
	// Moot says why there is no reason any more to carry it out, empty when there is
	// one. Its payload is not whole then.
	Moot string
	// Epoch is the one under which this node acts, 0 when embedded.
	Epoch uint64
}

// OutboxDue lists items of a kind that are due at nowMs, in the order in which
// they are, limit at most, without those that skip names. Of an ordered endpoint's
// items only the first can be due.
func (v *View) OutboxDue(kind string, nowMs int64, limit int, skip func(seq uint64) bool) ([]OutboxWork, error) {
	if kind == OutboxWebhook {
		return v.WebhooksDue(nowMs, limit, func(*Endpoint) int { return limit }, skip)
	}
	h := v.a.outbox.due[kind]
	if h == nil {
		return nil, nil
	}
	return v.outboxWork(h.page(nowMs, limit, func(it *OutboxItem) bool { return skip(it.Seq) }))
}

// WebhooksDue is [View.OutboxDue] of webhooks, with at most room(endpoint) items of
// each endpoint, which room does not change.
func (v *View) WebhooksDue(nowMs int64, limit int, room func(*Endpoint) int, skip func(seq uint64) bool) ([]OutboxWork, error) {
	var list []*OutboxItem
	for id, e := range v.a.endpoints {
		l := v.a.outbox.lanes[id]
		if l == nil || !l.due.ready(nowMs) {
			continue
		}
		if n := min(limit, room(e)); n > 0 {
			list = append(list, l.due.page(nowMs, n, func(it *OutboxItem) bool { return skip(it.Seq) })...)
		}
	}
	slices.SortFunc(list, byDue)
	return v.outboxWork(list[:min(len(list), limit)])
}

// outboxWork adds what carrying out items takes.
func (v *View) outboxWork(list []*OutboxItem) ([]OutboxWork, error) {
	out := make([]OutboxWork, 0, len(list))
	for _, it := range list {
		payload, err := v.m.store.Entity(payloadKey(v.a.number, it.Origin))
		if err == nil && it.Flow != "" {
			payload, err = v.a.flowPayload(it, payload)
		}
		if err != nil {
			return nil, err
		}
		w := OutboxWork{OutboxItem: *it, Root: it.Ordinal, Payload: payload, Epoch: v.epoch()}
		if it.Ordinal != NoProfile {
			w.Root = v.a.root(it.Ordinal)
		}
		if it.Flow != "" && v.a.flow(it.Flow) == nil {
			w.Moot = flowDeleted
		}
		out = append(out, w)
	}
	return out, nil
}

// OutboxSize is how many items wait.
func (v *View) OutboxSize() int { return len(v.a.outbox.items) }

// ready reports whether some item is due.
func (b *outbox) ready(nowMs int64) bool {
	for _, h := range b.due {
		if h.ready(nowMs) {
			return true
		}
	}
	for _, l := range b.lanes {
		if l.due.ready(nowMs) {
			return true
		}
	}
	return false
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
