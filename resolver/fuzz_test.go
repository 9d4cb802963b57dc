package resolver

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
)

func FuzzSpool(f *testing.F) {
	b := query.Batch{From: 3, To: 4}
	e := ev("email", "a@x.io", "key", "k")
	appendRow(&b, 1, 3, 0, 5, 6, &e, e.IdempotencyKey)
	b.Aliases = append(b.Aliases, query.Alias{Account: 1, Offset: 3, Ordinal: 1, Winner: 2})
	good := encodeBatch(nil, &b)
	f.Add(good[:len(good)-4])
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decodeBatch(withCRC(body))
		if err != nil {
			return
		}
		if _, err := decodeBatch(encodeBatch(nil, got)); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzApply feeds arbitrary record bodies to the machine: it may refuse them,
// never panic (L3).
func FuzzApply(f *testing.F) {
	f.Add(uint8(eventlog.KindEvents), appendEvents(nil, []eventlog.Event{ev("email", "a@x.io", "attributes", `{"a":1}`)}))
	f.Add(uint8(eventlog.KindImport), appendEvents((&eventlog.ImportHead{Rows: 1}).Append(nil), []eventlog.Event{ev("phone", "1")}))
	f.Add(uint8(eventlog.KindCommand), eventlog.AppendCommand(nil, CommandCatalogDefine, []byte(`{"name":"X"}`)))
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		r := newRecorder(t, DefaultSettings())
		env := r.envelope(eventlog.Kind(kind))
		var rows query.Batch
		_ = r.m.Apply(r.m.next, append(env.Append(nil), body...), &rows, &r.out)
	})
}

func withCRC(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(append([]byte(nil), b...), crc32.Checksum(b, castagnoli))
}
