package jsonscan

import "unicode/utf8"

// Skip checks the value at i for being JSON, and nothing else, and returns the
// position behind it. Faults are not looked for; one that is set stays.
func (s *Scanner) Skip(i int) int {
	fault := s.fault
	i = s.skip(i)
	s.fault = fault
	return i
}

func (s *Scanner) skip(i int) int {
	depth := 0
value:
	i = s.Space(i)
	switch c := s.Byte(i); {
	case c == '"':
		if i = s.skipText(i); i < 0 {
			return i
		}
	case c == '{':
		s.push(depth, false)
		depth++
		if i = s.Space(i + 1); s.Byte(i) == '}' {
			i++
			depth--
			break
		}
		goto member
	case c == '[':
		s.push(depth, true)
		depth++
		if i = s.Space(i + 1); s.Byte(i) == ']' {
			i++
			depth--
			break
		}
		goto value
	case c == '-' || c-'0' <= 9:
		if i = s.number(i); i < 0 {
			return i
		}
	case c == 't' || c == 'f' || c == 'n':
		if i = s.literal(i); i < 0 {
			return i
		}
	default:
		return s.Fail(i, "expected a JSON value")
	}
	for depth > 0 {
		i = s.Space(i)
		array := s.bits[(depth-1)>>6]>>((depth-1)&63)&1 == 1
		switch c := s.Byte(i); {
		case c == ',' && array:
			i++
			goto value
		case c == ',':
			i = s.Space(i + 1)
			goto member
		case c == ']' && array, c == '}' && !array:
			i++
			depth--
		case array:
			return s.Fail(i, "expected a comma or a closing bracket")
		default:
			return s.Fail(i, "expected a comma or a closing brace")
		}
	}
	return i
member:
	if s.Byte(i) != '"' {
		return s.Fail(i, "expected a key in quotation marks")
	}
	if i = s.skipText(i); i < 0 {
		return i
	}
	if i = s.Space(i); s.Byte(i) != ':' {
		return s.Fail(i, "expected a colon behind the key")
	}
	i++
	goto value
}

func (s *Scanner) push(depth int, array bool) {
	word := depth >> 6
	if word >= len(s.bits) {
		s.bits = append(s.bits, 0)
	}
	s.bits[word] &^= 1 << (depth & 63)
	if array {
		s.bits[word] |= 1 << (depth & 63)
	}
}

// skipText checks the string at i.
func (s *Scanner) skipText(i int) int {
	i++
	start := i
	var high uint64
	for {
		j, h := plain(s.src, i)
		high |= h
		if j >= len(s.src) || s.src[j] < 0x20 {
			return s.Fail(j, "a control character in a string must be escaped")
		}
		if s.src[j] == '"' {
			if high != 0 && !utf8.Valid(s.src[start:j]) {
				return s.failUTF8(start, j)
			}
			return j + 1
		}
		if _, i = s.escape(j); i < 0 {
			return i
		}
	}
}
