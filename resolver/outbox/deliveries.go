package outbox

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The log of deliveries says what became of the newest webhooks of each endpoint. A
// line of each is in memory, the rest and the payload are in the store. A payload
// belongs to the item while it is queued, to the dead letter afterwards, and to the
// log when there is neither.

// The bounds of the log of one endpoint.
const (
	maxDeliveries     = 1000
	maxDeliveredKept  = maxDeliveries / 2 // of them, when others want the place
	maxDeliveryBytes  = 8 << 20           // payloads together
	maxAttemptsLogged = 20                // of one delivery, the newest
	maxAnswerLogged   = 1 << 10
)

// The statuses of a delivery in the log.
const (
	DeliveryDelivered = "delivered"
	DeliveryWaiting   = "waiting" // for its next attempt
	DeliveryFailed    = "failed"  // given up
)

// Delivery is a webhook that was attempted at least once, under the Seq and the
// Attempt it had last.
type Delivery struct {
	Item
	// Line orders the log: it is given at the first attempt.
	Line   uint64 `json:"line"`
	Status string `json:"status"`
	// Dead is the number of the dead letter, 0 for none.
	Dead uint64 `json:"dead,omitempty"`
	// Made is how many attempts were made, those of replays too.
	Made     int               `json:"made"`
	Bytes    int               `json:"bytes"`    // of the payload
	Attempts []DeliveryAttempt `json:"attempts"` // the newest, in order
}

// DeliveryAttempt is one attempt.
type DeliveryAttempt struct {
	Number int    `json:"number"` // from 1
	AtMs   int64  `json:"at_ms"`  // when its outcome was recorded
	Error  string `json:"error,omitempty"`
	DeliveryAnswer
}

// DeliveryAnswer is the receiver's answer.
type DeliveryAnswer struct {
	Status int    `json:"status,omitempty"` // of HTTP, 0 without an answer
	TookMs int64  `json:"took_ms"`
	Answer string `json:"answer,omitempty"` // how the body begins
}

// deliveryLog is the lines of one endpoint.
type deliveryLog struct {
	lines     []*deliveryLine // in order
	byOrigin  map[uint64]*deliveryLine
	bytes     int // of payloads
	delivered int // lines with that status
}

// deliveryLine is the part of a delivery that is in memory.
type deliveryLine struct {
	line, origin uint64
	ordinal      uint32
	bytes        int
	status       string
	dead         bool
}

func newDeliveryLog() *deliveryLog { return &deliveryLog{byOrigin: map[uint64]*deliveryLine{}} }

func (s *State) log(endpoint string) *deliveryLog {
	g := s.logs[endpoint]
	if g == nil {
		g = newDeliveryLog()
		s.logs[endpoint] = g
	}
	return g
}

// line finds a delivery, nil if it is not in the log.
func (s *State) line(endpoint string, origin uint64) *deliveryLine {
	if g := s.logs[endpoint]; g != nil {
		return g.byOrigin[origin]
	}
	return nil
}

// put makes a line say what a delivery says; one that is new stands at the end.
func (g *deliveryLog) put(d *Delivery) {
	x := g.byOrigin[d.Origin]
	if x == nil {
		x = &deliveryLine{line: d.Line, origin: d.Origin, ordinal: d.Ordinal, bytes: d.Bytes}
		g.byOrigin[d.Origin] = x
		g.lines = append(g.lines, x)
		g.bytes += d.Bytes
	}
	g.count(x, -1)
	x.status, x.dead = d.Status, d.Dead != 0
	g.count(x, +1)
}

func (g *deliveryLog) count(x *deliveryLine, n int) {
	if x.status == DeliveryDelivered {
		g.delivered += n
	}
}

// remove takes a line out.
func (g *deliveryLog) remove(x *deliveryLine) {
	if i := slices.Index(g.lines, x); i >= 0 {
		g.lines = slices.Delete(g.lines, i, i+1)
	}
	delete(g.byOrigin, x.origin)
	g.bytes -= x.bytes
	g.count(x, -1)
}

// surplus is the line that has to go, nil for none. Failures stay longer than what
// was delivered, up to half of the log.
func (g *deliveryLog) surplus() *deliveryLine {
	if len(g.lines) <= maxDeliveries && g.bytes <= maxDeliveryBytes {
		return nil
	}
	delivered := g.delivered > maxDeliveredKept
	for _, x := range g.lines {
		if !delivered && g.bytes > maxDeliveryBytes || (x.status == DeliveryDelivered) == delivered {
			return x
		}
	}
	return g.lines[0]
}

func (s *State) deliveryKey(endpoint string, origin uint64) string {
	return state.EntityKey(s.account, state.EntityDelivery, string(binary.BigEndian.AppendUint64([]byte(endpoint), origin)))
}

// logDelivery notes an attempt of an item. It returns whether the log keeps the
// delivery. Reports without the attempt are not noted: those of logs of before there
// was the log of deliveries.
func (s *State) logDelivery(tx *feature.Tx, it *Item, c *Done, status string, dead uint64) (kept bool) {
	x := s.line(it.Endpoint, it.Origin)
	if c.Log == nil && x == nil {
		return false
	}
	var d Delivery
	if x != nil {
		d = s.mustDelivery(it.Endpoint, it.Origin)
	} else {
		payload, err := s.shared.Store.Entity(s.payloadKey(it.Origin))
		if err != nil {
			panic(err) // the store is at fault; the record is named
		}
		d.Line, d.Bytes = s.nextSeq(), len(payload)
	}
	d.Item, d.Status, d.Dead = *it, status, dead
	d.Made++
	try := DeliveryAttempt{Number: d.Made, AtMs: tx.AtMs, Error: c.Reason}
	if c.Log != nil {
		try.DeliveryAnswer = *c.Log
		try.Answer = try.Answer[:min(len(try.Answer), maxAnswerLogged)]
	}
	d.Attempts = append(d.Attempts, try)
	d.Attempts = d.Attempts[max(0, len(d.Attempts)-maxAttemptsLogged):]
	s.saveDelivery(&d)
	g := s.log(it.Endpoint)
	for x := g.surplus(); x != nil; x = g.surplus() {
		s.forgetDelivery(it.Endpoint, x, x.status != DeliveryWaiting && !x.dead && x.origin != it.Origin)
	}
	return s.line(it.Endpoint, it.Origin) != nil
}

func (s *State) saveDelivery(d *Delivery) {
	s.log(d.Endpoint).put(d)
	s.shared.Store.PutPayload(s.deliveryKey(d.Endpoint, d.Origin), must.JSON(d))
}

// forgetDelivery removes a line, and the payload if no other line has it.
func (s *State) forgetDelivery(endpoint string, x *deliveryLine, payload bool) {
	s.log(endpoint).remove(x)
	s.shared.Store.PutEntity(s.deliveryKey(endpoint, x.origin), nil)
	if payload {
		s.shared.Store.PutEntity(s.payloadKey(x.origin), nil)
	}
}

// delivery reads one of the log from the store.
func (s *State) delivery(endpoint string, origin uint64) (d Delivery, err error) {
	b, err := s.shared.Store.Entity(s.deliveryKey(endpoint, origin))
	if err == nil && b == nil {
		err = fmt.Errorf("delivery %d of endpoint %s is missing", origin, endpoint)
	}
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(b, &d)
}

func (s *State) mustDelivery(endpoint string, origin uint64) Delivery {
	d, err := s.delivery(endpoint, origin)
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	return d
}

// buriedDelivery notes that the dead letter of a delivery is gone. It returns whether
// the log keeps the payload.
func (s *State) buriedDelivery(endpoint string, origin uint64) bool {
	if s.line(endpoint, origin) == nil {
		return false
	}
	d := s.mustDelivery(endpoint, origin)
	d.Dead = 0
	s.saveDelivery(&d)
	return true
}

// queuedAgain notes that an item was queued again.
func (s *State) queuedAgain(it *Item) {
	if s.line(it.Endpoint, it.Origin) == nil {
		return
	}
	d := s.mustDelivery(it.Endpoint, it.Origin)
	d.Item, d.Status, d.Dead = *it, DeliveryWaiting, 0
	s.saveDelivery(&d)
}

// redeliver makes a delivery of the log due now. It returns one that is a dead letter,
// which is to be replayed as such, and nil for all others.
func (s *State) redeliver(tx *feature.Tx, e *Endpoint, origin uint64) (*Delivery, *refuse.Refusal) {
	x := s.line(e.ID, origin)
	if x == nil {
		return nil, refuse.NotFound("delivery", "the log of this webhook has no delivery with this id; it keeps the newest %d", maxDeliveries)
	}
	d := s.mustDelivery(e.ID, origin)
	if d.Dead != 0 {
		return &d, nil
	}
	if x.status == DeliveryWaiting {
		if it := s.items[d.Seq]; it != nil {
			s.postpone(it, min(it.DueMs, tx.AtMs))
			s.saveItem(it)
			s.queuedAgain(it)
			s.shared.Due = true
		}
		return nil, nil
	}
	if len(s.items) >= MaxItems || s.queued(e.ID) >= maxLane {
		return nil, refuse.AtLimit("", "too many deliveries wait for this endpoint; try again later")
	}
	it := d.Item
	it.Seq, it.Attempt, it.DueMs = s.nextSeq(), 0, tx.AtMs
	s.enter(&it)
	s.saveItem(&it)
	s.queuedAgain(&it)
	s.shared.Due = true
	return nil, nil
}

// eraseDeliveries removes what the logs hold of profiles that are erased. The items
// and dead letters of the same profiles go with them.
func (s *State) eraseDeliveries(ordinals []uint32) {
	for _, endpoint := range slices.Sorted(maps.Keys(s.logs)) {
		for _, x := range slices.Clone(s.logs[endpoint].lines) {
			if slices.Contains(ordinals, x.ordinal) {
				s.forgetDelivery(endpoint, x, true)
			}
		}
	}
}

// dropDeliveries removes up to left lines of a deleted endpoint, of which nothing else
// is left. It returns whether that was all.
func (s *State) dropDeliveries(endpoint string, left int) (done bool) {
	g := s.logs[endpoint]
	if g == nil {
		return true
	}
	for ; len(g.lines) > 0 && left > 0; left-- {
		s.forgetDelivery(endpoint, g.lines[len(g.lines)-1], true)
	}
	if len(g.lines) > 0 {
		return false
	}
	delete(s.logs, endpoint)
	return true
}

// loadDelivery reads a line; the rest stays in the store.
func (s *State) loadDelivery(name string, value []byte) error {
	var d Delivery
	if err := json.Unmarshal(value, &d); err != nil {
		return err
	}
	if len(name) <= 8 || d.Endpoint != name[:len(name)-8] {
		return fmt.Errorf("delivery with a name of %d bytes", len(name))
	}
	d.Endpoint = strings.Clone(d.Endpoint)
	s.log(d.Endpoint).put(&d)
	return nil
}

// openLogs puts in order what was loaded.
func (s *State) openLogs() {
	for _, g := range s.logs {
		slices.SortFunc(g.lines, func(x, y *deliveryLine) int { return cmp.Compare(x.line, y.line) })
	}
}

// hashDeliveries is the part of the logs in the state's hash.
func (s *State) hashDeliveries(put func([]byte)) error {
	for _, endpoint := range slices.Sorted(maps.Keys(s.logs)) {
		for _, x := range s.logs[endpoint].lines {
			d, err := s.delivery(endpoint, x.origin)
			if err != nil {
				return err
			}
			payload, err := s.Payload(x.origin)
			if err != nil {
				return err
			}
			put(must.JSON(d))
			put(payload)
		}
	}
	return nil
}

// Deliveries lists the log of an endpoint, the newest first: those of a status, "" for
// any, before a line, 0 for the end, limit at most.
func (s *State) Deliveries(endpoint, status string, before uint64, limit int) ([]Delivery, error) {
	g := s.logs[endpoint]
	if g == nil {
		return nil, nil
	}
	var out []Delivery
	for _, x := range slices.Backward(g.lines) {
		if len(out) >= limit {
			break
		}
		if status != "" && x.status != status || before != 0 && x.line >= before {
			continue
		}
		d, err := s.delivery(endpoint, x.origin)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// Delivery finds one of the log, and its payload.
func (s *State) Delivery(endpoint string, origin uint64) (d Delivery, payload []byte, ok bool, err error) {
	if s.line(endpoint, origin) == nil {
		return d, nil, false, nil
	}
	if d, err = s.delivery(endpoint, origin); err != nil {
		return d, nil, false, err
	}
	payload, err = s.shared.Store.Entity(s.payloadKey(origin))
	return d, payload, err == nil, err
}
