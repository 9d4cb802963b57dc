package segments

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strconv"

	"github.com/musterhq/muster/eventlog"
)

const (
	// batch is how many events a request carries where a batch is measured.
	batch = 100
	// historyDays is how far back the past of the account goes.
	historyDays = 90
	dayMs       = 86_400_000
)

var (
	// eventTypes are drawn evenly, so repetition is weight.
	eventTypes = []string{"page_viewed", "page_viewed", "page_viewed", "page_viewed", "item_viewed", "item_viewed",
		"item_viewed", "cart_added", "cart_added", "purchased", "purchased", "searched"}
	plans      = []string{"free", "free", "basic", "pro"}
	countries  = []string{"DE", "FR", "GB", "ES", "NL", "SE", "US", "JP"}
	currencies = []string{"EUR", "EUR", "GBP", "USD"}
)

// maker makes events of the synthetic account. It is used by one goroutine.
type maker struct {
	rng *rand.Rand
	// stream and sequence make idempotency keys and record ids that no other
	// maker makes.
	stream, sequence uint64

	ev  eventlog.Event
	buf []byte
}

// newMaker returns a maker with a stream of its own: equal seeds and streams
// make equal events.
func newMaker(seed, stream uint64) *maker {
	return &maker{rng: rand.New(rand.NewPCG(seed, stream)), stream: stream}
}

// mix spreads the bits of a profile's number: what a profile is depends on its
// number alone.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// envelope is that of the maker's next record; its stamp is set when the record
// is submitted.
func (m *maker) envelope(kind eventlog.Kind) eventlog.Envelope {
	m.sequence++
	e := eventlog.Envelope{Kind: kind, Account: accountNumber}
	binary.LittleEndian.PutUint64(e.ID[:8], mix(m.stream+1))
	binary.LittleEndian.PutUint64(e.ID[8:], mix(m.sequence<<20^m.stream))
	return e
}

// part notes the bytes appended to buf since from.
func (m *maker) part(from int) []byte { return m.buf[from:len(m.buf):len(m.buf)] }

// user sets the identifiers of a profile.
func (m *maker) user(profile int) {
	m.ev = eventlog.Event{}
	m.buf = m.buf[:0]
	m.buf = append(strconv.AppendInt(append(m.buf, 'u'), int64(profile), 10), "@bench.example"...)
	m.ev.Email = m.part(0)
	at := len(m.buf)
	m.buf = strconv.AppendInt(append(m.buf, "c-"...), int64(profile), 10)
	m.ev.ExternalID = m.part(at)
}

// known sets attributes and place of a profile: nearly always the same.
func (m *maker) known(profile int) {
	h := mix(uint64(profile))
	plan := plans[h%4]
	if m.rng.IntN(50) == 0 {
		plan = plans[m.rng.IntN(4)]
	}
	at := len(m.buf)
	m.buf = append(m.buf, `{"age":`...)
	m.buf = strconv.AppendUint(m.buf, 18+h>>8%60, 10)
	m.buf = append(append(append(m.buf, `,"plan":"`...), plan...), `"}`...)
	m.ev.Attributes = m.part(at)
	at = len(m.buf)
	m.buf = append(append(append(m.buf, `{"country":"`...), countries[h>>16%8]...), `"}`...)
	m.ev.Geo = m.part(at)
}

// properties sets value (cents), currency, quantity and product.
func (m *maker) properties() {
	at := len(m.buf)
	m.buf = append(m.buf, `{"value":`...)
	cents := m.rng.IntN(10_000)
	m.buf = strconv.AppendInt(m.buf, int64(cents/100), 10)
	m.buf = append(m.buf, '.', byte('0'+cents/10%10), byte('0'+cents%10))
	m.buf = append(append(append(m.buf, `,"currency":"`...), currencies[m.rng.IntN(4)]...), `","quantity":`...)
	m.buf = strconv.AppendInt(m.buf, int64(1+m.rng.IntN(5)), 10)
	m.buf = append(m.buf, `,"product":"sku-`...)
	m.buf = strconv.AppendInt(m.buf, int64(m.rng.IntN(2000)), 10)
	m.buf = append(m.buf, `"}`...)
	m.ev.Properties = m.part(at)
}

func (m *maker) idempotencyKey() {
	m.sequence++
	at := len(m.buf)
	m.buf = append(m.buf, 'k')
	m.buf = strconv.AppendUint(m.buf, m.stream, 36)
	m.buf = append(m.buf, '-')
	m.buf = strconv.AppendUint(m.buf, m.sequence, 36)
	m.ev.IdempotencyKey = m.part(at)
}

// past appends a past event of a profile at a random time of its history.
func (m *maker) past(dst []byte, profile int, nowMs int64) []byte {
	m.user(profile)
	m.known(profile)
	m.properties()
	m.ev.Type = []byte(eventTypes[m.rng.IntN(len(eventTypes))])
	m.ev.TimeMs, m.ev.HasTime = nowMs-m.rng.Int64N(historyDays*dayMs), true
	return eventlog.AppendEvent(dst, &m.ev)
}

// present appends an event that happens now, of the named type or, when empty,
// of a random one of the usual types.
func (m *maker) present(dst []byte, profile int, eventType string) []byte {
	m.user(profile)
	m.known(profile)
	m.properties()
	m.idempotencyKey()
	if eventType == "" {
		eventType = eventTypes[m.rng.IntN(len(eventTypes))]
	}
	m.ev.Type = []byte(eventType)
	return eventlog.AppendEvent(dst, &m.ev)
}

// record makes a record of n present events on profiles that pick chooses.
func (m *maker) record(dst []byte, n int, pick func() int, eventType string) []byte {
	env := m.envelope(eventlog.KindEvents)
	dst = eventlog.AppendEventCount(env.Append(dst), n)
	for range n {
		dst = m.present(dst, pick(), eventType)
	}
	return dst
}

// records makes records of batch events each, events in all.
func (m *maker) records(events int, pick func() int, eventType string) [][]byte {
	var out [][]byte
	for left := events; left > 0; left -= batch {
		out = append(out, m.record(nil, min(batch, left), pick, eventType))
	}
	return out
}

// importFile names a made-up file that past events come from.
func importFile(seed uint64, step, worker int) [32]byte {
	return sha256.Sum256(strconv.AppendInt(strconv.AppendInt(strconv.AppendUint([]byte("bench segments "), seed, 10), int64(step)<<20, 10), int64(worker), 10))
}
