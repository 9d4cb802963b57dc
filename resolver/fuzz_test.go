package resolver

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
)

func FuzzDocument(f *testing.F) {
	d := document{createdMs: 1, idents: []ident{{kind: IdentityEmail, value: []byte("a@x.io")}, {kind: IdentityPhone, value: []byte("+1"), shared: true}}, attributes: []byte(`{"a":1}`),
		merged: []mergedProfile{{1, 2}}, conflicts: []conflict{{IdentityPhone, conflictTooMany, 3, 4, []byte("1")}},
		consents: []consentState{{1, 1, 5, []byte("manual"), 4}},
		contactExtra: contactExtra{isContact: true, lists: []uint32{3}, blocks: []block{{0, blockBounced, 6}},
			devices: []device{{[]byte("d"), 1, []byte("token"), 7}}, engaged: engagement{sent: 2, lastSentMs: 9}}}
	f.Add(d.append(nil))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var d, again document
		if d.decode(b) != nil {
			return
		}
		if err := again.decode(d.append(nil)); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzSpool(f *testing.F) {
	b := query.Batch{From: 3, To: 4}
	e := ev("email", "a@x.io", "key", "k")
	appendRow(&b, 1, 3, 0, 5, 6, &e)
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

func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1}}`), []byte(`{"a":{"b":null,"c":[1,"}"]}}`))
	f.Add([]byte(`{"a`), []byte(`{"a":{"b":{"c":{"d":{}}}}}`))
	f.Fuzz(func(t *testing.T, dst, src []byte) {
		var j jsonMerger
		for _, mode := range []mergeMode{mergeOverwrite, mergeFill} {
			out, _, err := j.merge(dst, src, mode)
			if err != nil {
				continue
			}
			if _, changed, err := j.merge(out, src, mode); err == nil && changed && isObject(dst) && isObject(src) {
				t.Fatalf("merging %s into %s twice changes it again: %s", src, dst, out)
			}
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

// isObject tells whether b is an object as ingest writes them: without
// repeated keys, which json.Valid does not see.
func isObject(b []byte) bool {
	var m map[string]json.RawMessage
	if len(b) == 0 || b[0] != '{' || json.Unmarshal(b, &m) != nil {
		return false
	}
	n := 0
	_ = eachMember(b, func(member) { n++ })
	for _, v := range m {
		if v[0] == '{' && !isObject(v) {
			return false
		}
	}
	return n == len(m)
}
