package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// scanChunk is how much of a file is read at a time.
const scanChunk = 256 << 10

// scanner reads the records of one segment file in order and checks all it
// reads. It trusts no length before the checksum that covers it.
type scanner struct {
	file vfs.File
	salt uint64
	// limit is where reading stops: bytes behind it may still change.
	limit int64
	// next is the offset of the record to come.
	next int64

	// buf[r:w] are bytes that were read but not used; buf[0] is at byte
	// position at of the file.
	buf  []byte
	at   int64
	r, w int

	// The batch being read: its head's position, its head, the records left.
	batchPos int64
	batch    batchHeader
	left     uint32
	// size is the length of the newest record with its frame.
	size int

	// redacted are records of which bytes were taken out, as far as it is known.
	// What does not fit is looked up again with the first of these functions, which
	// the second ends; both are nil where nothing can have been redacted.
	redacted sidecar
	lookUp   func() (sidecar, error)
	endLook  func()
	composed []byte
}

// fault is bytes that are not what must stand there.
type fault struct {
	// pos is the byte position of what is wrong.
	pos    int64
	reason string
	// written is set when the bytes cannot be a torn write: their checksum
	// holds and they still make no sense.
	written bool
}

func (f *fault) Error() string { return fmt.Sprintf("byte %d: %s", f.pos, f.reason) }

// errMark and errSeal end a segment properly.
var (
	errMark = errors.New("mark")
	errSeal = errors.New("seal")
)

// reset makes the scanner start at a batch head at position pos, where offset
// is expected. The buffer is kept.
func (s *scanner) reset(f vfs.File, salt uint64, pos, offset int64) {
	*s = scanner{file: f, salt: salt, limit: math.MaxInt64, next: offset, buf: s.buf, composed: s.composed, at: pos, batchPos: pos}
}

// pos is the byte position of the next byte to use.
func (s *scanner) pos() int64 { return s.at + int64(s.r) }

// peek returns the next n bytes, fewer at the limit or the end of the file.
func (s *scanner) peek(n int) ([]byte, error) {
	if s.w-s.r >= n {
		return s.buf[s.r : s.r+n], nil
	}
	copy(s.buf, s.buf[s.r:s.w])
	s.at += int64(s.r)
	s.w -= s.r
	s.r = 0
	if len(s.buf) < n {
		grown := make([]byte, max(n, scanChunk))
		copy(grown, s.buf[:s.w])
		s.buf = grown
	}
	for s.w < n {
		from := s.at + int64(s.w)
		want := min(int64(len(s.buf)-s.w), s.limit-from)
		if want <= 0 {
			break
		}
		got, err := s.file.ReadAt(s.buf[s.w:s.w+int(want)], from)
		s.w += got
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return s.buf[s.r:min(s.r+n, s.w)], nil
}

// record returns the next record, valid until the next call. The error is
// errMark or errSeal, a *fault, or that of the file.
func (s *scanner) record() ([]byte, error) {
	if s.left == 0 {
		if err := s.head(); err != nil {
			return nil, err
		}
	}
	rest := s.batchPos + batchHeaderSize + int64(s.batch.body) - s.pos()
	b, err := s.peek(frameHeadSize)
	if err != nil {
		return nil, err
	}
	if len(b) < frameHeadSize {
		return nil, s.fault("record cut short by the end of the file")
	}
	if isBatchHead(b) {
		return nil, s.fault("record has a bad length")
	}
	// The length is covered by a checksum at its far end. It may be believed
	// as far as the checked head of the batch goes; peek reads no more than
	// the file has.
	offset, size := frameHead(b)
	tail := int64(s.left-1) * frameOverhead
	if int64(size)+tail > rest || s.left == 1 && int64(size) != rest {
		return nil, s.fault("record has a bad length")
	}
	if b, err = s.peekFrame(size); err != nil {
		return nil, err
	}
	if len(b) < size {
		return nil, s.fault("record cut short by the end of the file")
	}
	data, ok := s.content(b)
	if !ok {
		if data, err = s.contentAgain(b); err != nil {
			return nil, err
		}
	}
	if offset != s.next {
		return nil, s.fault(fmt.Sprintf("record has offset %d, expected %d", offset, s.next))
	}
	s.r += size
	s.size = size
	s.left--
	s.next++
	return data, nil
}

// content is the record in a frame, with what was redacted left out.
func (s *scanner) content(frame []byte) (data []byte, ok bool) {
	end := len(frame) - 4
	data = frame[frameHeadSize:end:end]
	if r := s.redacted[s.next]; r != nil {
		s.composed, ok = r.compose(s.composed[:0], data)
		return s.composed, ok
	}
	return data, le32(frame[end:]) == checksum(frame[:end])
}

// contentAgain is content for a frame that does not fit what is known: it may have
// been redacted since, also between two reads of its bytes. The frame is read
// again while nothing is redacted.
func (s *scanner) contentAgain(frame []byte) ([]byte, error) {
	bad := s.fault("checksum of the record does not match")
	if s.lookUp == nil {
		return nil, bad
	}
	list, err := s.lookUp()
	defer s.endLook()
	if err != nil {
		return nil, err
	}
	s.redacted = list
	if _, err := s.file.ReadAt(frame, s.pos()); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if data, ok := s.content(frame); ok {
		return data, nil
	}
	if end := len(frame) - 4; list[s.next] == nil && le32(frame[end:]) == checksum(frame[:end])^redactedMask {
		bad.reason = "bytes of the record were redacted, and the file beside it that holds what is left (" + redactedSuffix[1:] + ") is missing or does not name the record; put it back"
	}
	return nil, bad
}

// peekFrame is peek for a record of size bytes. It looks whether the file is
// that long before it makes room.
func (s *scanner) peekFrame(size int) ([]byte, error) {
	if size > len(s.buf) {
		var last [1]byte
		end := s.pos() + int64(size)
		if end > s.limit {
			return nil, s.fault("record cut short by the end of the file")
		}
		if n, err := s.file.ReadAt(last[:], end-1); n == 0 {
			if errors.Is(err, io.EOF) {
				return nil, s.fault("record cut short by the end of the file")
			}
			return nil, err
		}
	}
	return s.peek(size)
}

// head reads the head of a batch.
func (s *scanner) head() error {
	s.batchPos = s.pos()
	b, err := s.peek(batchHeaderSize)
	if err != nil {
		return err
	}
	if len(b) < batchHeaderSize {
		return s.fault("batch head cut short by the end of the file")
	}
	h, ok := decodeBatchHeader(b, s.salt, s.batchPos)
	if !ok {
		return s.fault("no valid batch head")
	}
	if reason := h.check(s.next); reason != "" {
		f := s.fault(reason)
		f.written = true
		return f
	}
	switch h.kind {
	case batchMark:
		return errMark
	case batchSeal:
		return errSeal
	}
	s.batch = h
	s.left = h.records
	s.r += batchHeaderSize
	return nil
}

func (s *scanner) fault(reason string) *fault { return &fault{pos: s.pos(), reason: reason} }

// rest is what recovery finds behind the last whole batch.
type rest struct {
	// head is the position of a valid batch head, -1 when there is none.
	head int64
	// end is behind the last byte that is not zero; from when all are zero.
	end int64
}

// scanRest looks at the bytes of f from position from to the end. Heads are
// looked for behind from, not at it.
func scanRest(f vfs.File, salt uint64, from int64) (rest, error) {
	r := rest{head: -1, end: from}
	buf := make([]byte, scanChunk)
	// kept bytes of the chunk before are looked at again, so that a head that
	// straddles two chunks is seen.
	kept := 0
	for pos := from; ; {
		n, err := f.ReadAt(buf[kept:], pos+int64(kept))
		if err != nil && !errors.Is(err, io.EOF) {
			return r, err
		}
		chunk := buf[:kept+n]
		if i := lastNonZero(chunk); i >= 0 {
			r.end = max(r.end, pos+int64(i)+1)
		}
		if r.head < 0 {
			for i := 0; ; i++ {
				j := bytes.Index(chunk[i:], batchMagicBytes)
				if j < 0 {
					break
				}
				i += j
				if _, ok := decodeBatchHeader(chunk[i:], salt, pos+int64(i)); ok && pos+int64(i) > from {
					r.head = pos + int64(i)
					break
				}
			}
		}
		if err != nil {
			return r, nil
		}
		kept = min(len(chunk), batchHeaderSize-1)
		copy(buf, chunk[len(chunk)-kept:])
		pos += int64(len(chunk) - kept)
	}
}

func lastNonZero(b []byte) int {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0 {
			return i
		}
	}
	return -1
}

// blankBehind reports whether the file holds nothing but zeros from pos on.
func blankBehind(fsys vfs.FS, path string, pos int64) (bool, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return false, fmt.Errorf("open %s: %w", path, err)
	}
	defer f.Close()
	r, err := scanRest(f, 0, pos)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	return r.end == pos, nil
}
