package jsonscan

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/clip"
)

const (
	// maxPath and maxName bound what a fault reports, in bytes.
	maxPath = 200
	maxName = 80

	failed  = -1 // a syntax error
	faulted = -2 // a fault
)

// Key reads a member's key at i and the colon behind it. It returns the key
// unescaped and the position of the member's value. With a fault (whose path is
// empty) the key is nil.
func (s *Scanner) Key(i int) ([]byte, int) {
	if src := s.src; uint(i) < uint(len(src)) && src[i] == '"' {
		// Mostly a key is plain, and nothing stands around the colon.
		j, high := plain(src, i+1)
		if j+2 < len(src) && src[j] == '"' && src[j+1] == ':' && src[j+2] > ' ' && high == 0 {
			return src[i+1 : j : j], j + 2
		}
	}
	return s.slowKey(i)
}

func (s *Scanner) slowKey(i int) ([]byte, int) {
	if s.Byte(i) != '"' {
		return nil, s.Fail(i, "expected a key in quotation marks")
	}
	name, i := s.Text(i)
	if i < 0 {
		return nil, i
	}
	if s.Byte(i) != ':' {
		if i = s.Space(i); s.Byte(i) != ':' {
			return nil, s.Fail(i, "expected a colon behind the key")
		}
	}
	return name, s.Space(i + 1)
}

// Value reads the value at i, of any type, and returns its canonical text and
// the position behind it. level is how many containers are open around it:
// together with them it may nest as deep as the scanner's limit. With a fault
// the text is nil; while an earlier fault is set, the value is only checked.
func (s *Scanner) Value(i, level int) ([]byte, int) {
	if s.HasFault() {
		return nil, s.Skip(i)
	}
	mark := len(s.out)
	next := s.transcode(i, level)
	if next == faulted {
		s.out = s.out[:mark]
		return nil, s.Skip(i)
	}
	return s.text, next
}

// transcode is the one loop behind Value. src[copied:i] is canonical text that
// is not yet in out; as long as nothing has to be rewritten, out stays as it is
// and the result is a part of src. It returns the position behind the value and
// leaves its text in s.text, or failed, or faulted.
func (s *Scanner) transcode(i, level int) int {
	var (
		src    = s.src
		start  = i
		copied = i
		mark   = len(s.out)
		depth  = 0 // open containers of this value
		limit  = len(s.stack) - level
		cur    = frame{index: 0} // the innermost open container
	)
	s.keys = s.keys[:0]

value:
	if uint(i) >= uint(len(src)) {
		return s.Fail(i, "")
	}
	switch c := src[i]; {
	case c == '"':
		j, high := plain(src, i+1)
		if uint(j) < uint(len(src)) && src[j] == '"' && high == 0 {
			i = j + 1
			break
		}
		if i, copied = s.rewrite(i+1, j, copied, high); i < 0 {
			return s.stopped(i, depth, cur)
		}
	case c-'0' <= 9 || c == '-':
		// Numbers of a few digits need no function call.
		j := i + 1
		if c != '0' && c != '-' {
			for uint(j) < uint(len(src)) && src[j]-'0' <= 9 {
				j++
			}
			if uint(j) < uint(len(src)) && j-i < 16 && (src[j] == ',' || src[j] == '}') {
				i = j
				break
			}
		}
		if i = s.number(i); i < 0 {
			return failed
		}
		if s.HasFault() {
			return s.stopped(faulted, depth, cur)
		}
	case c == '{':
		if depth >= limit {
			s.setFault(FaultDepth)
			return s.stopped(faulted, depth, cur)
		}
		s.stack[depth] = cur
		depth++
		cur = frame{first: int32(len(s.keys)), index: -1}
		i++
		if uint(i) < uint(len(src)) && src[i] == '"' {
			goto member
		}
		i, copied = s.gap(i, copied)
		if s.Byte(i) != '}' {
			goto member
		}
		i++
		depth--
		cur = s.stack[depth]
	case c == '[':
		if depth >= limit {
			s.setFault(FaultDepth)
			return s.stopped(faulted, depth, cur)
		}
		s.stack[depth] = cur
		depth++
		cur = frame{first: int32(len(s.keys))}
		i, copied = s.gap(i+1, copied)
		if s.Byte(i) != ']' {
			goto value
		}
		i++
		depth--
		cur = s.stack[depth]
	case c == 't' || c == 'f' || c == 'n':
		if i = s.literal(i); i < 0 {
			return failed
		}
	default:
		return s.Fail(i, "expected a JSON value")
	}

	for depth > 0 {
		if uint(i) >= uint(len(src)) {
			return s.Fail(i, "")
		}
		if src[i] <= ' ' {
			i, copied = s.gap(i, copied)
		}
		c := s.Byte(i)
		if c == ',' {
			i++
			if uint(i) < uint(len(src)) && src[i] <= ' ' {
				i, copied = s.gap(i, copied)
			}
			if cur.index < 0 {
				goto member
			}
			cur.index++
			goto value
		}
		if cur.index < 0 {
			if c != '}' {
				return s.Fail(i, "expected a comma or a closing brace")
			}
			if len(s.keys)-int(cur.first) > scanLimit {
				if k, ok := s.repeatedInLarge(int(cur.first)); ok {
					s.duplicate(k, int(cur.first))
					return s.stopped(faulted, depth-1, s.stack[depth-1])
				}
			}
		} else if c != ']' {
			return s.Fail(i, "expected a comma or a closing bracket")
		}
		i++
		s.keys = s.keys[:cur.first]
		depth--
		cur = s.stack[depth]
	}
	if i-start > s.limit && len(s.out)-mark+i-copied > s.limit {
		return s.stopped(s.tooLarge(), 0, cur)
	}
	if copied == start {
		s.text = src[start:i:i]
	} else {
		s.out = append(s.out, src[copied:i]...)
		s.text = s.out[mark:len(s.out):len(s.out)]
	}
	return i

member:
	{
		if uint(i) >= uint(len(src)) || src[i] != '"' {
			return s.Fail(i, "expected a key in quotation marks")
		}
		if i-start > s.limit && len(s.out)-mark+i-copied > s.limit {
			// Before more keys are kept than a value of that size can have.
			return s.stopped(s.tooLarge(), 0, cur)
		}
		var k key
		var text []byte
		j, high := plain(src, i+1)
		if uint(j) < uint(len(src)) && src[j] == '"' && high == 0 {
			text = src[i+1 : j]
			k = key{off: uint32(i + 1), n: uint32(len(text))}
			i = j + 1
		} else {
			// The key's canonical text must be in one piece: copy it whole.
			s.out = append(s.out, src[copied:i+1]...)
			at := len(s.out)
			if i, copied = s.rewrite(i+1, j, i+1, high); i < 0 {
				s.keys = s.keys[:cur.first]
				return s.stopped(i, depth-1, s.stack[depth-1])
			}
			s.out = append(s.out, src[copied:i-1]...)
			copied = i - 1
			text = s.out[at:]
			k = key{off: uint32(at) | inOut, n: uint32(len(text))}
		}
		k.print = fingerprint(text)
		bit := bloomBit(k.print)
		if cur.bloom&bit != 0 && s.repeated(int(cur.first), k) {
			s.duplicate(k, int(cur.first))
			return s.stopped(faulted, depth-1, s.stack[depth-1])
		}
		cur.bloom |= bit
		s.keys = append(s.keys, k)
		if uint(i) >= uint(len(src)) || src[i] != ':' {
			i, copied = s.gap(i, copied)
			if s.Byte(i) != ':' {
				return s.Fail(i, "expected a colon behind the key")
			}
		}
		i++
		if uint(i) < uint(len(src)) && src[i] <= ' ' {
			i, copied = s.gap(i, copied)
		}
		goto value
	}
}

// gap drops the white space at i from the canonical text.
func (s *Scanner) gap(i, copied int) (next, nowCopied int) {
	next = s.Space(i)
	if next == i {
		return i, copied
	}
	s.out = append(s.out, s.src[copied:i]...)
	return next, next
}

// rewrite continues with a string that is plain from i up to j and makes it
// canonical. It returns the position behind the closing quotation mark and the
// new copied; or failed or faulted.
func (s *Scanner) rewrite(i, j, copied int, high uint64) (next, nowCopied int) {
	src := s.src
	for {
		if j >= len(src) || src[j] < 0x20 {
			return s.Fail(j, "a control character in a string must be escaped"), 0
		}
		if src[j] == '"' {
			break
		}
		r, end := s.escape(j)
		if end < 0 {
			return failed, 0
		}
		if r < 0 {
			return faulted, 0
		}
		var buf [8]byte
		if want := appendEscaped(buf[:0], r); string(want) != string(src[j:end]) {
			s.out = append(s.out, src[copied:j]...)
			s.out = append(s.out, want...)
			copied = end
		}
		var h uint64
		j, h = plain(src, end)
		high |= h
	}
	if high != 0 && !utf8.Valid(src[i:j]) {
		return s.failUTF8(i, j), 0
	}
	return j + 1, copied
}

// duplicate sets the fault of a key that occurs twice in the object whose keys
// begin at first, and drops those: the path ends at the object.
func (s *Scanner) duplicate(k key, first int) {
	s.name = append(s.name[:0], Clip(s.keyText(k), maxName)...)
	s.keys = s.keys[:first]
	s.fault = Fault{Kind: FaultDuplicate, Key: s.name}
}

func (s *Scanner) tooLarge() int {
	s.setFault(FaultSize)
	return faulted
}

// stopped completes a fault with the path to it: through depth containers to
// the current key or index of the innermost, cur. It returns result.
func (s *Scanner) stopped(result, depth int, cur frame) int {
	if result != faulted {
		return result
	}
	// The frame of the container at a level is in the stack's place of that
	// number; the current key of an object is the last one before the keys of
	// the container inside it.
	frameAt := func(level int) frame {
		if level == depth {
			return cur
		}
		return s.stack[level]
	}
	s.path = s.path[:0]
	for level := 1; level <= depth; level++ {
		f, end := frameAt(level), len(s.keys)
		if level < depth {
			end = int(frameAt(level + 1).first)
		}
		if f.index >= 0 {
			s.path = append(s.path, '[')
			s.path = strconv.AppendInt(s.path, int64(f.index), 10)
			s.path = append(s.path, ']')
		} else if end > int(f.first) {
			s.path = append(s.path, '.')
			s.path = append(s.path, Clip(s.keyText(s.keys[end-1]), maxName)...)
		}
	}
	s.path = Clip(s.path, maxPath)
	s.fault.Path = s.path
	return result
}

// Clip returns text, cut to at most limit bytes at a character's boundary with
// an ellipsis behind it. The result never shares memory with what it changes.
func Clip(text []byte, limit int) []byte {
	if len(text) <= limit {
		return text
	}
	head := clip.Text(text, limit-len("…"))
	return append(slices.Clip(head), "…"...)
}
