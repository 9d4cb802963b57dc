package file

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/s2"
)

// TestBatchOfManyBlocks: a batch whose records lie in several blocks is written whole and
// alone, while the next one begins in its last block.
func TestBatchOfManyBlocks(t *testing.T) {
	t.Parallel()
	opts := Options{FS: vfs.NewMem()}
	l, err := open("log", opts)
	if err != nil {
		t.Fatal(err)
	}
	p := l.partitions[0]
	var want [][]byte
	var waiting []*waiter
	for i := range int64(50) {
		want = append(want, payload(i, 100_000))
		w, _, err := p.enqueue(want[i], nil)
		if err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, w)
	}
	batches := 0
	for p.step() {
		batches++
	}
	for _, w := range waiting {
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
	}
	if batches != 2 {
		t.Fatalf("%d batches: not what this test needs", batches)
	}
	if err := l.release((*partition).stop); err != nil {
		t.Fatal(err)
	}
	mustHold(t, mustOpen(t, "log", opts), 0, 0, want)
}

// TestPackedSize: what can be compressed takes less, what cannot takes little more, and one
// large record leaves no memory behind.
func TestPackedSize(t *testing.T) {
	t.Parallel()
	l := mustOpen(t, "log", Options{FS: vfs.NewMem()})
	size := func(data []byte) int {
		mustAppend(t, l, 0, data)
		return len(l.partitions[0].w.packed)
	}
	if n := size(bytes.Repeat([]byte("an event, and another. "), 100)); n > 300 {
		t.Errorf("2,300 bytes that repeat take %d", n)
	}
	if n := size(payload(1, 100_000)); n < 100_000 || n > 100_200 {
		t.Errorf("100,002 random bytes take %d", n)
	}
	size(payload(2, 12<<20))
	size([]byte("small"))
	if n := cap(l.partitions[0].w.packed); n > 2*maxBatchBytes {
		t.Errorf("%d bytes are kept after a large record", n)
	}
}

// TestSenselessHeads: a head that no writer makes is refused before anything is made room for.
func TestSenselessHeads(t *testing.T) {
	t.Parallel()
	good := batchHeader{kind: batchPacked, first: 3, body: 60, records: 2, unpacked: 100}
	if reason := good.check(3); reason != "" {
		t.Fatal(reason)
	}
	for name, change := range map[string]func(h *batchHeader){
		"no records":           func(h *batchHeader) { h.records = 0 },
		"too many records":     func(h *batchHeader) { h.records = 7 },
		"too large":            func(h *batchHeader) { h.unpacked = maxUnpacked + 1 },
		"nothing behind it":    func(h *batchHeader) { h.body = packOverhead },
		"more behind it":       func(h *batchHeader) { h.body = 200 },
		"of another place":     func(h *batchHeader) { h.first = 4 },
		"of an unknown kind":   func(h *batchHeader) { h.kind = 5 },
		"a mark with a body":   func(h *batchHeader) { h.kind = batchMark },
		"raw and too large":    func(h *batchHeader) { h.kind, h.unpacked = batchRecords, maxUnpacked+1 },
		"raw without a record": func(h *batchHeader) { h.kind, h.records = batchRecords, 0 },
	} {
		bad := good
		change(&bad)
		if bad.check(3) == "" {
			t.Errorf("%s: taken", name)
		}
	}
}

// TestSenselessBatchIsNoTornWrite: a last batch whose checksum holds and that makes no sense was
// written so: it is damage, and not cut off.
func TestSenselessBatchIsNoTornWrite(t *testing.T) {
	t.Parallel()
	records := appendFrame(appendFrame(nil, 0, []byte("a")), 1, []byte("b"))
	bad := bytes.Clone(records)
	bad[frameHeadSize] ^= 1
	for name, x := range map[string]struct {
		block    []byte
		unpacked int
		ok       bool
	}{
		"whole":           {s2.Encode(nil, records), len(records), true},
		"no block":        {append(binary.AppendUvarint(nil, uint64(len(records))), 0xff, 0xff, 0xff), len(records), false},
		"other length":    {s2.Encode(nil, append(records, 0)), len(records), false},
		"damaged records": {s2.Encode(nil, bad), len(records), false},
	} {
		h := segmentHeader{version: packedVersion, salt: fuzzSalt, logID: fuzzLogID}
		body := binary.LittleEndian.AppendUint32(bytes.Clone(x.block), checksum(x.block))
		b := appendHead(h.encode(), batchHeader{kind: batchPacked, body: uint32(len(body)), records: 2, unpacked: uint32(x.unpacked)})
		fsys := vfs.NewMem()
		writeFile(t, fsys, "log/meta", (&small{magic: metaMagic, number: 1, value: fuzzLogID}).encode())
		writeFile(t, fsys, "log/p0/"+segmentName(0), append(append(b, body...), make([]byte, 100)...))
		_, got, err := inspect(fsys)
		if x.ok != (err == nil && len(got) == 2) || !x.ok && asCorrupt(err) == nil {
			t.Errorf("%s: %d records, %v", name, len(got), err)
		}
	}
}
