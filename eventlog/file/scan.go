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

	// The batch being read: its head's position, its head, the records left, and their
	// frames. These are in buf (inFile), in unpacked, or in memory of the sidecar.
	batchPos int64
	batch    batchHeader
	left     uint32
	frames   []byte
	inFile   bool
	unpacked []byte
	// size is the length of the newest record with its frame.
	size int

	// redacted is what of the segment was redacted, as far as it is known. What does not fit
	// is looked up again with the first of these functions, which the second ends; both are
	// nil where nothing can have been redacted since. pending says that what is replaced may
	// not be overwritten yet.
	redacted sidecar
	lookUp   func() (list sidecar, pending bool, err error)
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
	*s = scanner{file: f, salt: salt, limit: math.MaxInt64, next: offset, buf: s.buf, unpacked: s.unpacked, composed: s.composed, at: pos, batchPos: pos}
}

// knows makes the scanner read by a sidecar that does not change meanwhile.
func (s *scanner) knows(list sidecar, pending bool) {
	s.redacted = list
	s.lookUp, s.endLook = func() (sidecar, bool, error) { return list, pending, nil }, func() {}
}

// pos is the byte position of what is read next: a head, a record, or the batch that it is
// packed in.
func (s *scanner) pos() int64 {
	switch {
	case s.left == 0:
		return s.at + int64(s.r)
	case s.inFile:
		return s.at + int64(s.r-len(s.frames))
	}
	return s.batchPos + batchHeaderSize
}

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
		if err := s.load(); err != nil {
			return nil, err
		}
	}
	return s.recordOf()
}

// recordOf returns the next record of the batch that is loaded.
func (s *scanner) recordOf() ([]byte, error) {
	data, reason := s.frame()
	if reason != "" && s.inFile {
		// It may have been redacted before, or in the middle of the batch.
		if err := s.lookAgain(reason); err != nil {
			return nil, err
		}
		data, reason = s.frame()
	}
	if reason != "" {
		bad := s.fault(reason)
		bad.written = !s.inFile
		return nil, bad
	}
	s.frames = s.frames[s.size:]
	s.left--
	s.next++
	return data, nil
}

// frame returns the next record of the batch and notes its size, or why there is none. Its
// length is covered by a checksum at its far end: it is believed as far as the checked head
// of the batch goes.
func (s *scanner) frame() (data []byte, reason string) {
	b := s.frames
	if len(b) < frameOverhead || isBatchHead(b) {
		return nil, "record has a bad length"
	}
	offset, size := frameHead(b)
	tail := int64(s.left-1) * frameOverhead
	if int64(size)+tail > int64(len(b)) || s.left == 1 && size != len(b) {
		return nil, "record has a bad length"
	}
	data, ok := s.content(b[:size])
	if !ok {
		return nil, "checksum of the record does not match"
	}
	if offset != s.next {
		return nil, fmt.Sprintf("record has offset %d, expected %d", offset, s.next)
	}
	s.size = size
	return data, ""
}

// content is the record in a frame, with what was redacted left out.
func (s *scanner) content(frame []byte) (data []byte, ok bool) {
	end := len(frame) - 4
	data = frame[frameHeadSize:end:end]
	if r := s.redacted.records[s.next]; r != nil {
		s.composed, ok = r.compose(s.composed[:0], data)
		return s.composed, ok
	}
	return data, le32(frame[end:]) == checksum(frame[:end])
}

// load makes the records of the batch ready whose head was read.
func (s *scanner) load() error {
	b, err := s.peekBody(int(s.batch.body))
	if err != nil {
		return err
	}
	s.r += len(b)
	s.left, s.inFile = s.batch.records, s.batch.kind == batchRecords
	if s.inFile {
		s.frames = b
	}
	// What is known may have been replaced since: then what is left of the batch says so.
	if x := s.redacted.batches[s.batch.first]; x != nil && (tombstoneOf(b) == x.sum() || !isTombstone(b)) {
		return s.replaced(x)
	}
	if s.inFile {
		return nil
	}
	records, reason := unpack(s.unpacked, b, int(s.batch.unpacked))
	switch {
	case isTombstone(b):
		return s.lookAgain(lostSidecar)
	case reason == badBatch:
		return s.lookAgain(reason)
	case reason != "":
		bad := s.fault(reason)
		bad.written = true
		return bad
	}
	s.frames, s.unpacked = records, records
	return nil
}

// lostSidecar is why bytes that were redacted cannot be read without what replaces them.
const lostSidecar = "bytes of the record were redacted, and the file beside it that holds what is left (redacted) is missing or does not name the record; put it back"

// otherSidecar is why they cannot be read by an older or a newer one: in that, bytes that were
// redacted since may stand again.
const otherSidecar = "bytes of the record were redacted, and the file beside it that holds what is left (redacted) is not the one that was made then; put that one back"

// lookAgain looks for what is to be read in the place of bytes that do not fit for the reason:
// of the batch, or of the record that is next. Without any it returns the fault, but for a record
// that the sidecar names, which the caller tries again.
func (s *scanner) lookAgain(reason string) error {
	bad := s.fault(reason)
	if s.lookUp == nil {
		return bad
	}
	list, pending, err := s.lookUp()
	defer s.endLook()
	if err != nil {
		return err
	}
	s.redacted = list
	if x := list.batches[s.batch.first]; x != nil {
		if !pending {
			if another, err := s.namesAnother(x); err != nil {
				return err
			} else if another {
				bad.reason, bad.written = otherSidecar, true
				return bad
			}
		}
		return s.replaced(x)
	}
	if s.inFile && list.records[s.next] != nil {
		return nil
	}
	if s.inFile && s.markedRedacted() {
		bad.reason = lostSidecar
	}
	return bad
}

// namesAnother reports whether what is left of the batch in the file says that something else
// replaces it. What was read of it before may be older.
func (s *scanner) namesAnother(x *replaced) (bool, error) {
	b := make([]byte, s.batch.body)
	if n, err := s.file.ReadAt(b, s.batchPos+batchHeaderSize); n < len(b) {
		return false, err
	}
	return isTombstone(b) && tombstoneOf(b) != x.sum(), nil
}

// markedRedacted reports whether bytes of the record, or of the batch from it on, were
// redacted by what stands behind them.
func (s *scanner) markedRedacted() bool {
	if isTombstone(s.frames) {
		return true
	}
	if len(s.frames) < frameOverhead {
		return false
	}
	_, size := frameHead(s.frames)
	if size > len(s.frames) {
		return false
	}
	return le32(s.frames[size-4:]) == checksum(s.frames[:size-4])^redactedMask
}

// replaced makes the scanner read the rest of the batch from the sidecar.
func (s *scanner) replaced(x *replaced) error {
	done := s.batch.records - s.left
	records, reason := unpack(s.unpacked, x.packed, int(x.unpacked))
	if reason == "" && x.records != s.batch.records {
		reason = fmt.Sprintf("it has %d records of the batch, which has %d", x.records, s.batch.records)
	}
	for i := uint32(0); i < done && reason == ""; i++ {
		if len(records) >= frameOverhead {
			_, size := frameHead(records)
			records = records[min(size, len(records)):]
		}
	}
	if reason != "" {
		bad := s.fault("in the file beside it (" + redactedSuffix + "): " + reason)
		bad.written = true
		return bad
	}
	s.unpacked, s.frames, s.inFile = records, records, false
	return nil
}

// peekBody is peek for the whole body of a batch. It looks whether the file is that long
// before it makes room.
func (s *scanner) peekBody(size int) ([]byte, error) {
	const short = "batch cut short by the end of the file"
	if size > len(s.buf) {
		var last [1]byte
		end := s.pos() + int64(size)
		if end > s.limit {
			return nil, s.fault(short)
		}
		if n, err := s.file.ReadAt(last[:], end-1); n == 0 {
			if errors.Is(err, io.EOF) {
				return nil, s.fault(short)
			}
			return nil, err
		}
	}
	b, err := s.peek(size)
	if err == nil && len(b) < size {
		return nil, s.fault(short)
	}
	return b, err
}

// skip passes over the batch whose head was read.
func (s *scanner) skip() {
	s.next += int64(s.batch.records)
	if s.r += int(s.batch.body); s.r > s.w {
		s.at += int64(s.r)
		s.r, s.w = 0, 0
	}
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
