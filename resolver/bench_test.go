package resolver

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
)

// BenchmarkApply applies batches of 100 events of known profiles, with two
// identifiers, attributes and an idempotency key each. Report: one op is one
// event. Where it says changing, each event changes an attribute, and one in
// twenty is of a new profile.
func BenchmarkApply(b *testing.B) {
	for _, profiles := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("profiles=%d", profiles), func(b *testing.B) { benchmarkApply(b, profiles, nil, false) })
		b.Run(fmt.Sprintf("profiles=%d,segments=20", profiles), func(b *testing.B) { benchmarkApply(b, profiles, benchSegments, false) })
	}
	b.Run("profiles=100000,segments=20,changing", func(b *testing.B) { benchmarkApply(b, 100_000, benchSegments, true) })
}

// benchSegments are of mixed kinds; half of them look at the event that is
// applied.
var benchSegments = []string{
	`{"kind":"activity","event":"item_purchased"}`,
	`{"kind":"activity","event":"item_purchased","window":{"last_days":7}}`,
	`{"kind":"activity","event":"item_purchased","window":{"last_days":30},"count":{"op":">=","value":3}}`,
	`{"kind":"activity","event":"item_purchased","did":false,"window":{"last_days":90}}`,
	`{"kind":"activity","event":"item_purchased","aggregate":{"fn":"sum","property":"value","op":">=","value":1000}}`,
	`{"kind":"activity","event":"item_purchased","window":{"last_days":30},"aggregate":{"fn":"sum","property":"value","op":">=","value":100}}`,
	`{"kind":"activity","event":"item_purchased","window":{"last_days":30},"aggregate":{"fn":"max","property":"value","op":">","value":50}}`,
	`{"kind":"activity","event":"item_purchased","window":{"last_days":30},"aggregate":{"fn":"distinct","property":"product_id","op":">=","value":3}}`,
	`{"kind":"activity","event":"item_purchased","where":[{"property":"currency","op":"=","value":"USD"}]}`,
	`{"match":"all","conditions":[{"kind":"activity","event":"item_purchased","window":{"last_days":7}},{"kind":"attribute","field":"attributes.plan","op":"=","value":"pro"}]}`,
	`{"kind":"activity","event":"page_viewed"}`,
	`{"kind":"activity","event":"page_viewed","window":{"last_days":1},"count":{"op":">=","value":5}}`,
	`{"kind":"activity","event":"page_viewed","count":{"op":"=","value":0}}`,
	`{"kind":"activity","event":"cart_abandoned","window":{"last_days":1}}`,
	`{"kind":"activity","event":"signup","window":{"last_days":14}}`,
	`{"kind":"attribute","field":"attributes.age","op":">=","value":30}`,
	`{"kind":"attribute","field":"geo.country","op":"in","value":["DE","AT","CH"]}`,
	`{"kind":"attribute","field":"created_at","op":"in_last_days","value":30}`,
	`{"kind":"attribute","field":"email","op":"ends_with","value":"@example.com"}`,
	`{"match":"any","conditions":[{"kind":"activity","event":"support_ticket","count":{"op":"<=","value":2}},{"kind":"attribute","field":"attributes.plan","op":"exists"}]}`,
}

func benchmarkApply(b *testing.B, profiles int, segments []string, changing bool) {
	r := newRecorder(b, DefaultSettings())
	for _, d := range segments {
		if out := r.command(CommandSegmentCreate, SegmentSave{Name: "s", Definition: json.RawMessage(d)}); out.Refusal != nil {
			b.Fatal(out.Refusal)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	const batch = 100
	key := uint64(0)
	record := func(dst []byte, person func() int) []byte {
		env := r.envelope(eventlog.KindEvents)
		dst = eventlog.AppendEventCount(env.Append(dst), batch)
		for range batch {
			p := person()
			key++
			age := uint64(42)
			if changing {
				age = 18 + key%61
			}
			dst = eventlog.AppendEvent(dst, &eventlog.Event{
				Type:           []byte("item_purchased"),
				Email:          fmt.Appendf(nil, "person%d@example.com", p),
				ExternalID:     fmt.Appendf(nil, "ext-%d", p),
				Geo:            []byte(`{"country":"DE","city":"Berlin"}`),
				Attributes:     fmt.Appendf(nil, `{"plan":"pro","age":%d}`, age),
				Properties:     []byte(`{"value":19.99,"currency":"EUR","product_id":"sku-12345","quantity":2}`),
				IdempotencyKey: binary.LittleEndian.AppendUint64([]byte("key-"), key),
			})
		}
		return dst
	}
	next := 0
	for next < profiles {
		r.apply(record(nil, func() int { next++; return next - 1 }))
		r.rows.Reset()
	}
	someone := func() int {
		if changing && rng.IntN(20) == 0 {
			next++
			return next - 1
		}
		return rng.IntN(profiles)
	}
	const ring = 512
	recs := make([][]byte, ring)
	for i := range recs {
		recs[i] = record(nil, someone)
	}
	rows := new(query.Batch)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += batch {
		if (i/batch)%ring == 0 && i > 0 {
			// New ids and keys for the same bodies: replays must not be repeats.
			b.StopTimer()
			for j := range recs {
				recs[j] = record(recs[j][:0], someone)
			}
			rows.Reset()
			b.StartTimer()
		}
		if err := r.m.Apply(r.m.next, recs[(i/batch)%ring], rows, &r.out); err != nil {
			b.Fatal(err)
		}
	}
}
