package kafka

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/segmentio/kafka-go/compress"
)

// A record batch of Kafka's message format 2, big-endian:
//
//	 0  base offset            8
//	 8  length of what follows 4
//	12  partition leader epoch 4
//	16  magic, 2               1
//	17  CRC-32C from 21 on     4
//	21  attributes             2
//	23  last offset delta      4
//	27  base timestamp         8
//	35  max timestamp          8
//	43  producer id            8
//	51  producer epoch         2
//	53  base sequence          4
//	57  number of records      4
//	61  records, compressed when attributes say so
//
// A record: length, attributes, timestamp delta, offset delta, length of key
// (-1 for none), key, length of value, value, number of headers; integers are zigzag
// varints, attributes one byte.
const (
	batchHeaderSize = 61
	// sizePrefix stands before a record set in a request.
	sizePrefix = 4
	// prefixSize is what a batch's buffer begins with.
	prefixSize = sizePrefix + batchHeaderSize
	// maxFraming is what a record takes beside its bytes, at most: 31 for a first
	// one with a key.
	maxFraming = 32

	atLength = 8
	atMagic  = 16
	atCRC    = 17
	// atAttributes begins what the checksum covers.
	atAttributes = 21
	atLastDelta  = 23
	atRecords    = 57

	magic2 = 2

	maskCompression   = 0x07
	flagTransactional = 0x10
	flagControl       = 0x20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendRecord frames data as the record with this offset delta. It has no
// headers and no time of its own; key is nil but for the first of a batch in a
// topic with a base.
func appendRecord(b []byte, delta int, key, data []byte) []byte {
	var head [24 + baseSize]byte
	h := head[:0]
	h = append(h, 0) // attributes
	h = append(h, 0) // timestamp delta
	h = binary.AppendVarint(h, int64(delta))
	if key == nil {
		h = append(h, 1) // none: -1 in zigzag
	} else {
		h = binary.AppendVarint(h, int64(len(key)))
		h = append(h, key...)
	}
	h = binary.AppendVarint(h, int64(len(data)))
	b = binary.AppendVarint(b, int64(len(h)+len(data)+1))
	b = append(b, h...)
	b = append(b, data...)
	return append(b, 0) // headers
}

// sealBatch fills in the head of the batch whose records begin at
// buf[prefixSize], and returns the whole record set with its size. With a
// codec that is a new slice.
func sealBatch(buf []byte, records int, codec compress.Codec) ([]byte, error) {
	attributes := uint16(0)
	if codec != nil {
		var out bytes.Buffer
		out.Grow(prefixSize + len(buf)/2)
		out.Write(buf[:prefixSize])
		w := codec.NewWriter(&out)
		_, err := w.Write(buf[prefixSize:])
		if cerr := w.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return nil, fmt.Errorf("compress a batch: %w", err)
		}
		// What does not shrink is sent as it is.
		if out.Len() < len(buf) {
			buf = out.Bytes()
			attributes = uint16(codec.Code())
		}
	}
	be := binary.BigEndian
	be.PutUint32(buf, uint32(len(buf)-sizePrefix))
	h := buf[sizePrefix:]
	be.PutUint64(h, 0)
	be.PutUint32(h[atLength:], uint32(len(h)-12))
	be.PutUint32(h[12:], ^uint32(0))
	h[atMagic] = magic2
	be.PutUint16(h[atAttributes:], attributes)
	be.PutUint32(h[atLastDelta:], uint32(records-1))
	// No time (-1, twice), no producer id, epoch and sequence (-1).
	for i := 27; i < atRecords; i++ {
		h[i] = 0xff
	}
	be.PutUint32(h[atRecords:], uint32(records))
	be.PutUint32(h[atCRC:], crc32.Checksum(h[atAttributes:], castagnoli))
	return buf, nil
}
