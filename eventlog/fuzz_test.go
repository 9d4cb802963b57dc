package eventlog

import (
	"bytes"
	"errors"
	"testing"
)

// Decoding never panics, whatever the bytes, and what it accepts has the same
// meaning after it is encoded again.

func FuzzDecodeEnvelope(f *testing.F) {
	f.Add((&Envelope{Kind: KindEvents, Account: 7, ID: RecordID{1}, StampMs: 1_700_000_000_000}).Append(nil))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, data []byte) {
		e, body, err := DecodeEnvelope(data)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		if again := append(e.Append(nil), body...); !bytes.Equal(again, data) {
			t.Fatalf("%x became %x", data, again)
		}
	})
}

func FuzzEventsReader(f *testing.F) {
	f.Add(appendEvents(nil, nil))
	f.Add(appendEvents(nil, []Event{{Type: []byte("a")}, {Type: []byte("b"), Email: []byte("x@y"), HasTime: true, TimeMs: 1}}))
	f.Add(appendEvents(nil, []Event{{Type: []byte("a"), AnonymousID: []byte("d-1"), IdempotencyKey: []byte("m"), MessageID: true, Public: true}, {Type: []byte("aliased"), ExternalID: []byte("u"), PreviousID: []byte("d-1")}}))
	f.Add([]byte{1, 0, 0, 0, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		events, err := readEvents(data)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		again, err := readEvents(appendEvents(nil, events))
		if err != nil || !sameEvents(events, again) {
			t.Fatalf("%+v became %+v, %v", events, again, err)
		}
	})
}

func FuzzDecodeImportHead(f *testing.F) {
	f.Add((&ImportHead{FirstRow: 1, Rows: 2, TriggerFlows: true}).Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, body, err := DecodeImportHead(data)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		if again := append(h.Append(nil), body...); !bytes.Equal(again, data) {
			t.Fatalf("%x became %x", data, again)
		}
	})
}

func FuzzDecodeCommand(f *testing.F) {
	f.Add(AppendCommand(nil, "contact.create", []byte(`{"email":"a@b"}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		name, args, err := DecodeCommand(data)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		name2, args2, err := DecodeCommand(AppendCommand(nil, name, args))
		if err != nil || name2 != name || !bytes.Equal(args, args2) {
			t.Fatalf("%q %x became %q %x, %v", name, args, name2, args2, err)
		}
	})
}
