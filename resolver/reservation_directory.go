package resolver

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
	"github.com/musterhq/muster/resolver/internal/state"
)

// emailDirectory is what a partition knows of reservations: partition 0 what is
// reserved and not confirmed, each partition what it has yet to release. Who holds
// which name is in the store alone.
type emailDirectory struct {
	reserved map[ReservationID]*reservation
	releases map[releaseKey]uint64 // account
}

func newEmailDirectory() emailDirectory {
	return emailDirectory{reserved: map[ReservationID]*reservation{}, releases: map[releaseKey]uint64{}}
}

// reservation is one that is neither confirmed nor released.
type reservation struct {
	Account uint64 `json:"account"`
	UntilMs int64  `json:"until_ms"`
	// At is the offset, plus one, of the record that reserved the last of the names.
	At    int64       `json:"at"`
	Names []EmailName `json:"names"`
}

type releaseKey struct {
	name EmailName
	id   ReservationID
}

func (k releaseKey) compare(o releaseKey) int {
	if c := slices.Compare(k.name[:], o.name[:]); c != 0 {
		return c
	}
	return slices.Compare(k.id[:], o.id[:])
}

// The kinds of keys in tableEmail.
const (
	emailHolder   = 'e' // name → account, id
	emailReserved = 'p' // id → reservation
	emailQueued   = 'q' // name, id → account
)

func emailKey(kind byte, parts ...[]byte) string {
	return string(slices.Concat(append([][]byte{append(state.AccountKey(nil, state.TableEmail, 0), kind)}, parts...)...))
}

// holder is the account that has a name.
type holder struct {
	account uint64
	id      ReservationID
}

func (h holder) encode() []byte {
	return append(binary.BigEndian.AppendUint64(nil, h.account), h.id[:]...)
}

func (m *Machine) holder(n EmailName) (h holder, ok bool) {
	b, err := m.store.Entity(emailKey(emailHolder, n[:]))
	if err == nil && b != nil && len(b) != 24 {
		err = fmt.Errorf("state: holder of e-mail %x has %d bytes, expected 24", n, len(b))
	}
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	if b == nil {
		return h, false
	}
	return holder{binary.BigEndian.Uint64(b), ReservationID(b[8:])}, true
}

func (m *Machine) putHolder(n EmailName, h *holder) {
	key := emailKey(emailHolder, n[:])
	if h == nil {
		m.store.PutPayload(key, nil)
		return
	}
	m.store.PutPayload(key, h.encode())
}

func (m *Machine) putReservation(id ReservationID, r *reservation) {
	key := emailKey(emailReserved, id[:])
	if r == nil {
		delete(m.emails.reserved, id)
		m.store.PutPayload(key, nil)
		return
	}
	m.emails.reserved[id] = r
	m.store.PutPayload(key, must.JSON(r))
}

func (m *Machine) reserveEmails(cmd *command, c EmailReserve) *Refusal {
	if len(c.Items) > MaxEmailItems {
		return atLimit("items", "items must have at most %d entries", MaxEmailItems)
	}
	for i, x := range c.Items {
		if n := len(x.Take); n < 1 || n > maxEmailNames || len(x.Check) > maxEmailNames || x.ID == (ReservationID{}) {
			return invalid("items", "items[%d] must have an id, take with 1 to %d entries, and check with at most as many", i, maxEmailNames)
		}
	}
	out := EmailReserved{make([]EmailAnswered, len(c.Items))}
	for i := range c.Items {
		x := &c.Items[i]
		out.Items[i].Answer = m.reserveEmail(x, cmd.out.Offset+1)
		if r := m.emails.reserved[x.ID]; r != nil && out.Items[i].Answer == EmailGranted {
			out.Items[i].At = r.At
		}
	}
	cmd.reply(out)
	return nil
}

func (m *Machine) reserveEmail(x *EmailAsk, at int64) EmailAnswer {
	if x.UntilMs > m.logTime+maxReserveMs {
		return EmailAhead
	}
	var free []EmailName
	busy := false
	look := func(n EmailName, take bool) (taken bool) {
		h, ok := m.holder(n)
		switch {
		case !ok:
			if take {
				free = append(free, n)
			}
		case h.account == x.Account:
			// Under another id it is about to be released, or somebody else's who makes
			// the same contact: it is not relied on.
			busy = busy || take && h.id != x.ID
		case m.emails.reserved[h.id] != nil:
			busy = true
		default:
			return true
		}
		return false
	}
	for _, n := range x.Take {
		if look(n, true) {
			return EmailTaken
		}
	}
	for _, n := range x.Check {
		if look(n, false) {
			return EmailTaken
		}
	}
	r := m.emails.reserved[x.ID]
	switch {
	case busy, r != nil && r.Account != x.Account:
		return EmailBusy
	case len(free) == 0:
		return EmailGranted
	case r == nil && len(m.emails.reserved) >= maxReserved:
		return EmailFull
	}
	now := reservation{Account: x.Account, UntilMs: x.UntilMs, At: at}
	if r != nil {
		now.Names, now.UntilMs = r.Names, max(r.UntilMs, x.UntilMs)
	}
	now.Names = slices.Concat(now.Names, free)
	m.putReservation(x.ID, &now)
	for _, n := range free {
		m.putHolder(n, &holder{x.Account, x.ID})
	}
	return EmailGranted
}

func (m *Machine) confirmEmails(_ *command, c EmailConfirm) *Refusal {
	if len(c.Items) > MaxEmailItems {
		return atLimit("items", "items must have at most %d entries", MaxEmailItems)
	}
	for _, x := range c.Items {
		if r := m.emails.reserved[x.ID]; r != nil && r.At == x.At {
			m.putReservation(x.ID, nil)
		}
	}
	return nil
}

func (m *Machine) releaseEmails(_ *command, c EmailRelease) *Refusal {
	if r := checkItems(c.Items); r != nil {
		return r
	}
	for _, x := range c.Items {
		for _, n := range x.Names {
			if h, ok := m.holder(n); ok && h == (holder{x.Account, x.ID}) {
				m.putHolder(n, nil)
			}
		}
		r := m.emails.reserved[x.ID]
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
			m.putReservation(x.ID, nil)
		case len(r.Names):
		default:
			m.putReservation(x.ID, &left)
		}
	}
	return nil
}

// reconcileGrace is for how long a reservation is left alone that is past its time: the
// clock by which its account's partition judges that may be behind.
const reconcileGrace = time.Second

// ReservationsDue are the reservations, by account, whose time is past at nowMs (Unix ms),
// and by a second, for another partition's clock. [ReconcileEmails] settles them.
func (m *Machine) ReservationsDue(nowMs int64) map[uint64][]EmailNames {
	out := map[uint64][]EmailNames{}
	nowMs -= reconcileGrace.Milliseconds()
	for id, r := range m.emails.reserved {
		if r.UntilMs <= nowMs {
			out[r.Account] = append(out[r.Account], EmailNames{Account: r.Account, ID: id, Names: r.Names, UntilMs: r.UntilMs, at: r.At})
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(x, y EmailNames) int { return slices.Compare(x.ID[:], y.ID[:]) })
	}
	return out
}

// loadEmails reads what is in memory of the directory.
func (m *Machine) loadEmails() error {
	for kind, load := range map[byte]func(name, value []byte) error{
		emailReserved: func(name, value []byte) error {
			r := new(reservation)
			if len(name) != len(ReservationID{}) {
				return errors.New("reservation with a name of the wrong length")
			}
			m.emails.reserved[ReservationID(name)] = r
			return json.Unmarshal(value, r)
		},
		emailQueued: func(name, value []byte) error {
			if len(name) != len(EmailName{})+len(ReservationID{}) || len(value) != 8 {
				return errors.New("e-mail to be released of the wrong length")
			}
			m.emails.releases[releaseKey{EmailName(name), ReservationID(name[16:])}] = binary.BigEndian.Uint64(value)
			return nil
		},
	} {
		prefix := emailKey(kind)
		err := m.store.Scan(prefix, func(key, value []byte) error { return load(key[len(prefix):], value) })
		if err != nil {
			return err
		}
	}
	return nil
}

// hashEmails is the directory's part of the state's hash, and the ids under which
// accounts hold what they have reserved.
func (m *Machine) hashEmails(put func([]byte)) error {
	for _, id := range slices.SortedFunc(maps.Keys(m.emails.reserved), func(x, y ReservationID) int { return slices.Compare(x[:], y[:]) }) {
		put(id[:])
		put(must.JSON(m.emails.reserved[id]))
	}
	for _, k := range slices.SortedFunc(maps.Keys(m.emails.releases), releaseKey.compare) {
		put(k.name[:])
		put(k.id[:])
		put(must.JSON(m.emails.releases[k]))
	}
	keys := map[string]bool{}
	prefix := emailKey(emailHolder)
	for _, layer := range []map[string][]byte{m.store.FrozenEntities, m.store.Entities} {
		for k := range layer {
			if strings.HasPrefix(k, prefix) {
				keys[k] = true
			}
		}
	}
	if err := m.store.Scan(prefix, func(key, _ []byte) error { keys[string(key)] = true; return nil }); err != nil {
		return err
	}
	for h, account := range m.reservations {
		keys[state.EntityKey(account, state.EntityReservation, string(h[:]))] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		b, err := m.store.Entity(k)
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
