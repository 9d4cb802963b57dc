package file

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fuzzLogID and fuzzSalt make a segment's checksums something that a seed and
// the mutator's output can share.
const (
	fuzzLogID = 0x1122334455667788
	fuzzSalt  = 0x99aabbccddeeff00
)

// fuzzSegment makes a whole segment of a few batches, of either version.
func fuzzSegment(version uint32) []byte {
	h := segmentHeader{version: version, salt: fuzzSalt, logID: fuzzLogID}
	b := h.encode()
	next := int64(0)
	for _, sizes := range [][]int{{3}, {0, 40, 7}, {300}} {
		var body []byte
		head := batchHeader{kind: batchRecords, first: next, records: uint32(len(sizes))}
		for _, n := range sizes {
			body = appendFrame(body, next, payload(next, n))
			next++
		}
		if version == packedVersion {
			head.kind, head.unpacked = batchPacked, uint32(len(body))
			body = pack(nil, body)
		}
		head.body = uint32(len(body))
		b = appendHead(b, head)
		b = append(b, body...)
	}
	return b
}

func appendHead(b []byte, h batchHeader) []byte {
	pos := int64(len(b))
	b = append(b, make([]byte, batchHeaderSize)...)
	h.encode(b[pos:], fuzzSalt, pos)
	return b
}

// repair makes the checksums fit again, so that mutations reach the code
// behind them.
func repair(b []byte) {
	le := binary.LittleEndian
	if len(b) < segmentHeaderSize {
		return
	}
	le.PutUint32(b[60:], checksum(b[:60]))
	for pos := segmentHeaderSize; len(b)-pos >= batchHeaderSize; {
		head := b[pos:]
		le.PutUint32(head[44:], checksum(head[:44]))
		body := int(le.Uint32(head[32:]))
		pos += batchHeaderSize
		end := pos + body
		if le.Uint32(head[4:]) == uint32(batchPacked) && body > packOverhead && end <= len(b) {
			le.PutUint32(b[end-packOverhead:], checksum(b[pos:end-packOverhead]))
		}
		for at := pos; at < end && len(b)-at >= frameOverhead; {
			n := int(le.Uint32(b[at:])) + frameHeadSize
			if n < 0 || n > len(b)-at-4 {
				break
			}
			le.PutUint32(b[at+n:], checksum(b[at:at+n]))
			at += n + 4
		}
		if body < 0 || body > len(b)-pos {
			return
		}
		pos = end
	}
}

// FuzzOpenSegment opens a log whose only segment has arbitrary bytes. Open and
// Next answer with records or an error, never with a panic; what a log that
// opened holds, it still holds after another start.
func FuzzOpenSegment(f *testing.F) {
	whole := fuzzSegment(packedVersion)
	f.Add(whole, false)
	f.Add(whole, true)
	f.Add(fuzzSegment(rawVersion), false)
	f.Add(fuzzSegment(rawVersion), true)
	f.Add(appendHead(bytes.Clone(whole), batchHeader{kind: batchMark, first: 5}), false)
	f.Add(appendHead(bytes.Clone(whole), batchHeader{kind: batchSeal, first: 5}), false)
	f.Add(appendHead(bytes.Clone(whole), batchHeader{kind: batchRecords, first: 5, body: 1 << 31, records: 9}), false)
	f.Add(appendHead(bytes.Clone(whole), batchHeader{kind: batchPacked, first: 5, body: 9, records: 9, unpacked: 1 << 29}), false)
	f.Add(append(bytes.Clone(whole), make([]byte, 700)...), true)
	f.Add(whole[:len(whole)-9], false)
	f.Add(whole[:segmentHeaderSize], true)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, data []byte, fix bool) {
		if len(data) > 64<<10 {
			return
		}
		data = bytes.Clone(data)
		if fix {
			repair(data)
		}
		fsys := vfs.NewMem()
		writeFile(t, fsys, "log/meta", (&small{magic: metaMagic, number: 1, value: fuzzLogID}).encode())
		writeFile(t, fsys, "log/p0/"+segmentName(0), data)
		_, got, err := inspect(fsys)
		if err != nil {
			return
		}
		_, again, err := inspect(fsys)
		if err != nil || len(again) != len(got) {
			t.Fatalf("the first start found %d records, the second %d, %v", len(got), len(again), err)
		}
		for i := range got {
			if !bytes.Equal(got[i], again[i]) {
				t.Fatalf("record %d changed between two starts", i)
			}
		}
	})
}

// FuzzSmallFile reads meta and start files of arbitrary bytes.
func FuzzSmallFile(f *testing.F) {
	f.Add((&small{magic: metaMagic, number: 1, value: fuzzLogID}).encode())
	f.Add([]byte("MUSTRMTA"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, reason := decodeSmall(data, metaMagic)
		if reason == "" && !bytes.Equal(s.encode(), data) {
			t.Fatalf("%x was read as %+v", data, s)
		}
	})
}
