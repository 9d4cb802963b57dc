package feed

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// FuzzSpool: a damaged spool file is an error, never a panic, and what is read is
// written and read again.
func FuzzSpool(f *testing.F) {
	b := query.Batch{From: 3, To: 4, Account: []uint64{1}, Offset: []int64{3}, Index: []uint32{0}, Ordinal: []uint32{5}, TimeMs: []int64{6}}
	b.EventType.Append([]byte("bought"))
	b.Properties.Append([]byte(`{"a":1}`))
	b.IdempotencyKey.Append([]byte("k"))
	b.Aliases = append(b.Aliases, query.Alias{Account: 1, Offset: 3, Ordinal: 1, Winner: 2})
	b.Transitions = append(b.Transitions, query.Transition{Account: 1, Key: query.TransitionKey{Offset: 3, Seq: 1}, Ordinal: 5, Entered: true, AtMs: 6, Segment: "seg_1"})
	good := encodeBatch(nil, &b)
	f.Add(good[:len(good)-4])
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decodeBatch(binary.LittleEndian.AppendUint32(append([]byte(nil), body...), crc32.Checksum(body, statefiles.Castagnoli)))
		if err != nil {
			return
		}
		if _, err := decodeBatch(encodeBatch(nil, got)); err != nil {
			t.Fatal(err)
		}
	})
}
