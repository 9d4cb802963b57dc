package outbox

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// NoProfile stands for no profile in an [Item].
const NoProfile = profile.NoOrdinal

// Item is one thing to be carried out.
type Item struct {
	Seq uint64 `json:"seq"` // from 1, in the order in which items were queued
	// Origin is the number under which the item was queued first. A dead letter
	// that is replayed has a new Seq and the old Origin, from which the ids derive
	// that let receivers drop repeats.
	Origin  uint64 `json:"origin"`
	Kind    string `json:"kind"`
	Ordinal uint32 `json:"ordinal"` // as of the queueing; NoProfile for none
	Attempt int    `json:"attempt"` // how many have failed
	DueMs   int64  `json:"due_ms"`
	// CreatedMs is when it was queued first.
	CreatedMs int64  `json:"created_ms"`
	Endpoint  string `json:"endpoint,omitempty"` // of a webhook
	// Ref is the template of an e-mail, the name of a webhook's event.
	Ref string `json:"ref,omitempty"`
	// Flow and Step say which step of which flow wants it.
	Flow string `json:"flow,omitempty"`
	Step string `json:"step,omitempty"`
	// Handed says that an attempt went out in full whose answer was lost: the message may
	// have arrived, and no other must take its place.
	Handed bool `json:"handed,omitempty"`
	ItemName

	at int // place in the heap, −1 for none
}

// ItemName names an item of one profile by where it came from. Unlike its number it
// does not depend on what was queued for others: a log from which a person was taken
// out may queue less, or more, for that person when it is replayed, and the numbers of
// all later items differ.
type ItemName struct {
	// Queued is the offset behind the record that queued it first, 0 for items of
	// before they had names.
	Queued int64 `json:"queued,omitempty"`
	// Nth is how many the record had queued for the profile before.
	Nth uint32 `json:"nth,omitempty"`
}

// Find returns the item that a report is about: by its name, if the report has one. It is
// nil when there is none.
func (s *State) Find(seq uint64, ordinal uint32, name ItemName) *Item {
	it := s.items[seq]
	if name.Queued == 0 || it != nil && it.ItemName == name && it.Ordinal == ordinal {
		return it
	}
	for _, it := range s.items { // at most one
		if it.ItemName == name && it.Ordinal == ordinal {
			return it
		}
	}
	return nil
}

// lane is the items of one endpoint.
type lane struct {
	items []*Item // by number
	due   dueHeap
	// open lanes have items among those due: all of them, or the first if ordered.
	open, ordered bool
}

// heap is where an item stands when it can be due.
func (s *State) heap(it *Item) *dueHeap {
	if it.Endpoint != "" {
		return &s.lane(it.Endpoint).due
	}
	h := s.due[it.Kind]
	if h == nil {
		h = new(dueHeap)
		s.due[it.Kind] = h
	}
	return h
}

func (s *State) lane(endpoint string) *lane {
	l := s.lanes[endpoint]
	if l == nil {
		l = new(lane)
		s.lanes[endpoint] = l
	}
	return l
}

// enter puts an item behind all others.
func (s *State) enter(it *Item) {
	it.at = -1
	s.items[it.Seq] = it
	if it.Endpoint == "" {
		s.heap(it).push(it)
		return
	}
	l := s.lane(it.Endpoint)
	l.items = append(l.items, it)
	if l.open && (!l.ordered || len(l.items) == 1) {
		l.due.push(it)
	}
}

// set opens or closes a lane, and makes it ordered or not.
func (l *lane) set(open, ordered bool) {
	if l.open == open && l.ordered == ordered {
		return
	}
	l.open, l.ordered = open, ordered
	for _, it := range l.due.items {
		it.at = -1
	}
	l.due = dueHeap{}
	for i, it := range l.items {
		if open && (!ordered || i == 0) {
			l.due.push(it)
		}
	}
}

// take removes an item. The shorter side of the items moves: those that fail stay
// behind at the front while others leave.
func (l *lane) take(it *Item) {
	i, found := slices.BinarySearchFunc(l.items, it.Seq, func(x *Item, seq uint64) int { return cmp.Compare(x.Seq, seq) })
	if !found {
		return
	}
	if i < len(l.items)/2 {
		copy(l.items[1:i+1], l.items[:i])
		l.items[0] = nil
		l.items = l.items[1:]
	} else {
		l.items = slices.Delete(l.items, i, i+1)
	}
	switch {
	case len(l.items) == 0:
		l.items = nil
	case l.open && l.ordered && l.items[0].at < 0:
		l.due.push(l.items[0])
	}
}

// leave takes an item out.
func (s *State) leave(it *Item) {
	delete(s.items, it.Seq)
	if it.at >= 0 {
		s.heap(it).remove(it)
	}
	if it.Endpoint != "" {
		s.lane(it.Endpoint).take(it)
	}
}

// postpone changes when an item is due.
func (s *State) postpone(it *Item, dueMs int64) {
	it.DueMs = dueMs
	if it.at >= 0 {
		s.heap(it).fix(it)
	}
}

// setLane opens or closes the lane of an endpoint, and makes it ordered or not.
func (s *State) setLane(e *Endpoint) {
	s.lane(e.ID).set(e.Status == EndpointActive, !e.Unordered)
}

// closeLane closes the lane of an endpoint that is no more.
func (s *State) closeLane(endpoint string) { s.lane(endpoint).set(false, true) }

// queued is how many items an endpoint has.
func (s *State) queued(endpoint string) int {
	if l := s.lanes[endpoint]; l != nil {
		return len(l.items)
	}
	return 0
}

func (s *State) itemKey(seq uint64) string {
	return state.EntityKey(s.account, state.EntityOutbox, string(binary.BigEndian.AppendUint64(nil, seq)))
}

// payloadKey names the payload of an item, and of the dead letter that it
// becomes.
func (s *State) payloadKey(origin uint64) string {
	return string(binary.BigEndian.AppendUint64(state.AccountKey(nil, state.TablePayload, s.account), origin))
}

// Queue puts an item into the outbox: its kind, profile, endpoint and where it comes from are
// given, the rest is set here. The refusal says that there is no room.
func (s *State) Queue(tx *feature.Tx, it Item, payload []byte) (seq uint64, refusal *refuse.Refusal) {
	if refusal := s.Room(len(payload)); refusal != nil {
		return 0, refusal
	}
	it.Seq = s.nextSeq()
	it.ItemName = ItemName{tx.Offset + 1, s.shared.queued.add(it.Ordinal)}
	it.Origin, it.CreatedMs, it.DueMs, it.Attempt = it.Seq, tx.AtMs, tx.AtMs, 0
	s.shared.Store.PutPayload(s.payloadKey(it.Origin), payload)
	s.enter(&it)
	s.saveItem(&it)
	s.shared.Due = true
	return it.Seq, nil
}

// Room refuses a message that the outbox has no room for.
func (s *State) Room(payloadBytes int) *refuse.Refusal {
	switch {
	case len(s.items) >= MaxItems:
		return refuse.AtLimit("", "%d messages of this account wait to be sent, the most that can; try again later", MaxItems)
	case payloadBytes > maxPayload:
		return refuse.AtLimit("data", "data: the message would have %d bytes before it is rendered, the most is %d", payloadBytes, maxPayload)
	}
	return nil
}

func (s *State) nextSeq() uint64 {
	s.last++
	s.shared.Store.PutEntity(state.EntityKey(s.account, state.EntityOutbox, ""), binary.LittleEndian.AppendUint64(nil, s.last))
	return s.last
}

func (s *State) saveItem(it *Item) {
	s.shared.Store.PutEntity(s.itemKey(it.Seq), must.JSON(it))
}

// Remove takes an item out, with its payload.
func (s *State) Remove(it *Item) { s.unqueue(it, false) }

// unqueue removes an item. keep leaves its payload to a dead letter or to the log of
// deliveries.
func (s *State) unqueue(it *Item, keep bool) {
	s.leave(it)
	s.shared.Store.PutEntity(s.itemKey(it.Seq), nil)
	if !keep {
		s.shared.Store.PutEntity(s.payloadKey(it.Origin), nil)
	}
}

func bySeq(x, y *Item) int { return cmp.Compare(x.Seq, y.Seq) }
