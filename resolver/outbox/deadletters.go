package outbox

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// DeadLetter is a webhook that was given up.
type DeadLetter struct {
	Item
	DiedMs int64  `json:"died_ms"`
	Reason string `json:"reason"`
}

func (s *State) deadKey(endpoint string, seq uint64) string {
	return state.EntityKey(s.account, state.EntityDead, string(binary.BigEndian.AppendUint64([]byte(endpoint), seq)))
}

// die makes an item a dead letter, and returns its number. When there are too many
// the oldest goes.
func (s *State) die(tx *feature.Tx, it *Item, reason string) (seq uint64) {
	s.unqueue(it, true)
	x := DeadLetter{*it, tx.AtMs, reason}
	x.Attempt++
	// Dead letters are listed in the order in which they died.
	x.Seq = s.nextSeq()
	list := append(s.dead[it.Endpoint], x.Seq)
	s.shared.Store.PutEntity(s.deadKey(it.Endpoint, x.Seq), must.JSON(x))
	for len(list) > maxDeadLetters {
		old, err := s.deadLetter(it.Endpoint, list[0])
		if err != nil {
			panic(err) // the store is at fault; the record is named
		}
		s.dropDead(it.Endpoint, &old)
		list = list[1:]
	}
	s.dead[it.Endpoint] = list
	return x.Seq
}

// deadLetter reads one from the store.
func (s *State) deadLetter(endpoint string, seq uint64) (x DeadLetter, err error) {
	b, err := s.shared.Store.Entity(s.deadKey(endpoint, seq))
	if err == nil && b == nil {
		err = fmt.Errorf("dead letter %d of endpoint %s is missing", seq, endpoint)
	}
	if err != nil {
		return x, err
	}
	return x, json.Unmarshal(b, &x)
}

// dropDead removes what is stored of a dead letter.
func (s *State) dropDead(endpoint string, x *DeadLetter) {
	s.shared.Store.PutEntity(s.deadKey(endpoint, x.Seq), nil)
	if !s.buriedDelivery(endpoint, x.Origin) {
		s.shared.Store.PutEntity(s.payloadKey(x.Origin), nil)
	}
}

// loadDead reads the name of a dead letter; the rest stays in the store. Names
// come in order.
func (s *State) loadDead(name string) error {
	n := len(name) - 8
	if n <= 0 {
		return fmt.Errorf("dead letter with a name of %d bytes", len(name))
	}
	s.dead[name[:n]] = append(s.dead[name[:n]], binary.BigEndian.Uint64([]byte(name[n:])))
	return nil
}

// maxReplay is how many dead letters one record queues again.
const maxReplay = 500

// WebhookReplay queues a dead letter again, or some of all when Seq and Origin are 0.
type WebhookReplay struct {
	ID  string `json:"id"`
	Seq uint64 `json:"seq,omitempty"`
	// Origin names a delivery of the log, a dead letter or not.
	Origin uint64 `json:"origin,omitempty"`
}

// ReplayReply says how many were queued and how many are left. Asked
// again until nothing is left, all are.
type ReplayReply struct {
	Replayed int `json:"replayed"`
	Left     int `json:"left"`
}

func (s *State) replayWebhook(tx *feature.Tx, c WebhookReplay) *refuse.Refusal {
	e := s.endpoints[c.ID]
	if e == nil {
		return noEndpoint()
	}
	if e.Status != EndpointActive {
		return notActive()
	}
	if c.Origin != 0 {
		d, refusal := s.redeliver(tx, e, c.Origin)
		if refusal != nil || d == nil {
			if refusal == nil {
				tx.Reply = ReplayReply{1, len(s.dead[e.ID])}
			}
			return refusal
		}
		c.Seq = d.Dead
	}
	list := s.dead[e.ID]
	at, n := 0, min(len(list), maxReplay)
	if c.Seq != 0 {
		if at = slices.Index(list, c.Seq); at < 0 {
			return refuse.NotFound("seq", "there is no dead letter with this number")
		}
		n = 1
	}
	n = min(n, MaxItems-len(s.items), maxLane-s.queued(e.ID))
	if n <= 0 && len(list) > 0 {
		return refuse.AtLimit("", "too many deliveries wait for this endpoint; try again later")
	}
	for _, seq := range list[at : at+n] {
		x, err := s.deadLetter(e.ID, seq)
		if err != nil {
			panic(err) // the store is at fault; the record is named
		}
		s.shared.Store.PutEntity(s.deadKey(e.ID, seq), nil)
		it := x.Item
		it.Seq, it.Attempt, it.DueMs = s.nextSeq(), 0, tx.AtMs
		s.enter(&it)
		s.saveItem(&it)
		s.queuedAgain(&it)
		s.shared.Due = true
	}
	s.dead[e.ID] = slices.Delete(list, at, at+n)
	tx.Reply = ReplayReply{n, len(s.dead[e.ID])}
	return nil
}

// DeadLetters lists those of an endpoint in the order in which they were given
// up, behind a number, limit at most.
func (s *State) DeadLetters(endpoint string, after uint64, limit int) ([]DeadLetter, error) {
	list := s.dead[endpoint]
	at, found := slices.BinarySearch(list, after)
	if found {
		at++
	}
	var out []DeadLetter
	for _, seq := range list[at:min(len(list), at+limit)] {
		x, err := s.deadLetter(endpoint, seq)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// DeadLetter finds a dead letter and its payload.
func (s *State) DeadLetter(endpoint string, seq uint64) (x DeadLetter, payload []byte, ok bool, err error) {
	if _, ok := slices.BinarySearch(s.dead[endpoint], seq); !ok {
		return x, nil, false, nil
	}
	if x, err = s.deadLetter(endpoint, seq); err != nil {
		return x, nil, false, err
	}
	payload, err = s.shared.Store.Entity(s.payloadKey(x.Origin))
	return x, payload, err == nil, err
}
