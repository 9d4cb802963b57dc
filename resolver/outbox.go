package resolver

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The outbox is the queue of what the state machine decided that the world
// outside should see: e-mails, webhooks. Records put items into it and take them
// out; a dispatcher carries them out in between and reports with
// [CommandOutboxDone]. An item stands in memory without its payload, which is in
// the store.
//
// Items of one webhook endpoint are a lane with a heap of its own, so that finding
// what is due at one endpoint does not depend on how many items others have. Of an
// ordered lane only the first item can be due: its items go out one at a time. All
// other items are due on their own.

// The kinds of items.
const (
	OutboxEmail   = "email"
	OutboxWebhook = "webhook"
	OutboxSMS     = "sms"
	OutboxPush    = "push"
)

// The outbox's bounds. They are part of the rules, like those in machine.go.
const (
	maxOutbox        = 1_000_000 // items of an account
	maxLane          = 100_000   // items of one endpoint
	maxOutboxPayload = 256 << 10
	maxDeadLetters   = 10_000 // of one endpoint; the oldest are dropped
	maxOutboxDelay   = 7 * dayMs
)

// NoProfile stands for no profile in an [OutboxItem].
const NoProfile = profile.NoOrdinal

// OutboxItem is one thing to be carried out.
type OutboxItem struct {
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

// item finds the item that is reported on: by its name, if the report has one.
func (b *outbox) item(seq uint64, ordinal uint32, name ItemName) *OutboxItem {
	it := b.items[seq]
	if name.Queued == 0 || it != nil && it.ItemName == name && it.Ordinal == ordinal {
		return it
	}
	for _, it := range b.items { // at most one
		if it.ItemName == name && it.Ordinal == ordinal {
			return it
		}
	}
	return nil
}

// Send is the id of the item's message.
func (it *OutboxItem) Send() SendID { return OutboxSend(it.Origin, it.Ordinal) }

// outbox is the queue of one account.
type outbox struct {
	last  uint64 // number of the newest item
	items map[uint64]*OutboxItem
	due   map[string]*dueHeap // by kind
	lanes map[string]*lane    // by endpoint
	dead  map[string][]uint64 // by endpoint: numbers of dead letters, the oldest first
	logs  map[string]*deliveryLog
}

func newOutbox() outbox {
	return outbox{items: map[uint64]*OutboxItem{}, due: map[string]*dueHeap{}, lanes: map[string]*lane{}, dead: map[string][]uint64{}, logs: map[string]*deliveryLog{}}
}

// lane is the items of one endpoint.
type lane struct {
	items []*OutboxItem // by number
	due   dueHeap
	// open lanes have items among those due: all of them, or the first if ordered.
	open, ordered bool
}

// heap is where an item stands when it can be due.
func (b *outbox) heap(it *OutboxItem) *dueHeap {
	if it.Endpoint != "" {
		return &b.lane(it.Endpoint).due
	}
	h := b.due[it.Kind]
	if h == nil {
		h = new(dueHeap)
		b.due[it.Kind] = h
	}
	return h
}

func (b *outbox) lane(endpoint string) *lane {
	l := b.lanes[endpoint]
	if l == nil {
		l = new(lane)
		b.lanes[endpoint] = l
	}
	return l
}

// enter puts an item behind all others.
func (b *outbox) enter(it *OutboxItem) {
	it.at = -1
	b.items[it.Seq] = it
	if it.Endpoint == "" {
		b.heap(it).push(it)
		return
	}
	l := b.lane(it.Endpoint)
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
func (l *lane) take(it *OutboxItem) {
	i, found := slices.BinarySearchFunc(l.items, it.Seq, func(x *OutboxItem, seq uint64) int { return cmp.Compare(x.Seq, seq) })
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
func (b *outbox) leave(it *OutboxItem) {
	delete(b.items, it.Seq)
	if it.at >= 0 {
		b.heap(it).remove(it)
	}
	if it.Endpoint != "" {
		b.lane(it.Endpoint).take(it)
	}
}

// postpone changes when an item is due.
func (b *outbox) postpone(it *OutboxItem, dueMs int64) {
	it.DueMs = dueMs
	if it.at >= 0 {
		b.heap(it).fix(it)
	}
}

// setLane opens or closes the lane of an endpoint, and makes it ordered or not.
func (b *outbox) setLane(e *Endpoint) {
	b.lane(e.ID).set(e.Status == EndpointActive, !e.Unordered)
}

// closeLane closes the lane of an endpoint that is no more.
func (b *outbox) closeLane(endpoint string) { b.lane(endpoint).set(false, true) }

// queued is how many items an endpoint has.
func (b *outbox) queued(endpoint string) int {
	if l := b.lanes[endpoint]; l != nil {
		return len(l.items)
	}
	return 0
}

func outboxKey(account, seq uint64) string {
	return state.EntityKey(account, state.EntityOutbox, string(binary.BigEndian.AppendUint64(nil, seq)))
}

// payloadKey names the payload of an item, and of the dead letter that it
// becomes.
func payloadKey(account, origin uint64) string {
	return string(binary.BigEndian.AppendUint64(state.AccountKey(nil, state.TablePayload, account), origin))
}

// queue puts an item into the outbox. It is refused when there is no room.
func (m *Machine) queue(a *account, it OutboxItem, payload []byte) (seq uint64, refusal *Refusal) {
	if refusal := a.roomInOutbox(len(payload)); refusal != nil {
		return 0, refusal
	}
	it.Seq = m.nextSeq(a)
	it.ItemName = ItemName{m.rec.out.Offset + 1, m.named[it.Ordinal]}
	if m.named == nil {
		m.named = map[uint32]uint32{}
	}
	m.named[it.Ordinal]++
	it.Origin, it.CreatedMs, it.DueMs, it.Attempt = it.Seq, m.logTime, m.logTime, 0
	m.store.PutPayload(payloadKey(a.number, it.Origin), payload)
	a.outbox.enter(&it)
	m.saveItem(a, &it)
	m.queued = true
	return it.Seq, nil
}

func (a *account) roomInOutbox(payloadBytes int) *Refusal {
	switch {
	case len(a.outbox.items) >= maxOutbox:
		return atLimit("", "%d messages of this account wait to be sent, the most that can; try again later", maxOutbox)
	case payloadBytes > maxOutboxPayload:
		return atLimit("data", "data: the message would have %d bytes before it is rendered, the most is %d", payloadBytes, maxOutboxPayload)
	}
	return nil
}

func (m *Machine) nextSeq(a *account) uint64 {
	a.outbox.last++
	m.store.PutEntity(state.EntityKey(a.number, state.EntityOutbox, ""), binary.LittleEndian.AppendUint64(nil, a.outbox.last))
	return a.outbox.last
}

func (m *Machine) saveItem(a *account, it *OutboxItem) {
	m.store.PutEntity(outboxKey(a.number, it.Seq), must.JSON(it))
}

// unqueue removes an item. keep leaves its payload to a dead letter or to the log of
// deliveries.
func (m *Machine) unqueue(a *account, it *OutboxItem, keep bool) {
	a.outbox.leave(it)
	m.store.PutEntity(outboxKey(a.number, it.Seq), nil)
	if !keep {
		m.store.PutEntity(payloadKey(a.number, it.Origin), nil)
	}
}

// eraseOutbox removes what is queued, or kept as a dead letter, for profiles that
// are erased. It looks at all items, which are bounded.
func (m *Machine) eraseOutbox(a *account, ordinals ...uint32) error {
	var gone []*OutboxItem
	for _, it := range a.outbox.items {
		if slices.Contains(ordinals, it.Ordinal) {
			gone = append(gone, it)
		}
	}
	slices.SortFunc(gone, func(x, y *OutboxItem) int { return int(int64(x.Seq) - int64(y.Seq)) })
	for _, it := range gone {
		m.unqueue(a, it, false)
	}
	m.eraseDeliveries(a, ordinals)
	for endpoint, list := range a.outbox.dead {
		kept := make([]uint64, 0, len(list))
		for _, seq := range list {
			d, err := m.deadLetter(a, endpoint, seq)
			if err != nil {
				return err
			}
			if slices.Contains(ordinals, d.Ordinal) {
				m.dropDead(a, endpoint, &d)
				continue
			}
			kept = append(kept, seq)
		}
		a.outbox.dead[endpoint] = kept
	}
	return nil
}

// loadOutbox reads an entity of the outbox.
func (a *account) loadOutbox(name string, value []byte) error {
	switch len(name) {
	case 0:
		if len(value) != 8 {
			return fmt.Errorf("counter of the outbox of the wrong length")
		}
		a.outbox.last = binary.LittleEndian.Uint64(value)
		return nil
	case 8:
		it := new(OutboxItem)
		if err := json.Unmarshal(value, it); err != nil {
			return err
		}
		a.outbox.items[it.Seq] = it
		return nil
	}
	return fmt.Errorf("outbox item with a name of %d bytes", len(name))
}

// openOutbox puts in order what was loaded.
func (a *account) openOutbox() error {
	list := make([]*OutboxItem, 0, len(a.outbox.items))
	for _, it := range a.outbox.items {
		if it.Ordinal != NoProfile && it.Ordinal >= a.headers.Count {
			return fmt.Errorf("state: outbox item %d of account %016x is of profile %d, there are %d", it.Seq, a.number, it.Ordinal, a.headers.Count)
		}
		list = append(list, it)
	}
	slices.SortFunc(list, func(x, y *OutboxItem) int { return int(int64(x.Seq) - int64(y.Seq)) })
	for _, e := range a.endpoints {
		a.outbox.setLane(e)
	}
	a.outbox.openLogs()
	for _, it := range list {
		a.outbox.enter(it)
	}
	return nil
}

// hashOutbox is the outbox's part of the state's hash.
func (m *Machine) hashOutbox(put func([]byte), a *account) error {
	put(binary.LittleEndian.AppendUint64(nil, a.outbox.last))
	hashMap(put, a.endpoints)
	put(must.JSON(a.daily))
	payload := func(origin uint64) error {
		b, err := m.store.Entity(payloadKey(a.number, origin))
		put(b)
		return err
	}
	for _, seq := range sortedKeys(a.outbox.items) {
		it := a.outbox.items[seq]
		put(must.JSON(it))
		if err := payload(it.Origin); err != nil {
			return err
		}
	}
	for _, endpoint := range sortedKeys(a.outbox.dead) {
		for _, seq := range a.outbox.dead[endpoint] {
			d, err := m.deadLetter(a, endpoint, seq)
			if err != nil {
				return err
			}
			put(must.JSON(d))
			if err := payload(d.Origin); err != nil {
				return err
			}
		}
	}
	return m.hashDeliveries(put, a)
}
