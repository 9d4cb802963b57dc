package outbox

import "slices"

// Due lists items of a kind that are due at nowMs, in the order in which they
// are, limit at most, without those that skip names. Of an ordered endpoint's
// items only the first can be due.
func (s *State) Due(kind string, nowMs int64, limit int, skip func(seq uint64) bool) []*Item {
	if kind == KindWebhook {
		return s.WebhooksDue(nowMs, limit, func(*Endpoint) int { return limit }, skip)
	}
	h := s.due[kind]
	if h == nil {
		return nil
	}
	return h.page(nowMs, limit, func(it *Item) bool { return skip(it.Seq) })
}

// WebhooksDue is [State.Due] of webhooks, with at most room(endpoint) items of
// each endpoint, which room does not change.
func (s *State) WebhooksDue(nowMs int64, limit int, room func(*Endpoint) int, skip func(seq uint64) bool) []*Item {
	var list []*Item
	for id, e := range s.endpoints {
		l := s.lanes[id]
		if l == nil || !l.due.ready(nowMs) {
			continue
		}
		if n := min(limit, room(e)); n > 0 {
			list = append(list, l.due.page(nowMs, n, func(it *Item) bool { return skip(it.Seq) })...)
		}
	}
	slices.SortFunc(list, byDue)
	return list[:min(len(list), limit)]
}

// Len is how many items wait.
func (s *State) Len() int { return len(s.items) }

// Payload reads the payload of an item, a dead letter or a delivery by the number under
// which the item was queued first; nil for none.
func (s *State) Payload(origin uint64) ([]byte, error) {
	return s.shared.Store.Entity(s.payloadKey(origin))
}

// Ready reports whether some item is due.
func (s *State) Ready(nowMs int64) bool {
	for _, h := range s.due {
		if h.ready(nowMs) {
			return true
		}
	}
	for _, l := range s.lanes {
		if l.due.ready(nowMs) {
			return true
		}
	}
	return false
}

// Claimable reports whether an item can be sent now: it waits, for this attempt, and its
// endpoint is active.
func (s *State) Claimable(seq uint64, attempt int) bool {
	it := s.items[seq]
	return it != nil && it.Attempt == attempt && it.at >= 0
}
