package payload

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Widths of the patched digits.
const (
	profileDigits  = 10
	valueDigits    = 5
	workerDigits   = 4
	sequenceDigits = 12

	zeros = "000000000000"
)

// slots are the places of one event's patched digits in a frame.
type slots struct {
	email, external, value, sequence int
	// traits is where those of the profile are, 0 where they are the same in every request.
	traits int
	// eventType is the same in every request.
	eventType string
}

var (
	eventTypes = []string{"page_viewed", "page_viewed", "page_viewed", "item_viewed", "item_viewed",
		"cart_added", "purchased", "searched"}
	firstNames = []string{"Ada", "Noor", "Mateo", "Inge", "Kofi", "Mei", "Zoë", "Tariq"}
	plans      = []string{"free", "basic", "plus", "pro"}
	places     = []struct{ country, city string }{
		{"DE", "Berlin"}, {"FR", "Lyon"}, {"GB", "Leeds"}, {"ES", "Cadiz"},
		{"NL", "Delft"}, {"SE", "Malmö"}, {"US", "Austin"}, {"JP", "Kyoto"},
	}
	currencies = []string{"EUR", "EUR", "GBP", "USD"}
)

// mark appends text and zeros for so many digits, and returns where those are.
func mark(dst *[]byte, text string, digits int) int {
	*dst = append(*dst, text...)
	at := len(*dst)
	*dst = append(*dst, zeros[:digits]...)
	return at
}

// fill inserts letters at a place of dst until the event that starts there has exactly size
// bytes, and moves the slots that are behind it.
func (s *slots) fill(dst []byte, rng *rand.Rand, start, at, size int) ([]byte, error) {
	n := size - (len(dst) - start)
	if n < 0 {
		return dst, fmt.Errorf("an event takes %d bytes more than the %d asked for", -n, size)
	}
	letters := make([]byte, n)
	for i := range letters {
		letters[i] = "abcdefghijklmnopqrstuvwxyz"[rng.IntN(26)]
	}
	for _, slot := range []*int{&s.email, &s.external, &s.value, &s.sequence} {
		if *slot >= at {
			*slot += n
		}
	}
	return slices.Insert(dst, at, letters...), nil
}

// appendEvent appends one event of exactly size bytes with zeros in its slots
// and reports where they are in dst. repeat leaves room for traits of the profile.
func appendEvent(dst []byte, rng *rand.Rand, worker, size int, repeat bool) ([]byte, slots, error) {
	var at slots
	start := len(dst)
	place := places[rng.IntN(len(places))]
	at.eventType = eventTypes[rng.IntN(len(eventTypes))]
	dst = append(dst, `{"event_type":"`...)
	dst = append(dst, at.eventType...)
	at.email = mark(&dst, `","user":{"email":"u`, profileDigits)
	at.external = mark(&dst, `@b.example","external_id":"c-`, profileDigits)
	if repeat {
		at.traits = len(dst)
		dst = append(dst, repeatedTraits.same[0]...)
	} else {
		if rng.IntN(2) == 0 {
			dst = append(dst, `","first_name":"`...)
			dst = append(dst, firstNames[rng.IntN(len(firstNames))]...)
		}
		dst = append(dst, `","attributes":{"plan":"`...)
		dst = append(dst, plans[rng.IntN(len(plans))]...)
		dst = append(dst, `"},"geo":{"country":"`...)
		dst = append(dst, place.country...)
		dst = append(dst, `","city":"`...)
		dst = append(dst, place.city...)
		dst = append(dst, `"}`...)
	}
	// The leading 1 keeps the number free of leading zeros, which JSON forbids.
	at.value = mark(&dst, `},"properties":{"value":1`, valueDigits)
	dst = append(dst, fmt.Sprintf(`.%02d,"currency":"%s","quantity":%d,"product_id":"sku-%05d-`,
		rng.IntN(99)+1, currencies[rng.IntN(len(currencies))], rng.IntN(9)+1, rng.IntN(20_000))...)
	padAt := len(dst)
	at.sequence = mark(&dst, fmt.Sprintf(`"},"idempotency_key":"b%0*d-`, workerDigits, worker), sequenceDigits)
	dst, err := at.fill(append(dst, `"}`...), rng, start, padAt, size)
	return dst, at, err
}

// callNames are the event types as an application gives them to an SDK.
var callNames = map[string]string{"page_viewed": "Page Viewed", "item_viewed": "Item Viewed", "cart_added": "Cart Added", "purchased": "Purchased", "searched": "Searched"}

// appendTracked appends what appendEvent says in the words of @segment/analytics-node
// 3.1.0, in exactly size bytes. The SDK's time is the batch's, so that an event happens
// when it arrives.
func appendTracked(dst []byte, rng *rand.Rand, worker, size int, _ bool) ([]byte, slots, error) {
	var at slots
	start := len(dst)
	place := places[rng.IntN(len(places))]
	at.eventType = eventTypes[rng.IntN(len(eventTypes))]
	at.external = mark(&dst, `{"timestamp":"`+trackedTime+`","integrations":{},"userId":"c-`, profileDigits)
	dst = fmt.Appendf(dst, `","event":"%s","type":"track`, callNames[at.eventType])
	at.value = mark(&dst, `","properties":{"value":1`, valueDigits)
	dst = fmt.Appendf(dst, `.%02d,"currency":"%s","quantity":%d,"product_id":"sku-%05d-`,
		rng.IntN(99)+1, currencies[rng.IntN(len(currencies))], rng.IntN(9)+1, rng.IntN(20_000))
	padAt := len(dst)
	at.email = mark(&dst, `"},"context":{"traits":{"email":"u`, profileDigits)
	dst = append(dst, "@b.example"...)
	if rng.IntN(2) == 0 {
		dst = fmt.Appendf(dst, `","firstName":"%s`, firstNames[rng.IntN(len(firstNames))])
	}
	dst = fmt.Appendf(dst, `","plan":"%s","address":{"country":"%s","city":"%s"}},"library":{"name":"@segment/analytics-node","version":"3.1.0"}}`,
		plans[rng.IntN(len(plans))], place.country, place.city)
	at.sequence = mark(&dst, fmt.Sprintf(`,"messageId":"b%0*d-`, workerDigits, worker), sequenceDigits)
	dst, err := at.fill(append(dst, `","_metadata":{"nodeVersion":"v22.11.0","jsRuntime":"node"}}`...), rng, start, padAt, size)
	return dst, at, err
}

// trackedTime is when events happened and batches were sent by the SDK's clock, which
// says the same for both.
const trackedTime = "2026-01-01T00:00:00.000Z"

// pairs holds the numbers 00 to 99.
const pairs = "00010203040506070809101112131415161718192021222324252627282930313233343536373839" +
	"40414243444546474849505152535455565758596061626364656667686970717273747576777879" +
	"8081828384858687888990919293949596979899"

// putDigits overwrites b with the decimal digits of v, zero-padded. It writes
// two digits a step and stops dividing when v is used up, as this is most of
// what the loader does.
func putDigits(b []byte, v uint64) {
	i := len(b)
	for ; i >= 2 && v >= 10; i -= 2 {
		q := v / 100
		d := (v - q*100) * 2
		b[i-2], b[i-1] = pairs[d], pairs[d+1]
		v = q
	}
	if i > 0 {
		b[i-1] = byte('0' + v%10)
		copy(b[:i-1], zeros)
	}
}
