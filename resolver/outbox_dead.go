package resolver

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/state"
)

// DeadLetter is a webhook that was given up.
type DeadLetter struct {
	OutboxItem
	DiedMs int64  `json:"died_ms"`
	Reason string `json:"reason"`
}

func deadKey(account uint64, endpoint string, seq uint64) string {
	return state.EntityKey(account, state.EntityDead, string(binary.BigEndian.AppendUint64([]byte(endpoint), seq)))
}

// die makes an item a dead letter, and returns its number. When there are too many
// the oldest goes.
func (m *Machine) die(a *account, it *OutboxItem, reason string) (seq uint64) {
	m.unqueue(a, it, true)
	x := DeadLetter{*it, m.logTime, reason}
	x.Attempt++
	// Dead letters are listed in the order in which they died.
	x.Seq = m.nextSeq(a)
	list := append(a.outbox.dead[it.Endpoint], x.Seq)
	m.store.PutEntity(deadKey(a.number, it.Endpoint, x.Seq), must.JSON(x))
	for len(list) > maxDeadLetters {
		old, err := m.deadLetter(a, it.Endpoint, list[0])
		if err != nil {
			panic(err) // the store is at fault; the record is named
		}
		m.dropDead(a, it.Endpoint, &old)
		list = list[1:]
	}
	a.outbox.dead[it.Endpoint] = list
	return x.Seq
}

// deadLetter reads one from the store.
func (m *Machine) deadLetter(a *account, endpoint string, seq uint64) (x DeadLetter, err error) {
	b, err := m.store.Entity(deadKey(a.number, endpoint, seq))
	if err == nil && b == nil {
		err = fmt.Errorf("dead letter %d of endpoint %s is missing", seq, endpoint)
	}
	if err != nil {
		return x, err
	}
	return x, json.Unmarshal(b, &x)
}

// dropDead removes what is stored of a dead letter.
func (m *Machine) dropDead(a *account, endpoint string, x *DeadLetter) {
	m.store.PutEntity(deadKey(a.number, endpoint, x.Seq), nil)
	if !m.buriedDelivery(a, endpoint, x.Origin) {
		m.store.PutEntity(payloadKey(a.number, x.Origin), nil)
	}
}

// loadDead reads the name of a dead letter; the rest stays in the store. Names
// come in order.
func (a *account) loadDead(name string) error {
	n := len(name) - 8
	if n <= 0 {
		return fmt.Errorf("dead letter with a name of %d bytes", len(name))
	}
	a.outbox.dead[name[:n]] = append(a.outbox.dead[name[:n]], binary.BigEndian.Uint64([]byte(name[n:])))
	return nil
}

// CommandWebhookReplay queues dead letters again.
const CommandWebhookReplay = "webhook.replay"

// maxReplay is how many dead letters one record queues again.
const maxReplay = 500

// WebhookReplay queues a dead letter again, or some of all when Seq and Origin are 0.
type WebhookReplay struct {
	ID  string `json:"id"`
	Seq uint64 `json:"seq,omitempty"`
	// Origin names a delivery of the log, a dead letter or not.
	Origin uint64 `json:"origin,omitempty"`
}

// WebhookReplayReply says how many were queued and how many are left. Asked
// again until nothing is left, all are.
type WebhookReplayReply struct {
	Replayed int `json:"replayed"`
	Left     int `json:"left"`
}

func (m *Machine) replayWebhook(cmd *command, c WebhookReplay) *Refusal {
	a := cmd.account
	e := a.endpoints[c.ID]
	if e == nil {
		return noEndpoint()
	}
	if e.Status != EndpointActive {
		return notActive()
	}
	if c.Origin != 0 {
		d, refusal := m.redeliver(a, e, c.Origin)
		if refusal != nil || d == nil {
			if refusal == nil {
				cmd.reply(WebhookReplayReply{1, len(a.outbox.dead[e.ID])})
			}
			return refusal
		}
		c.Seq = d.Dead
	}
	list := a.outbox.dead[e.ID]
	at, n := 0, min(len(list), maxReplay)
	if c.Seq != 0 {
		if at = slices.Index(list, c.Seq); at < 0 {
			return notFound("seq", "there is no dead letter with this number")
		}
		n = 1
	}
	n = min(n, maxOutbox-len(a.outbox.items), maxLane-a.outbox.queued(e.ID))
	if n <= 0 && len(list) > 0 {
		return atLimit("", "too many deliveries wait for this endpoint; try again later")
	}
	for _, seq := range list[at : at+n] {
		x, err := m.deadLetter(a, e.ID, seq)
		if err != nil {
			panic(err) // the store is at fault; the record is named
		}
		m.store.PutEntity(deadKey(a.number, e.ID, seq), nil)
		it := x.OutboxItem
		it.Seq, it.Attempt, it.DueMs = m.nextSeq(a), 0, m.logTime
		a.outbox.enter(&it)
		m.saveItem(a, &it)
		m.queuedAgain(a, &it)
		m.queued = true
	}
	a.outbox.dead[e.ID] = slices.Delete(list, at, at+n)
	cmd.reply(WebhookReplayReply{n, len(a.outbox.dead[e.ID])})
	return nil
}

// DeadLetters lists those of an endpoint in the order in which they were given
// up, behind a number, limit at most.
func (v *View) DeadLetters(endpoint string, after uint64, limit int) ([]DeadLetter, error) {
	list := v.a.outbox.dead[endpoint]
	at, found := slices.BinarySearch(list, after)
	if found {
		at++
	}
	var out []DeadLetter
	for _, seq := range list[at:min(len(list), at+limit)] {
		x, err := v.m.deadLetter(v.a, endpoint, seq)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// DeadLetter finds a dead letter and its payload.
func (v *View) DeadLetter(endpoint string, seq uint64) (x DeadLetter, payload []byte, ok bool, err error) {
	if _, ok := slices.BinarySearch(v.a.outbox.dead[endpoint], seq); !ok {
		return x, nil, false, nil
	}
	if x, err = v.m.deadLetter(v.a, endpoint, seq); err != nil {
		return x, nil, false, err
	}
	payload, err = v.m.store.Entity(payloadKey(v.a.number, x.Origin))
	return x, payload, err == nil, err
}
