package segment

import (
	"math/big"
	"strconv"

	"github.com/musterhq/muster/internal/int128"
	"github.com/musterhq/muster/internal/rawjson"
)

// Quotient is an exact number: Micros millionths, divided by Over, which is
// above 0.
type Quotient struct {
	Micros Int128
	Over   uint64
}

func wholeQuotient(n uint64) *Quotient {
	micros, _ := int128.FromUint64(n).MulUint64(MicrosPerUnit) // 64 + 20 bits
	return &Quotient{micros, 1}
}

// Rat converts to math/big.
func (q *Quotient) Rat() *big.Rat {
	over := new(big.Int).SetUint64(q.Over)
	return new(big.Rat).SetFrac(q.Micros.Big(), over.Mul(over, big.NewInt(MicrosPerUnit)))
}

// MarshalJSON writes the value without loss: a number where every reader that
// takes JSON numbers for float64 sees exactly it, otherwise a string of its
// decimals. Decimals that never end, as an average may have, are cut behind the
// sixth, never rounded, and followed by "…": thresholds have six decimals at
// most, so that what is shown lies on the same side of each as the value.
func (q *Quotient) MarshalJSON() ([]byte, error) {
	r := q.Rat()
	decimals, exact := r.FloatPrec()
	if !exact {
		whole := new(big.Int).Quo(q.Micros.Big(), new(big.Int).SetUint64(q.Over)) // towards 0
		text := new(big.Rat).SetFrac(whole, big.NewInt(MicrosPerUnit)).FloatString(6)
		if whole.Sign() == 0 && r.Sign() < 0 {
			text = "-" + text
		}
		return rawjson.AppendString(nil, text+"…"), nil
	}
	text := r.FloatString(decimals)
	if f, _ := r.Float64(); strconv.FormatFloat(f, 'f', -1, 64) == text {
		return []byte(text), nil
	}
	return rawjson.AppendString(nil, text), nil
}

// AttributeFacts is what an attribute condition looks at.
type AttributeFacts struct {
	// Value is JSON: null when missing; of e-mails, phones and external ids the
	// array of all that the profile has, as given.
	Value []byte
	// Bytes is the length of a value too long to be shown, and 0 for others.
	// Value is null then, and means nothing.
	Bytes int
}

// maxShownBytes bounds a value that an explanation shows.
const maxShownBytes = 4 << 10

func (a *Attribute) facts(f *Facts, atMs int64) *AttributeFacts {
	value := a.value(f, atMs)
	if len(value) > maxShownBytes {
		return &AttributeFacts{Value: []byte("null"), Bytes: len(value)}
	}
	return &AttributeFacts{Value: value}
}

// value is what the condition looks at, as JSON.
func (a *Attribute) value(facts *Facts, atMs int64) []byte {
	f := &facts.Fields
	switch a.Field {
	case FieldEmail:
		return textsJSON(f.Emails)
	case FieldPhone:
		return textsJSON(f.Phones)
	case FieldExternalID:
		return textsJSON(f.ExternalIDs)
	case FieldFirstName:
		return nameJSON(f.FirstName)
	case FieldLastName:
		return nameJSON(f.LastName)
	case FieldCreatedAt:
		return timeJSON(f.CreatedAtMs)
	case FieldFirstSeen:
		return timeJSON(f.FirstSeenMs)
	case FieldLastEvent:
		if !f.HasEvent {
			return []byte("null")
		}
		return timeJSON(f.LastEventMs)
	case FieldSubscribed:
		return strconv.AppendBool(nil, facts.Subscribed())
	case FieldScore:
		return strconv.AppendInt(nil, int64(f.Engagement.Score(atMs)), 10)
	case FieldPushDevices:
		kinds := make([][]byte, len(f.PushDevices))
		for i, kind := range f.PushDevices {
			kinds[i] = []byte(kind)
		}
		return textsJSON(kinds)
	}
	switch a.Predicate.Path[0] {
	case FieldStatus:
		return nameJSON([]byte(facts.Status(a.Predicate.Path[1], atMs)))
	case FieldSuppressed:
		return strconv.AppendBool(nil, facts.suppressed(a.Predicate.Path[1]))
	}
	root := f.Attributes
	if a.Predicate.Path[0] == FieldGeo {
		root = f.Geo
	}
	raw, ok := rawjson.Lookup(root, a.Predicate.Path[1:])
	if !ok {
		return []byte("null")
	}
	return raw
}

func timeJSON(ms int64) []byte { return append(AppendTime([]byte{'"'}, ms), '"') }

func textsJSON(values [][]byte) []byte {
	if len(values) == 0 {
		return []byte("null")
	}
	out := []byte{'['}
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = rawjson.AppendString(out, string(v))
	}
	return append(out, ']')
}

func nameJSON(name []byte) []byte {
	if len(name) == 0 {
		return []byte("null")
	}
	return rawjson.AppendString(nil, string(name))
}
