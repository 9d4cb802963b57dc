package eventlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func genBytes(t *rapid.T, name string, least int) []byte {
	b := rapid.SliceOfN(rapid.Byte(), least, 300).Draw(t, name)
	if len(b) == 0 {
		return nil // an empty field is an absent one
	}
	return b
}

func genEvent(t *rapid.T) Event {
	e := Event{
		Type: genBytes(t, "type", 1), Email: genBytes(t, "email", 0), ExternalID: genBytes(t, "external_id", 0),
		Phone: genBytes(t, "phone", 0), FirstName: genBytes(t, "first_name", 0), LastName: genBytes(t, "last_name", 0),
		Geo: genBytes(t, "geo", 0), Attributes: genBytes(t, "attributes", 0), Properties: genBytes(t, "properties", 0),
		IdempotencyKey: genBytes(t, "idempotency_key", 0),
	}
	if rapid.Bool().Draw(t, "has_time") {
		e.HasTime, e.TimeMs = true, rapid.Int64().Draw(t, "time_ms")
	}
	e.Redacted = rapid.Bool().Draw(t, "redacted")
	if e.Refused = rapid.Bool().Draw(t, "refused"); e.Refused {
		e.RefusedKind = rapid.Uint8().Draw(t, "refused_kind")
	}
	e.AnonymousID, e.PreviousID = genBytes(t, "anonymous_id", 0), genBytes(t, "previous_id", 0)
	e.Public, e.MessageID = rapid.Bool().Draw(t, "public"), rapid.Bool().Draw(t, "message_id")
	return e
}

func appendEvents(dst []byte, events []Event) []byte {
	at := len(dst)
	dst = AppendEventCount(dst, 0)
	for i := range events {
		dst = AppendEvent(dst, &events[i])
	}
	PutEventCount(dst[at:], len(events))
	return dst
}

func readEvents(body []byte) ([]Event, error) {
	r, err := NewEventsReader(body)
	if err != nil {
		return nil, err
	}
	var out []Event
	var e Event
	for r.Next(&e) {
		out = append(out, e)
	}
	return out, r.Err()
}

// sameEvents compares by content: an absent field may be nil or empty.
func sameEvents(a, b []Event) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i], b[i]
		fx, fy := x.fields(), y.fields()
		for k := range fx {
			if !bytes.Equal(*fx[k], *fy[k]) {
				return false
			}
		}
		if !bytes.Equal(x.Type, y.Type) || x.HasTime != y.HasTime || x.TimeMs != y.TimeMs ||
			!bytes.Equal(x.AnonymousID, y.AnonymousID) || !bytes.Equal(x.PreviousID, y.PreviousID) || x.Public != y.Public || x.MessageID != y.MessageID ||
			x.Redacted != y.Redacted || x.Refused != y.Refused || x.RefusedKind != y.RefusedKind {
			return false
		}
	}
	return true
}

func TestEnvelopeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Envelope{
			Kind:    Kind(rapid.Byte().Draw(t, "kind")),
			Account: rapid.Uint64().Draw(t, "account"),
			ID:      RecordID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")),
			StampMs: rapid.Int64().Draw(t, "stamp_ms"),
		}
		body := genBytes(t, "body", 0)
		b := append(want.Append([]byte("head")), body...)
		if len(b) != 4+EnvelopeSize+len(body) {
			t.Fatalf("%d bytes", len(b))
		}
		got, rest, err := DecodeEnvelope(b[4:])
		if err != nil || !reflect.DeepEqual(got, want) || !bytes.Equal(rest, body) {
			t.Fatalf("got %+v %x %v", got, rest, err)
		}
	})
}

func TestEnvelopeRefused(t *testing.T) {
	whole := (&Envelope{Kind: KindEvents}).Append(nil)
	for n := range len(whole) {
		if _, _, err := DecodeEnvelope(whole[:n]); !errors.Is(err, ErrFormat) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	whole[0] = FormatVersion + 1
	if _, _, err := DecodeEnvelope(whole); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "version 2") {
		t.Fatal(err)
	}
}

func TestEventsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(genEvent), 0, 12).Draw(t, "events")
		body := appendEvents([]byte("xx"), want)[2:]
		got, err := readEvents(body)
		if err != nil || !sameEvents(got, want) {
			t.Fatalf("got %+v, %v", got, err)
		}
		// A body that is cut anywhere, or continues, is refused.
		n := rapid.IntRange(0, len(body)-1).Draw(t, "cut")
		if got, err := readEvents(body[:n]); !errors.Is(err, ErrFormat) {
			t.Fatalf("%d of %d bytes gave %d events, %v", n, len(body), len(got), err)
		}
		if _, err := readEvents(append(bytes.Clone(body), 0)); !errors.Is(err, ErrFormat) {
			t.Fatalf("a byte too many: %v", err)
		}
	})
}

func TestEventsRefused(t *testing.T) {
	le := binary.LittleEndian
	for name, body := range map[string][]byte{
		"no count":               {1, 2, 3},
		"count beyond the body":  le.AppendUint32(nil, math.MaxUint32),
		"unknown mask bit":       append(le.AppendUint32(nil, 1), 0, 0x80, 1, 't'),
		"flags cut short":        append(le.AppendUint32(nil, 1), 0, 0x40, 1, 't'),
		"unknown flag":           append(le.AppendUint32(nil, 1), 0, 0x40, 1, 't', 8),
		"anonymous id cut short": append(le.AppendUint32(nil, 1), 0, 0x10, 1, 't', 2, 'a'),
		"refused, cut short":     append(le.AppendUint32(nil, 1), 0, 0x08, 1, 't'),
		"field beyond the body":  append(le.AppendUint32(nil, 1), 0, 0, 9),
		"length overflows":       append(le.AppendUint32(nil, 1), 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255),
		"time cut short":         append(le.AppendUint32(nil, 1), 0, 0x02, 0, 1, 2, 3),
	} {
		events, err := readEvents(body)
		if !errors.Is(err, ErrFormat) || len(events) != 0 {
			t.Errorf("%s: %d events, %v", name, len(events), err)
		}
	}
	// A count that cannot be is refused before anybody sizes a slice by it.
	if _, err := NewEventsReader(append(le.AppendUint32(nil, 3), make([]byte, 8)...)); !errors.Is(err, ErrFormat) {
		t.Fatal(err)
	}
	// Bodies of older rules say so, and one of newer rules is not read.
	for rules, known := range []bool{true, true, true, true, true, true, true, true, true, true, false} {
		r, err := NewEventsReader(append(le.AppendUint32(nil, 1|uint32(rules)<<24), 0, 0, 1, 't'))
		if (err == nil) != known || errors.Is(err, ErrNewerRules) == known || known && (int(r.Rules()) != rules || r.Len() != 1) {
			t.Fatalf("rules %d: read as %d with %d events, %v", rules, r.Rules(), r.Len(), err)
		}
	}
	// A reader that failed stays failed.
	r, err := NewEventsReader(append(le.AppendUint32(nil, 1), 0, 0, 9))
	if err != nil || r.Len() != 1 {
		t.Fatal(r.Len(), err)
	}
	var e Event
	for range 3 {
		if r.Next(&e) || r.Err() == nil {
			t.Fatal("continued after a fault")
		}
	}
}

// TestEventFieldsCannotGrow: appending to a decoded field does not write into
// the next one.
func TestEventFieldsCannotGrow(t *testing.T) {
	body := appendEvents(nil, []Event{{Type: []byte("a"), Email: []byte("b")}})
	before := bytes.Clone(body)
	events, err := readEvents(body)
	if err != nil {
		t.Fatal(err)
	}
	_ = append(events[0].Type, 'X')
	if !bytes.Equal(body, before) {
		t.Fatal("the body changed")
	}
}

func TestImportHeadRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := ImportHead{
			File:         [32]byte(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "file")),
			FirstRow:     rapid.Uint64Range(0, math.MaxInt64).Draw(t, "first_row"),
			Rows:         rapid.Uint32().Draw(t, "rows"),
			TriggerFlows: rapid.Bool().Draw(t, "trigger_flows"),
			ListsRefused: rapid.Bool().Draw(t, "lists_refused"),
		}
		for next := uint32(0); want.ListsRefused && next < want.Rows && rapid.Bool().Draw(t, "refused"); {
			next = rapid.Uint32Range(next, want.Rows-1).Draw(t, "place")
			want.Refused = append(want.Refused, next)
			next++
		}
		body := genBytes(t, "events", 0)
		b := append(want.Append(nil), body...)
		got, rest, err := DecodeImportHead(b)
		if err != nil || !reflect.DeepEqual(got, want) || !bytes.Equal(rest, body) {
			t.Fatalf("got %+v %x %v", got, rest, err)
		}
		n := rapid.IntRange(0, importHeadSize-1).Draw(t, "cut")
		if _, _, err := DecodeImportHead(b[:n]); !errors.Is(err, ErrFormat) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	})
	bad := (&ImportHead{}).Append(nil)
	bad[importHeadSize-1] = 4
	if _, _, err := DecodeImportHead(bad); !errors.Is(err, ErrFormat) {
		t.Fatal(err)
	}
	if _, _, err := DecodeImportHead((&ImportHead{FirstRow: math.MaxUint64}).Append(nil)); !errors.Is(err, ErrFormat) {
		t.Fatal(err)
	}
}

func TestCommandRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name")
		args := genBytes(t, "args", 0)
		got, rest, err := DecodeCommand(AppendCommand(nil, name, args))
		if err != nil || got != name || !bytes.Equal(rest, args) {
			t.Fatalf("got %q %x %v", got, rest, err)
		}
	})
	for _, body := range [][]byte{nil, {5, 'a'}, {0x80}} {
		if _, _, err := DecodeCommand(body); !errors.Is(err, ErrFormat) {
			t.Fatalf("%x: %v", body, err)
		}
	}
}

// TestCodecAllocations holds the hot path: nothing is allocated per event.
func TestCodecAllocations(t *testing.T) {
	event := Event{
		Type: []byte("item_purchased"), Email: []byte("a@example.com"), Properties: []byte(`{"value":12.5}`),
		IdempotencyKey: []byte("k-1"), HasTime: true, TimeMs: 7,
	}
	events := make([]Event, 100)
	for i := range events {
		events[i] = event
	}
	buf := appendEvents(nil, events)
	body := bytes.Clone(buf)
	if n := testing.AllocsPerRun(100, func() { buf = appendEvents(buf[:0], events) }); n != 0 {
		t.Errorf("AppendEvent: %v allocations per 100 events", n)
	}
	var e Event
	n := testing.AllocsPerRun(100, func() {
		r, err := NewEventsReader(body)
		if err != nil {
			t.Fatal(err)
		}
		for r.Next(&e) {
		}
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
	})
	if n != 0 {
		t.Errorf("EventsReader.Next: %v allocations per 100 events", n)
	}
	env := Envelope{Kind: KindEvents, Account: 1}
	if n := testing.AllocsPerRun(100, func() {
		buf = env.Append(buf[:0])
		if _, _, err := DecodeEnvelope(buf); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Envelope: %v allocations", n)
	}
}

// TestRecordLayout pins the bytes that docs/formats.md describes: they are on
// disks.
func TestRecordLayout(t *testing.T) {
	env := Envelope{Kind: KindCommand, Account: 0x0102, ID: RecordID{0: 0xAA, 15: 0xBB}, StampMs: -2}
	got := AppendCommand(env.Append(nil), "hi", []byte("{}"))
	want := []byte{
		1, 4,
		2, 1, 0, 0, 0, 0, 0, 0,
		0xAA, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xBB,
		0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
		2, 'h', 'i', '{', '}',
	}
	if !bytes.Equal(got, want) {
		t.Errorf("command record\n%x, want\n%x", got, want)
	}
	got = appendEvents(nil, []Event{{Type: []byte("t"), Phone: []byte("+1"), IdempotencyKey: []byte("k"), HasTime: true, TimeMs: 3}})
	want = []byte{
		1, 0, 0, 9, // the last is the version of the rules
		0x04, 0x03, // phone, key, time
		1, 't', 2, '+', '1', 1, 'k',
		3, 0, 0, 0, 0, 0, 0, 0,
	}
	if !bytes.Equal(got, want) {
		t.Errorf("events body\n%x, want\n%x", got, want)
	}
	got = AppendEvent(nil, &Event{Type: []byte("t"), HasTime: true, TimeMs: 3, AnonymousID: []byte("a1"), PreviousID: []byte("p"), Public: true, MessageID: true})
	want = []byte{
		0x00, 0x72, // time, anonymous id, previous id, flags
		1, 't',
		3, 0, 0, 0, 0, 0, 0, 0,
		2, 'a', '1', 1, 'p', 3,
	}
	if !bytes.Equal(got, want) {
		t.Errorf("event of the tracking API\n%x, want\n%x", got, want)
	}
	got = (&ImportHead{File: [32]byte{9}, FirstRow: 5, Rows: 6, TriggerFlows: true}).Append(nil)
	want = append(append([]byte{9}, make([]byte, 31)...), 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 1)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("import head\n%x, want\n%x", got, want)
	}
}
