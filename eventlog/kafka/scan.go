package kafka

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/segmentio/kafka-go/compress"
)

// fault is a record set that is not what Muster writes and Kafka keeps.
type fault struct {
	// pos is the byte position in the record set as fetched.
	pos    int
	reason string
}

func (f *fault) Error() string { return f.reason }

// scanner reads the records of a fetched record set in order. Records are
// slices of it, or of what it inflates to. It never panics, whatever the bytes.
type scanner struct {
	set []byte
	pos int
	// inflateLimit bounds a batch that is compressed.
	inflateLimit int

	// Of the present batch: where it is, what is left of it, the offset of its
	// first record and the one behind its last.
	at        int
	body      []byte
	left      int
	base, end int64
	inflated  []byte
	// key is that of the batch's first record, once that was read. It points into
	// the set.
	key []byte
}

func (s *scanner) reset(set []byte) {
	s.set, s.pos, s.body, s.left, s.key = set, 0, nil, 0, nil
}

// own makes the records of a batch of our own ready. It was checked when it was
// made.
func (s *scanner) own(b ownBatch) {
	s.reset(nil)
	s.at, s.body, s.left, s.base, s.end = 0, b.buf[prefixSize:], int(b.end-b.base), b.base, b.end
}

// fail makes a fault of the present batch.
func (s *scanner) fail(format string, args ...any) error {
	return &fault{pos: s.at, reason: fmt.Sprintf(format, args...)}
}

// errNoMore: the rest of the set is no whole batch.
var errNoMore = errors.New("no more records")

// next returns the next record; want is its offset. Records below want are
// left out; any other gap is a fault.
func (s *scanner) next(want int64) ([]byte, error) {
	for {
		for s.left == 0 {
			if err := s.batch(want); err != nil {
				return nil, err
			}
		}
		offset, data, err := s.record()
		if err != nil {
			return nil, err
		}
		if s.left == 0 && offset+1 != s.end {
			return nil, s.fail("the batch ends at offset %d, its head says %d: records were removed (cleanup.policy must be delete)", offset+1, s.end)
		}
		switch {
		case offset < want:
			continue
		case offset > want:
			return nil, s.fail("offset %d is missing, the next record has offset %d", want, offset)
		}
		return data, nil
	}
}

// batch enters the next batch with a record at or behind want.
func (s *scanner) batch(want int64) error {
	for {
		head, size := s.peek()
		if head == nil {
			return errNoMore
		}
		s.at = s.pos
		if m := head[atMagic]; m != magic2 {
			return s.fail("a batch has message format %d, only 2 (Kafka 0.11 and newer) is read", m)
		}
		if size < batchHeaderSize {
			return s.fail("a batch is shorter than its head, %d bytes", batchHeaderSize)
		}
		be := binary.BigEndian
		s.base = int64(be.Uint64(head))
		last := int64(int32(be.Uint32(head[atLastDelta:])))
		if s.base < 0 || last < 0 || s.base+last < 0 {
			return s.fail("a batch has base offset %d and last offset delta %d", s.base, last)
		}
		s.end = s.base + last + 1
		s.pos += size
		if s.end > want {
			return s.enter(head[:size], want)
		}
	}
}

// peek returns the next whole batch of the set with all that follows it, and
// the batch's size. nil means that there is none; a size below the head's is a
// fault.
func (s *scanner) peek() (head []byte, size int) {
	rest := s.set[s.pos:]
	// Kafka cuts the set where the limit is, amid a batch.
	if len(rest) < atMagic+1 {
		return nil, 0
	}
	length := int64(int32(binary.BigEndian.Uint32(rest[atLength:])))
	if length+12 < batchHeaderSize {
		return rest, 0
	}
	if length+12 > int64(len(rest)) {
		return nil, 0
	}
	return rest, int(length) + 12
}

// enter checks the batch and makes its records ready.
func (s *scanner) enter(b []byte, want int64) error {
	be := binary.BigEndian
	if sum := crc32.Checksum(b[atAttributes:], castagnoli); sum != be.Uint32(b[atCRC:]) {
		return s.fail("the batch at offset %d has checksum %08x, its bytes have %08x", s.base, be.Uint32(b[atCRC:]), sum)
	}
	attributes := be.Uint16(b[atAttributes:])
	if attributes&(flagControl|flagTransactional) != 0 {
		return s.fail("the batch at offset %d belongs to a transaction: something else writes to the topic", s.base)
	}
	if s.base > want {
		return s.fail("offset %d is missing, the next batch begins at offset %d", want, s.base)
	}
	records := int64(int32(be.Uint32(b[atRecords:])))
	if records < 1 || records != s.end-s.base {
		return s.fail("the batch at offset %d has %d records for %d offsets: records were removed (cleanup.policy must be delete)",
			s.base, records, s.end-s.base)
	}
	body := b[batchHeaderSize:]
	if c := compress.Compression(attributes & maskCompression); c != 0 {
		codec := c.Codec()
		if codec == nil {
			return s.fail("the batch at offset %d has the unknown compression %d", s.base, c)
		}
		var err error
		if body, err = s.inflate(codec, body); err != nil {
			return s.fail("the batch at offset %d, compressed with %s: %v", s.base, codec.Name(), err)
		}
	}
	s.body, s.left = body, int(records)
	return nil
}

func (s *scanner) inflate(codec compress.Codec, body []byte) (_ []byte, err error) {
	// The codecs are other people's and the bytes may be anything.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot be read: %v", p)
		}
	}()
	if codec.Code() == int8(compress.Snappy) {
		if err := checkSnappy(body, s.inflateLimit); err != nil {
			return nil, err
		}
	}
	r := codec.NewReader(bytes.NewReader(body))
	defer func() {
		if cerr := r.Close(); err == nil {
			err = cerr
		}
	}()
	out := s.inflated[:0]
	for idle := 0; len(out) <= s.inflateLimit; {
		if len(out) == cap(out) {
			out = slices.Grow(out, max(4<<10, len(out)))
		}
		n, err := r.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		s.inflated = out
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		// A codec that neither reads nor ends must not hold us up.
		if idle++; n > 0 {
			idle = 0
		}
		if idle > 100 {
			return nil, io.ErrNoProgress
		}
	}
	return nil, fmt.Errorf("inflates to more than %d bytes", s.inflateLimit)
}

// xerialHead begins what Java's snappy writes: 16 bytes, then blocks with their
// lengths before them. Without it the body is one block.
const (
	xerialMagic = "\x82SNAPPY\x00"
	xerialHead  = 16
)

// checkSnappy refuses lengths that cannot be: the codec makes room for what a
// body claims before it looks.
func checkSnappy(body []byte, limit int) error {
	block := func(b []byte) error {
		if size, n := binary.Uvarint(b); n <= 0 || size > uint64(limit) {
			return fmt.Errorf("a block inflates to more than %d bytes", limit)
		}
		return nil
	}
	if !bytes.HasPrefix(body, []byte(xerialMagic)) {
		return block(body)
	}
	if len(body) < xerialHead {
		return io.ErrUnexpectedEOF
	}
	for rest := body[xerialHead:]; len(rest) > 0; {
		if len(rest) < 4 {
			return io.ErrUnexpectedEOF
		}
		n := int64(binary.BigEndian.Uint32(rest))
		if n > int64(len(rest)-4) {
			return io.ErrUnexpectedEOF
		}
		if err := block(rest[4 : 4+n]); err != nil {
			return err
		}
		rest = rest[4+n:]
	}
	return nil
}

// record takes the next record off the body.
func (s *scanner) record() (offset int64, data []byte, err error) {
	length, n := binary.Varint(s.body)
	if n <= 0 || length < 0 || length > int64(len(s.body)-n) {
		return 0, nil, s.fail("a record of the batch at offset %d has an impossible length", s.base)
	}
	rest := s.body[n : n+int(length)]
	s.body = s.body[n+int(length):]
	s.left--
	if len(rest) == 0 {
		return 0, nil, s.fail("a record of the batch at offset %d is empty", s.base)
	}
	rest = rest[1:] // attributes
	var delta, keyBytes, valueBytes int64
	for _, v := range []*int64{nil, &delta, &keyBytes} {
		x, n := binary.Varint(rest)
		if n <= 0 {
			return 0, nil, s.fail("a record of the batch at offset %d ends early", s.base)
		}
		rest = rest[n:]
		if v != nil {
			*v = x
		}
	}
	if delta < 0 || delta >= s.end-s.base {
		return 0, nil, s.fail("a record of the batch at offset %d has offset delta %d", s.base, delta)
	}
	if keyBytes > int64(len(rest)) || keyBytes < -1 {
		return 0, nil, s.fail("a record of the batch at offset %d has an impossible key", s.base)
	}
	if delta == 0 {
		s.key = rest[:max(keyBytes, 0)]
	}
	rest = rest[max(keyBytes, 0):]
	valueBytes, n = binary.Varint(rest)
	if n <= 0 || valueBytes < -1 || valueBytes > int64(len(rest)-n) {
		return 0, nil, s.fail("a record of the batch at offset %d has an impossible value", s.base)
	}
	// No value is taken for an empty one. Headers are not read.
	return s.base + delta, rest[n : n+int(max(valueBytes, 0))], nil
}

// endOf returns the offset behind the last whole batch of the set, or from
// when there is none.
func endOf(set []byte, from int64) int64 {
	s := scanner{set: set}
	end := from
	for {
		head, size := s.peek()
		if size < batchHeaderSize {
			return end
		}
		end = int64(binary.BigEndian.Uint64(head)) + int64(int32(binary.BigEndian.Uint32(head[atLastDelta:]))) + 1
		s.pos += size
	}
}
