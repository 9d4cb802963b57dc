package emaildir

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// State is a partition's part of the directory of contacts' e-mails: which account holds
// which name, over all its accounts; in partition 0 also what is reserved and not
// confirmed; and what the partition has yet to release. Who holds which name among all
// partitions is in partition 0's store alone.
type State struct {
	store    *state.Store
	held     map[Name]uint64 // account
	reserved map[ReservationID]*reservation
	releases map[releaseKey]uint64 // account
}

// New is the state of a partition without accounts.
func New(store *state.Store) *State {
	return &State{store: store, held: map[Name]uint64{}, reserved: map[ReservationID]*reservation{}, releases: map[releaseKey]uint64{}}
}

// reservation is one that is neither confirmed nor released.
type reservation struct {
	Account uint64 `json:"account"`
	UntilMs int64  `json:"until_ms"`
	// At is the offset, plus one, of the record that reserved the last of the names.
	At    int64  `json:"at"`
	Names []Name `json:"names"`
}

func (n Name) compare(o Name) int { return slices.Compare(n[:], o[:]) }

type releaseKey struct {
	name Name
	id   ReservationID
}

func (k releaseKey) compare(o releaseKey) int {
	if c := k.name.compare(o.name); c != 0 {
		return c
	}
	return slices.Compare(k.id[:], o.id[:])
}

// The kinds of keys in [state.TableEmail].
const (
	keyHolder   = 'e' // name → account, id
	keyReserved = 'p' // id → reservation
	keyQueued   = 'q' // name, id → account
)

func directoryKey(kind byte, parts ...[]byte) string {
	return string(slices.Concat(append([][]byte{append(state.AccountKey(nil, state.TableEmail, 0), kind)}, parts...)...))
}

// Holder is the account that has a name.
type Holder struct {
	Account uint64
	ID      ReservationID // under which it was reserved
}

// Entry is the key and value by which the store has who holds a name.
func Entry(n Name, h Holder) (key, value []byte) {
	return []byte(directoryKey(keyHolder, n[:])), h.encode()
}

func (h Holder) encode() []byte {
	return append(binary.BigEndian.AppendUint64(nil, h.Account), h.ID[:]...)
}

// Holder returns the account that has a name in the directory, which only partition 0 keeps.
func (s *State) Holder(n Name) (h Holder, ok bool) {
	b, err := s.store.Entity(directoryKey(keyHolder, n[:]))
	if err == nil && b != nil && len(b) != 24 {
		err = fmt.Errorf("state: holder of e-mail %x has %d bytes, expected 24", n, len(b))
	}
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	if b == nil {
		return h, false
	}
	return Holder{binary.BigEndian.Uint64(b), ReservationID(b[8:])}, true
}

// Reserved reports whether a reservation is neither confirmed nor released.
func (s *State) Reserved(id ReservationID) bool { return s.reserved[id] != nil }

func (s *State) putHolder(n Name, h *Holder) {
	key := directoryKey(keyHolder, n[:])
	if h == nil {
		s.store.PutPayload(key, nil)
		return
	}
	s.store.PutPayload(key, h.encode())
}

func (s *State) putReservation(id ReservationID, r *reservation) {
	key := directoryKey(keyReserved, id[:])
	if r == nil {
		delete(s.reserved, id)
		s.store.PutPayload(key, nil)
		return
	}
	s.reserved[id] = r
	s.store.PutPayload(key, must.JSON(r))
}

func (s *State) reserve(tx *feature.Tx, c Reserve) *refuse.Refusal {
	if len(c.Items) > MaxItems {
		return refuse.AtLimit("items", "items must have at most %d entries", MaxItems)
	}
	for i, x := range c.Items {
		if n := len(x.Take); n < 1 || n > maxEmailNames || len(x.Check) > maxEmailNames || x.ID == (ReservationID{}) {
			return refuse.Invalid("items", "items[%d] must have an id, take with 1 to %d entries, and check with at most as many", i, maxEmailNames)
		}
	}
	out := Reserved{make([]Answered, len(c.Items))}
	for i := range c.Items {
		x := &c.Items[i]
		out.Items[i].Answer = s.reserveOne(tx, x)
		if r := s.reserved[x.ID]; r != nil && out.Items[i].Answer == Granted {
			out.Items[i].At = r.At
		}
	}
	tx.Reply = out
	return nil
}

func (s *State) reserveOne(tx *feature.Tx, x *Ask) Answer {
	if x.UntilMs > tx.AtMs+maxReserveMs {
		return Ahead
	}
	var free []Name
	busy := false
	look := func(n Name, take bool) (taken bool) {
		h, ok := s.Holder(n)
		switch {
		case !ok:
			if take {
				free = append(free, n)
			}
		case h.Account == x.Account:
			// Under another id it is about to be released, or another request makes the
			// same contact: it is not relied on.
			busy = busy || take && h.ID != x.ID
		case s.reserved[h.ID] != nil:
			busy = true
		default:
			return true
		}
		return false
	}
	for _, n := range x.Take {
		if look(n, true) {
			return Taken
		}
	}
	for _, n := range x.Check {
		if look(n, false) {
			return Taken
		}
	}
	r := s.reserved[x.ID]
	switch {
	case busy, r != nil && r.Account != x.Account:
		return Busy
	case len(free) == 0:
		return Granted
	case r == nil && len(s.reserved) >= MaxReserved:
		return Full
	}
	now := reservation{Account: x.Account, UntilMs: x.UntilMs, At: tx.Offset + 1}
	if r != nil {
		now.Names, now.UntilMs = r.Names, max(r.UntilMs, x.UntilMs)
	}
	now.Names = slices.Concat(now.Names, free)
	s.putReservation(x.ID, &now)
	for _, n := range free {
		s.putHolder(n, &Holder{x.Account, x.ID})
	}
	return Granted
}

func (s *State) confirm(tx *feature.Tx, c Confirm) *refuse.Refusal {
	if len(c.Items) > MaxItems {
		return refuse.AtLimit("items", "items must have at most %d entries", MaxItems)
	}
	for _, x := range c.Items {
		if r := s.reserved[x.ID]; r != nil && r.At == x.At {
			s.putReservation(x.ID, nil)
		}
	}
	return nil
}

func (s *State) release(tx *feature.Tx, c Release) *refuse.Refusal {
	if r := checkItems(c.Items); r != nil {
		return r
	}
	for _, x := range c.Items {
		for _, n := range x.Names {
			if h, ok := s.Holder(n); ok && h == (Holder{x.Account, x.ID}) {
				s.putHolder(n, nil)
			}
		}
		r := s.reserved[x.ID]
		if r == nil || r.Account != x.Account {
			continue
		}
		left := reservation{Account: r.Account, UntilMs: r.UntilMs, At: r.At}
		for _, n := range r.Names {
			if !slices.Contains(x.Names, n) {
				left.Names = append(left.Names, n)
			}
		}
		switch len(left.Names) {
		case 0:
			s.putReservation(x.ID, nil)
		case len(r.Names):
		default:
			s.putReservation(x.ID, &left)
		}
	}
	return nil
}

// ReconcileGrace is for how long a reservation is left alone that is past its time: the
// clock by which its account's partition judges that may be behind.
const ReconcileGrace = time.Second

// ReservationsDue are the reservations, by account, whose time is past at nowMs (Unix ms),
// and by a second, for another partition's clock. [ReconcileDue] reconciles them.
func (s *State) ReservationsDue(nowMs int64) map[uint64][]Names {
	out := map[uint64][]Names{}
	nowMs -= ReconcileGrace.Milliseconds()
	for id, r := range s.reserved {
		if r.UntilMs <= nowMs {
			out[r.Account] = append(out[r.Account], Names{Account: r.Account, ID: id, Names: r.Names, UntilMs: r.UntilMs, at: r.At})
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(x, y Names) int { return slices.Compare(x.ID[:], y.ID[:]) })
	}
	return out
}

// Open reads what is in memory of the directory.
func (s *State) Open() error {
	for kind, load := range map[byte]func(name, value []byte) error{
		keyReserved: func(name, value []byte) error {
			r := new(reservation)
			if len(name) != len(ReservationID{}) {
				return errors.New("reservation with a name of the wrong length")
			}
			s.reserved[ReservationID(name)] = r
			return json.Unmarshal(value, r)
		},
		keyQueued: func(name, value []byte) error {
			if len(name) != len(Name{})+len(ReservationID{}) || len(value) != 8 {
				return errors.New("e-mail to be released of the wrong length")
			}
			s.releases[releaseKey{Name(name), ReservationID(name[16:])}] = binary.BigEndian.Uint64(value)
			return nil
		},
	} {
		prefix := directoryKey(kind)
		err := s.store.Scan(prefix, func(key, value []byte) error { return load(key[len(prefix):], value) })
		if err != nil {
			return err
		}
	}
	return nil
}

// LoadHeld takes back a name that an account holds.
func (s *State) LoadHeld(account uint64, name string, value []byte) error {
	if len(name) != len(Name{}) || len(value) != 0 && len(value) != len(ReservationID{}) {
		return errors.New("reservation of the wrong length")
	}
	s.held[Name([]byte(name))] = account
	return nil
}

// Hash gives put the whole state, and the ids under which accounts hold what they have
// reserved, in an order that depends on them alone.
func (s *State) Hash(put func([]byte)) error {
	for _, n := range slices.SortedFunc(maps.Keys(s.held), Name.compare) {
		put(n[:])
		put(must.JSON(s.held[n]))
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.reserved), func(x, y ReservationID) int { return slices.Compare(x[:], y[:]) }) {
		put(id[:])
		put(must.JSON(s.reserved[id]))
	}
	for _, k := range slices.SortedFunc(maps.Keys(s.releases), releaseKey.compare) {
		put(k.name[:])
		put(k.id[:])
		put(must.JSON(s.releases[k]))
	}
	keys, err := s.holderKeys()
	if err != nil {
		return err
	}
	for h, account := range s.held {
		keys[heldKey(account, h)] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		b, err := s.store.Entity(k)
		if err != nil {
			return err
		}
		if len(b) > 0 { // removed, or of one partition: in the hash already
			put([]byte(k))
			put(b)
		}
	}
	return nil
}

// holderKeys are the keys of all holders, some of which may be removed.
func (s *State) holderKeys() (map[string]bool, error) {
	keys := map[string]bool{}
	prefix := directoryKey(keyHolder)
	for _, layer := range []map[string][]byte{s.store.FrozenEntities, s.store.Entities} {
		for k := range layer {
			if strings.HasPrefix(k, prefix) {
				keys[k] = true
			}
		}
	}
	err := s.store.Scan(prefix, func(key, _ []byte) error { keys[string(key)] = true; return nil })
	return keys, err
}

// Holders are the names that the directory has, with who holds them. It reads the whole
// directory.
func (s *State) Holders() (map[Name]Holder, error) {
	keys, err := s.holderKeys()
	if err != nil {
		return nil, err
	}
	out := map[Name]Holder{}
	prefix := directoryKey(keyHolder)
	for k := range keys {
		n := Name([]byte(strings.TrimPrefix(k, prefix)))
		if h, ok := s.Holder(n); ok {
			out[n] = h
		}
	}
	return out, nil
}
