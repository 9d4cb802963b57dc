package orders

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// EventRevenue is the type of the events that the service records of each change of revenue.
const EventRevenue = "revenue_recorded"

// The property kind of [EventRevenue].
const (
	RevenueOrder  = "order"
	RevenueRefund = "refund"
)

// MaxOrders is how many orders a profile may have, with refunds that wait for theirs. Profiles
// that become one may have more, and get no further ones then.
const MaxOrders = 1000

// MaxWaiting is how many refunds of an order wait apart from each other.
const MaxWaiting = 20

const (
	setOrders  = "orders" // profiles that have a record
	textRecord = 'R'      // kinds of the texts; the id is the ordinal
	textList   = 'L'
	textOrder  = 'O' // the id is the hash of the order's id
)

// Order is an order, or refunds that wait for their order.
type Order struct {
	ID string `json:"id"`
	// Ordinal is the profile that it was recorded against; merges lead on from there.
	Ordinal uint32 `json:"ordinal"`
	// Placed is false while the order has yet to arrive.
	Placed   bool   `json:"placed"`
	AtMs     int64  `json:"at_ms"` // the event's own time
	Total    Amount `json:"total"`
	Currency string `json:"currency"`
	Items    []Item `json:"items,omitempty"`
	Count    int    `json:"item_count"` // of all items, also of those that are not kept
	// Waiting are the refunds that came before the order, the oldest first; none once it is placed.
	// Nothing else is known of the order then, and Ordinal says nothing.
	Waiting []Waiting `json:"waiting,omitempty"`
	// Asked is what refunds asked for together, Whole that one asked for all. RefundMs is the
	// time of the newest one, 0 before the first.
	Asked    Amount `json:"asked,omitempty"`
	Whole    bool   `json:"whole,omitempty"`
	RefundMs int64  `json:"refund_ms,omitempty"`
	// Touch is the message that the order belongs to, nil for none.
	Touch *Touch `json:"touch,omitempty"`
}

// Refunded is what refunds took off.
func (x *Order) Refunded() Amount {
	if x.Whole {
		return x.Total
	}
	return min(x.Asked, x.Total)
}

// Waiting is a refund that waits for its order.
type Waiting struct {
	AtMs   int64  `json:"at_ms"` // the event's own time
	Amount Amount `json:"amount,omitempty"`
	Whole  bool   `json:"whole,omitempty"`
	// Ordinal is the profile of the event; merges lead on from there.
	Ordinal uint32 `json:"ordinal"`
}

// refund takes a refund off what is left, and returns what it took.
func (x *Order) refund(w Waiting) Amount {
	before := x.Refunded()
	x.Asked = min(x.Asked+w.Amount, maxAmount*unit)
	x.Whole = x.Whole || w.Whole
	x.RefundMs = max(x.RefundMs, w.AtMs)
	return x.Refunded() - before
}

// wait adds a refund that waits. Those of one time are in order of what they ask for, so that the
// order in which they come changes nothing.
func (x *Order) wait(w Waiting) {
	i, _ := slices.BinarySearchFunc(x.Waiting, w, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(a.AtMs, b.AtMs), cmp.Compare(a.Amount, b.Amount), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	x.Waiting = slices.Insert(x.Waiting, i, w)
}

// join adds a refund to the newest of those that wait, when there are [MaxWaiting].
func (x *Order) join(w Waiting) {
	last := &x.Waiting[len(x.Waiting)-1]
	last.AtMs = max(last.AtMs, w.AtMs)
	last.Amount = min(last.Amount+w.Amount, maxAmount*unit)
	last.Whole = last.Whole || w.Whole
}

// Cart is the newest cart of a person.
type Cart struct {
	ID       string `json:"id,omitempty"`
	AtMs     int64  `json:"at_ms"` // the event's own time
	Total    Amount `json:"total"`
	Currency string `json:"currency,omitempty"`
	Items    []Item `json:"items,omitempty"`
	Count    int    `json:"item_count"`
	// Empty says that nothing is in it. Under rules before 25 it was not noted.
	Empty bool `json:"empty,omitempty"`
}

// record is what is kept of a profile, but for its list of orders.
type record struct {
	Totals  []CurrencyFigures `json:"totals,omitempty"` // by currency
	FirstMs int64             `json:"first_ms,omitempty"`
	LastMs  int64             `json:"last_ms,omitempty"`
	// BoughtMs is the time of the newest order_placed that is no order of the profile: its
	// properties are bad, it came with a browser's key, or there are too many. The person has
	// bought the cart by it all the same.
	BoughtMs int64   `json:"bought_ms,omitempty"`
	Cart     *Cart   `json:"cart,omitempty"`
	Touches  []Touch `json:"touches,omitempty"` // the oldest first
}

// CurrencyFigures are figures and their currency.
type CurrencyFigures struct {
	Currency string `json:"currency"`
	Figures
}

// entry is an order in the list of its profile.
type entry struct {
	atMs int64
	hash identifier.Hash
}

func compareEntries(x, y entry) int {
	return cmp.Or(cmp.Compare(x.atMs, y.atMs), bytes.Compare(x.hash[:], y.hash[:]))
}

// HashID is the hash of an order's id, also of a masked one; buf is scratch.
func HashID(h identifier.Hasher, id string, buf *[]byte) identifier.Hash {
	if identifier.IsMasked(id) {
		return h.HashIdempotencyKey([]byte(id), buf)
	}
	return h.HashIdempotencyKey([]byte("order\x00"+id), buf)
}

// Host is what orders need of their account.
type Host interface {
	// Root is the profile that an ordinal leads to through merges.
	Root(ordinal uint32) uint32
	// HashOrder is the hash of an order's id, also of a masked one; buf is scratch.
	HashOrder(id string, buf *[]byte) identifier.Hash
}

// State is the orders of an account.
type State struct {
	account     uint64
	store       *state.Store
	sets        *profile.OrdinalSets
	host        Host
	attribution Attribution

	days    feature.Table[Day]
	sources feature.Table[SourceFigures]
	// currencies counts the days with the date "".
	currencies int
	// normal is scratch for hashes of what changes the state. Readers have memory of their own:
	// several read at once.
	normal []byte
	// reading is the standard event that was read last. Readers of the state do not see it.
	reading struct {
		kind    Kind
		event   Event
		problem Problem
	}
}

// New returns the state of an account without orders, whose sets are given.
func New(account uint64, store *state.Store, sets *profile.OrdinalSets, host Host) *State {
	return &State{
		account: account, store: store, sets: sets, host: host, attribution: *(*Attribution)(nil).Shown(),
		days: feature.NewTable[Day](state.EntityRevenueDay), sources: feature.NewTable[SourceFigures](state.EntityRevenueSource),
	}
}

// Configure sets how orders are attributed, nil for the defaults. Orders on record keep what
// was decided of them.
func (s *State) Configure(a *Attribution) { s.attribution = *a.Shown() }

func (x *Order) change(ordinal uint32, atMs int64, kind string, amount Amount) feature.Recorded {
	p := feature.Properties{"order_id": x.ID, "kind": kind, "amount": amount.Number(), "currency": x.Currency}
	if x.Touch != nil {
		for name, value := range map[string]string{"channel": x.Touch.Channel, "campaign_id": x.Touch.Campaign, "flow_id": x.Touch.Flow, "step_id": x.Touch.Step} {
			if value != "" {
				p[name] = value
			}
		}
	}
	return feature.Recorded{Ordinal: ordinal, AtMs: atMs, Event: feature.NewEvent(EventRevenue, p)}
}

// Reads reports whether events of a type are standard events, see [feature.Reader].
func (s *State) Reads(eventType []byte) bool { return KindOf(eventType) != None }

// Read reads a standard event. It repeats an order that has its id.
func (s *State) Read(tx *feature.Tx, ev *eventlog.Event) (of uint32, repeats bool) {
	r := &s.reading
	r.kind = KindOf(ev.Type)
	r.event, r.problem = Read(r.kind, ev.Properties, ev.Redacted, tx.Rules)
	id, named := r.event.ID, r.problem == Fine
	if !named {
		id, named = PlacedID(ev.Properties, ev.Redacted)
	}
	if ev.Public && r.kind != CartUpdated {
		r.problem = PublicKey
	}
	if r.kind != Placed || !named {
		return 0, false
	}
	old := s.order(s.host.HashOrder(id, &s.normal))
	if old == nil || !old.Placed {
		return 0, false
	}
	r.problem = Repeated
	return s.host.Root(old.Ordinal), true
}

// Warning is the warning that the sender of the standard event gets that was read last, "" for
// none.
func (s *State) Warning() string { return s.reading.problem.Warning() }

// Take makes the standard event that was read last part of the state. It returns the events of
// changes of revenue that follow.
func (s *State) Take(tx *feature.Tx, ordinal uint32, atMs int64) (changes []feature.Recorded) {
	x := &s.reading.event
	switch {
	case s.reading.problem != Fine:
		if s.reading.kind == Placed {
			s.bought(tx, ordinal, atMs)
		}
	case x.Kind == Placed:
		changes, s.reading.problem = s.place(tx, ordinal, atMs, x)
	case x.Kind == Refunded:
		changes, s.reading.problem = s.refund(tx, ordinal, atMs, x)
	default:
		if r := s.record(ordinal); r.Cart == nil || atMs >= r.Cart.AtMs {
			r.Cart = &Cart{ID: x.ID, AtMs: atMs, Total: x.Total, Currency: x.Currency, Items: x.Items, Count: x.Count, Empty: x.Empty}
			s.putRecord(ordinal, r)
		}
	}
	return changes
}

// bought notes an order_placed that is no order of the profile: it follows a cart like one.
func (s *State) bought(tx *feature.Tx, ordinal uint32, atMs int64) {
	if tx.Rules < rulesCarts {
		return
	}
	if r := s.record(ordinal); atMs > r.BoughtMs {
		r.BoughtMs = atMs
		s.putRecord(ordinal, r)
	}
}

func (s *State) place(tx *feature.Tx, ordinal uint32, atMs int64, x *Event) ([]feature.Recorded, Problem) {
	h := s.host.HashOrder(x.ID, &s.normal)
	waiting := s.order(h)
	list := s.list(ordinal)
	// A refund that waits on the same profile has its place already.
	takes := waiting == nil || !s.waits(waiting, ordinal)
	if takes && len(list) >= MaxOrders || !s.hasRoom(x.Currency, x.Total) {
		s.bought(tx, ordinal, atMs)
		return nil, TooMany
	}
	r := s.record(ordinal)
	o := Order{ID: x.ID, Ordinal: ordinal, Placed: true, AtMs: atMs, Total: x.Total, Currency: x.Currency, Items: x.Items, Count: x.Count, Touch: s.touched(&r, atMs)}
	if o.Touch != nil && !s.mayAttribute(&o.Touch.Source, o.Currency) {
		o.Touch = nil
	}
	if waiting != nil {
		for _, w := range waiting.Waiting {
			of := s.host.Root(w.Ordinal)
			s.putList(of, slices.DeleteFunc(s.list(of), func(e entry) bool { return e.hash == h }))
		}
		list = s.list(ordinal)
	}
	i, _ := slices.BinarySearchFunc(list, entry{atMs, h}, compareEntries)
	s.putList(ordinal, slices.Insert(list, i, entry{atMs, h}))
	if r.LastMs == 0 || atMs > r.LastMs {
		r.LastMs = atMs
	}
	if r.FirstMs == 0 || atMs < r.FirstMs {
		r.FirstMs = atMs
	}
	placed := Figures{Orders: 1, Total: o.Total}
	s.count(tx, atMs, o.Currency, o.Touch, placed)
	changes := []feature.Recorded{o.change(ordinal, atMs, RevenueOrder, o.Total)}
	r.add(o.Currency, placed)
	if waiting != nil {
		for _, w := range waiting.Waiting {
			if taken := o.refund(w); taken > 0 {
				s.count(tx, w.AtMs, o.Currency, o.Touch, Figures{Refunded: taken})
				changes = append(changes, o.change(ordinal, w.AtMs, RevenueRefund, -taken))
				r.add(o.Currency, Figures{Refunded: taken})
			}
		}
	}
	s.putOrder(h, &o)
	s.putRecord(ordinal, r)
	return changes, Fine
}

func (s *State) refund(tx *feature.Tx, ordinal uint32, atMs int64, x *Event) ([]feature.Recorded, Problem) {
	h := s.host.HashOrder(x.ID, &s.normal)
	o := s.order(h)
	w := Waiting{AtMs: atMs, Amount: x.Refund, Whole: x.Whole, Ordinal: ordinal}
	if o == nil || !o.Placed {
		return nil, s.keepWaiting(h, o, w)
	}
	problem := Fine
	taken := o.refund(w)
	s.putOrder(h, o)
	if !x.Whole && taken < x.Refund || taken == 0 {
		problem = RefundsMore
	}
	if taken == 0 {
		return nil, problem
	}
	of := s.host.Root(o.Ordinal)
	s.count(tx, atMs, o.Currency, o.Touch, Figures{Refunded: taken})
	r := s.record(of)
	r.add(o.Currency, Figures{Refunded: taken})
	s.putRecord(of, r)
	return []feature.Recorded{o.change(of, atMs, RevenueRefund, -taken)}, problem
}

// keepWaiting keeps a refund until its order comes. o has those of the order that wait already,
// nil for none.
func (s *State) keepWaiting(h identifier.Hash, o *Order, w Waiting) Problem {
	if o == nil {
		o = new(Order)
	}
	if len(o.Waiting) == MaxWaiting {
		o.join(w)
		s.putOrder(h, o)
		return Fine
	}
	if !s.waits(o, w.Ordinal) {
		list := s.list(w.Ordinal)
		if len(list) >= MaxOrders {
			return TooMany
		}
		i, _ := slices.BinarySearchFunc(list, entry{w.AtMs, h}, compareEntries)
		s.putList(w.Ordinal, slices.Insert(list, i, entry{w.AtMs, h}))
		s.touchSet(w.Ordinal)
	}
	o.wait(w)
	s.putOrder(h, o)
	return Fine
}

// waits reports whether a profile has a refund that waits for an order.
func (s *State) waits(o *Order, ordinal uint32) bool {
	return slices.ContainsFunc(o.Waiting, func(w Waiting) bool { return s.host.Root(w.Ordinal) == ordinal })
}

func (r *record) add(currency string, x Figures) {
	i, found := slices.BinarySearchFunc(r.Totals, currency, func(f CurrencyFigures, c string) int { return cmp.Compare(f.Currency, c) })
	if !found {
		r.Totals = slices.Insert(r.Totals, i, CurrencyFigures{Currency: currency})
	}
	r.Totals[i].add(x)
}

// Merge makes the orders of a merged profile the winner's, see [feature.Merger].
func (s *State) Merge(tx *feature.Tx, winner, merged uint32) {
	if !s.sets.Members(setOrders).Contains(merged) {
		return
	}
	from, list := s.record(merged), s.list(merged)
	s.drop(merged)
	r := s.record(winner)
	for _, f := range from.Totals {
		r.add(f.Currency, f.Figures)
	}
	r.LastMs, r.BoughtMs = max(r.LastMs, from.LastMs), max(r.BoughtMs, from.BoughtMs)
	if r.FirstMs == 0 || from.FirstMs != 0 && from.FirstMs < r.FirstMs {
		r.FirstMs = from.FirstMs
	}
	if from.Cart != nil && (r.Cart == nil || from.Cart.AtMs > r.Cart.AtMs) {
		r.Cart = from.Cart
	}
	for _, t := range from.Touches {
		r.touch(t, tx.Rules)
	}
	all := append(s.list(winner), list...)
	slices.SortFunc(all, compareEntries)
	// Both may have had refunds that wait for one order.
	seen := make(map[identifier.Hash]bool, len(all))
	all = slices.DeleteFunc(all, func(e entry) bool {
		twice := seen[e.hash]
		seen[e.hash] = true
		return twice
	})
	s.putList(winner, all)
	s.putRecord(winner, r)
}

// Erase removes erased profiles with their orders, see [feature.Eraser].
func (s *State) Erase(_ *feature.Tx, ordinals ...uint32) error {
	for _, o := range ordinals {
		for _, e := range s.list(o) {
			s.eraseOrder(e.hash, o)
		}
		s.drop(o)
	}
	return nil
}

// eraseOrder removes an order of a profile, or its refunds that wait. Those of others stay.
func (s *State) eraseOrder(h identifier.Hash, ordinal uint32) {
	if x := s.order(h); x != nil && !x.Placed {
		x.Waiting = slices.DeleteFunc(x.Waiting, func(w Waiting) bool { return s.host.Root(w.Ordinal) == ordinal })
		if len(x.Waiting) > 0 {
			s.putOrder(h, x)
			return
		}
	}
	s.store.PutEntity(s.orderKey(h), nil)
}

// Keys are where the orders of profiles are, for what is to leave the store's files.
func (s *State) Keys(ordinals ...uint32) (keys []string) {
	for _, o := range ordinals {
		for _, e := range s.list(o) {
			keys = append(keys, s.orderKey(e.hash))
		}
		keys = append(keys, s.ordinalKey(textRecord, o), s.ordinalKey(textList, o))
	}
	return keys
}

func (s *State) ordinalKey(kind byte, ordinal uint32) string {
	return state.TextKey(s.account, kind, string(binary.BigEndian.AppendUint32(nil, ordinal)))
}

func (s *State) orderKey(h identifier.Hash) string {
	return state.TextKey(s.account, textOrder, string(h[:]))
}

// read reads a text of the store, nil for one that is not there. Apply cannot continue without the
// store, so an error of it ends the record, which is named.
func (s *State) read(key string) []byte {
	b, err := s.store.Entity(key)
	if err != nil {
		panic(err)
	}
	return b
}

func (s *State) order(h identifier.Hash) *Order {
	b := s.read(s.orderKey(h))
	if b == nil {
		return nil
	}
	o := new(Order)
	if err := json.Unmarshal(b, o); err != nil {
		panic(fmt.Errorf("order %x: %w", h, err))
	}
	return o
}

func (s *State) putOrder(h identifier.Hash, o *Order) {
	s.store.PutPayload(s.orderKey(h), must.JSON(o))
}

func (s *State) record(ordinal uint32) (r record) {
	if b := s.read(s.ordinalKey(textRecord, ordinal)); b != nil {
		if err := json.Unmarshal(b, &r); err != nil {
			panic(fmt.Errorf("orders of profile %d: %w", ordinal, err))
		}
	}
	return r
}

func (s *State) putRecord(ordinal uint32, r record) {
	s.store.PutPayload(s.ordinalKey(textRecord, ordinal), must.JSON(r))
	s.touchSet(ordinal)
}

func (s *State) touchSet(ordinal uint32) { s.sets.Set(setOrders).Add(ordinal) }

// drop removes a profile, except for the orders themselves.
func (s *State) drop(ordinal uint32) {
	s.store.PutEntity(s.ordinalKey(textRecord, ordinal), nil)
	s.store.PutEntity(s.ordinalKey(textList, ordinal), nil)
	if set := s.sets.Find(setOrders); set != nil {
		set.Remove(ordinal)
	}
}

// errList means that the list of a profile's orders is damaged.
var errList = errors.New("the list of a profile's orders has a bad format")

const (
	listVersion = 1
	entryBytes  = 8 + len(identifier.Hash{})
)

// list are the orders of a profile, the oldest first.
func (s *State) list(ordinal uint32) []entry {
	list, err := decodeList(s.read(s.ordinalKey(textList, ordinal)))
	if err != nil {
		panic(fmt.Errorf("profile %d: %w", ordinal, err))
	}
	return list
}

func decodeList(b []byte) ([]entry, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if b[0] != listVersion || (len(b)-1)%entryBytes != 0 {
		return nil, errList
	}
	list := make([]entry, 0, (len(b)-1)/entryBytes)
	for b = b[1:]; len(b) > 0; b = b[entryBytes:] {
		e := entry{int64(binary.LittleEndian.Uint64(b)), identifier.Hash(b[8:])}
		if len(list) > 0 && compareEntries(list[len(list)-1], e) >= 0 {
			return nil, errList
		}
		list = append(list, e)
	}
	return list, nil
}

func (s *State) putList(ordinal uint32, list []entry) {
	if len(list) == 0 {
		s.store.PutEntity(s.ordinalKey(textList, ordinal), nil)
		return
	}
	s.store.PutPayload(s.ordinalKey(textList, ordinal), encodeList(list))
}

func encodeList(list []entry) []byte {
	b := append(make([]byte, 0, 1+len(list)*entryBytes), listVersion)
	for _, e := range list {
		b = append(binary.LittleEndian.AppendUint64(b, uint64(e.atMs)), e.hash[:]...)
	}
	return b
}

// Load takes back what a checkpoint has, see [feature.State]. Texts stay in the store.
func (s *State) Load(kind byte, name string, value []byte) (known bool, err error) {
	switch kind {
	case state.EntityRevenueDay:
		var d *Day
		if d, err = s.days.Load(name, value); err == nil && d.Date == "" {
			s.currencies++
		}
	case state.EntityRevenueSource:
		_, err = s.sources.Load(name, value)
	default:
		return false, nil
	}
	return true, err
}

// Hash gives put the whole state, see [feature.State].
func (s *State) Hash(put func([]byte)) error {
	for it := s.sets.Members(setOrders).Iterator(); it.HasNext(); {
		o := it.Next()
		put(binary.BigEndian.AppendUint32(nil, o))
		put(s.read(s.ordinalKey(textRecord, o)))
		for _, e := range s.list(o) {
			x := s.order(e.hash)
			if x == nil || x.Placed && s.host.Root(x.Ordinal) != o || !x.Placed && !s.waits(x, o) {
				return fmt.Errorf("profile %d lists an order that is not its own", o)
			}
			put(e.hash[:])
			put(must.JSON(x))
		}
	}
	s.days.Hash(put)
	s.sources.Hash(put)
	return nil
}
