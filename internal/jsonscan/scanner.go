package jsonscan

import (
	"fmt"
	"hash/maphash"
)

// FaultKind says what cannot be kept.
type FaultKind uint8

// The kinds of faults.
const (
	// FaultNone means there is no fault.
	FaultNone FaultKind = iota
	// FaultDuplicate is a key that an object holds twice.
	FaultDuplicate
	// FaultDepth is nesting deeper than the limit.
	FaultDepth
	// FaultRange is a number beyond the range of float64.
	FaultRange
	// FaultSurrogate is an escape of one half of a surrogate pair.
	FaultSurrogate
	// FaultNUL is the escape \u0000.
	FaultNUL
	// FaultSize is a value whose canonical text is longer than the limit.
	FaultSize
)

// Fault is JSON that cannot be kept faithfully. Its slices are valid until the
// scanner's next call.
type Fault struct {
	Kind FaultKind
	// Path leads from the value scanned to the fault, such as ".items[2].price";
	// empty when the value itself is at fault. Long paths are cut.
	Path []byte
	// Key is the key of a FaultDuplicate, in canonical text, cut when long.
	Key []byte
}

// SyntaxError says why and where a text is not JSON.
type SyntaxError struct {
	// Offset is the byte position in the source, from 0.
	Offset int
	// Reason says what was expected or found.
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("not valid JSON at byte %d: %s", e.Offset, e.Reason)
}

// Scanner reads one source at a time. Its methods take a position in the source
// and return the next one; a negative position means a [SyntaxError]. The zero
// Scanner is not usable, see [New]. A Scanner is for one goroutine.
type Scanner struct {
	src []byte
	// out collects rewritten text until DropText.
	out []byte
	// keys holds the keys of the objects that are open, outermost first.
	keys []key
	// stack has one frame per container that may be open.
	stack []frame
	// bits holds one bit per container open in Skip: 1 is an array.
	bits []uint64
	// limit is the longest canonical text of a value, in bytes.
	limit int
	// table is the hash table in which the keys of a large object are compared.
	table []int32
	seed  maphash.Seed

	// text is the result of transcode.
	text  []byte
	fault Fault
	path  []byte
	name  []byte
	err   SyntaxError
	bad   bool
}

// frame is an open container.
type frame struct {
	bloom uint64 // of the keys' fingerprints
	first int32  // index of the first key in keys
	index int32  // index of the current element; -1 in an object
}

// New returns a scanner whose values nest at most maxDepth levels (at least 1)
// and have canonical texts of at most maxBytes bytes.
func New(maxDepth, maxBytes int) *Scanner {
	return &Scanner{stack: make([]frame, max(maxDepth, 1)), limit: maxBytes, seed: maphash.MakeSeed()}
}

// Reset starts on a new source, of less than 1 GiB. The source must not change
// while texts are in use.
func (s *Scanner) Reset(src []byte) {
	s.src = src
	s.bad = false
	s.DropText()
	s.ClearFault()
}

// DropText ends the use of all texts answered so far: their memory is used
// again.
func (s *Scanner) DropText() { s.out = s.out[:0] }

// Shrink frees scratch memory beyond about limit bytes. The source is let go.
func (s *Scanner) Shrink(limit int) {
	s.src, s.text = nil, nil
	if cap(s.out) > limit {
		s.out = nil
	}
	if cap(s.keys)*keySize > limit {
		s.keys = nil
	}
	if cap(s.table)*4 > limit {
		s.table = nil
	}
	if cap(s.bits)*8 > limit {
		s.bits = nil
	}
}

// Fault is the first fault since the last ClearFault.
func (s *Scanner) Fault() *Fault { return &s.fault }

// HasFault reports whether there is a fault.
func (s *Scanner) HasFault() bool { return s.fault.Kind != FaultNone }

// ClearFault removes the fault.
func (s *Scanner) ClearFault() { s.fault = Fault{} }

// Err is the syntax error behind a negative position. It is valid until Reset.
func (s *Scanner) Err() *SyntaxError { return &s.err }

// Byte is the byte at position i, 0 at the end.
func (s *Scanner) Byte(i int) byte {
	if uint(i) < uint(len(s.src)) {
		return s.src[i]
	}
	return 0
}

// Source is the text from position i up to j.
func (s *Scanner) Source(i, j int) []byte { return s.src[i:j:j] }

// Space returns the position of the first byte from i on that is no white
// space.
func (s *Scanner) Space(i int) int {
	for uint(i) < uint(len(s.src)) && isSpace(s.src[i]) {
		i++
	}
	return i
}

// More continues behind an element or member that ended at i: to the next one, or
// behind the closing bracket or brace, and then more is false.
func (s *Scanner) More(i int, closing byte) (next int, more bool) {
	if src := s.src; i+1 < len(src) && src[i] == ',' && src[i+1] > ' ' {
		return i + 1, true
	}
	return s.slowMore(i, closing)
}

func (s *Scanner) slowMore(i int, closing byte) (next int, more bool) {
	i = s.Space(i)
	switch s.Byte(i) {
	case ',':
		return s.Space(i + 1), true
	case closing:
		return i + 1, false
	}
	if closing == ']' {
		return s.Fail(i, "expected a comma or a closing bracket"), false
	}
	return s.Fail(i, "expected a comma or a closing brace"), false
}

// End checks that only white space follows position i.
func (s *Scanner) End(i int) int {
	i = s.Space(i)
	if i < len(s.src) {
		return s.Fail(i, "unexpected text behind the value")
	}
	return i
}

// Fail reports a syntax error at position i and returns the negative position.
func (s *Scanner) Fail(i int, reason string) int {
	if i >= len(s.src) {
		i, reason = len(s.src), "the text ends too early"
	}
	s.err = SyntaxError{Offset: i, Reason: reason}
	s.bad = true
	return -1
}

func isSpace(c byte) bool {
	return c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t')
}
