package feed

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// encoded is a batch as a spool file has it.
func encoded(b *query.Batch) []byte {
	var out bytes.Buffer
	encodeBatch(&pieces{to: &out, worked: func() {}}, b)
	return out.Bytes()
}

// TestSpoolInPieces: a file that is written in many pieces is read again, has the size that is
// told, and there may be a pause after each piece.
func TestSpoolInPieces(t *testing.T) {
	b := query.Batch{From: 3, To: 5}
	for i := range 3000 {
		b.Account, b.Offset, b.Index = append(b.Account, 1), append(b.Offset, 3), append(b.Index, uint32(i))
		b.Ordinal, b.TimeMs = append(b.Ordinal, 5), append(b.TimeMs, 6)
		b.EventType.Append([]byte("bought"))
		b.Properties.Append(bytes.Repeat([]byte("x"), i%200))
		b.IdempotencyKey.Append(nil)
	}
	fs, worked := vfs.NewMem(), 0
	size, err := writeSpoolFile(fs, "a.spool", &b, func() { worked++ })
	if err != nil {
		t.Fatal(err)
	}
	info, err := fs.Stat("a.spool")
	if err != nil {
		t.Fatal(err)
	}
	if size != info.Size() || worked < int(size)/spoolPiece || worked > int(size)/spoolPiece+2 {
		t.Errorf("%d bytes are told of %d, %d pieces", size, info.Size(), worked)
	}
	got, err := readSpoolFile(fs, "a.spool", 3, 5)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Properties, b.Properties) || !reflect.DeepEqual(got.Index, b.Index) {
		t.Error("what is read is not what was written")
	}
}

// FuzzSpool: a damaged spool file is an error, never a panic, and what is read is
// written and read again.
func FuzzSpool(f *testing.F) {
	b := query.Batch{From: 3, To: 4, Account: []uint64{1}, Offset: []int64{3}, Index: []uint32{0}, Ordinal: []uint32{5}, TimeMs: []int64{6}}
	b.EventType.Append([]byte("bought"))
	b.Properties.Append([]byte(`{"a":1}`))
	b.IdempotencyKey.Append([]byte("k"))
	b.Aliases = append(b.Aliases, query.Alias{Account: 1, Offset: 3, Ordinal: 1, Winner: 2})
	b.Transitions = append(b.Transitions, query.Transition{Account: 1, Key: query.TransitionKey{Offset: 3, Seq: 1}, Ordinal: 5, Entered: true, AtMs: 6, Segment: "seg_1"})
	good := encoded(&b)
	f.Add(good[:len(good)-4])
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decodeBatch(binary.LittleEndian.AppendUint32(append([]byte(nil), body...), crc32.Checksum(body, statefiles.Castagnoli)))
		if err != nil {
			return
		}
		if _, err := decodeBatch(encoded(got)); err != nil {
			t.Fatal(err)
		}
	})
}
