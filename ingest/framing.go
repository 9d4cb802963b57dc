package ingest

import "errors"

// framing follows the requests of one connection as their bytes come, and knows
// where one ends and the next begins. It refuses what RFC 9112 does not allow, and
// what two readers of a request could understand differently: that is how a request
// is smuggled past a proxy. The HTTP library is more lenient; it sees only what
// framing lets through. The zero value is the beginning of a connection.
type framing struct {
	state   frameState
	kind    fieldKind // of the field being read
	trailer bool      // the field stands behind a chunked body

	http10                 bool
	hosts, lengths, chunks uint8 // fields of these names in the head, at most 2

	begun, ended bool  // the field's value has begun; it has ended but for spaces
	digits       int   // bytes of the name, number or fixed text read so far
	left         int64 // bytes to come: of the body or chunk; while it is read, the number
	extensions   int   // bytes of chunk extensions of this body

	name      [len("transfer-encoding")]byte // of the field, in lower case
	target    [64]byte                       // the beginning of the request's target
	targetLen int
}

type frameState uint8

const (
	frameStart     frameState = iota // a request may begin, or one empty line
	frameBlank                       // the LF of that line
	frameMethod0                     // a request begins
	frameMethod                      //
	frameTarget0                     //
	frameTarget                      //
	frameVersion                     //
	frameLine                        // the LF of the request line or of a field
	frameField                       // a field or the empty line
	frameName                        //
	frameValue                       //
	frameHead                        // the LF of the empty line
	frameBody                        // bytes of a body
	frameChunk                       // the size of a chunk
	frameExtension                   // what may stand behind it
	frameChunkLine                   // the LF of that line
	frameChunkData                   // bytes of a chunk
	frameChunkCR                     // what ends it
	frameChunkLF                     //
)

// fieldKind tells apart the fields that say where a request ends, or for which host
// it is.
type fieldKind uint8

const (
	fieldOther fieldKind = iota
	fieldHost
	fieldLength
	fieldCoding
)

const (
	// maxSizeDigits is how many digits the size of a chunk may have.
	maxSizeDigits = 15
	// maxLength is the greatest Content-Length that is a number at all.
	maxLength = 1<<62 - 1
	// maxExtensions is how many bytes of chunk extensions a body may have. They are
	// not used. Trailers are bounded as heads are.
	maxExtensions = 4 << 10
)

// errFraming is the fault of a request's framing.
var errFraming = errors.New("the request is not valid HTTP/1.1")

// scan reads the next bytes of a connection. n is how many may be handed on: all of
// them, or those before the first that is wrong. What is handed on of a wrong head
// is no whole head.
func (f *framing) scan(p []byte) (n int, err error) {
	for i := 0; i < len(p); {
		switch f.state {
		case frameBody, frameChunkData:
			if rest := int64(len(p) - i); f.left > rest {
				f.left -= rest
				return len(p), nil
			}
			i += int(f.left)
			f.left = 0
			if f.state == frameBody {
				f.next()
			} else {
				f.state = frameChunkCR
			}
			continue
		case frameName:
			for i < len(p) && octets[p[i]]&octetName != 0 {
				if f.digits < len(f.name) {
					f.name[f.digits] = p[i] | 0x20 // letters; nothing else becomes one that matters
				}
				f.digits++
				i++
			}
		case frameValue:
			if f.kind == fieldOther {
				for i < len(p) && octets[p[i]]&octetValue != 0 {
					i++
				}
			}
		case frameTarget:
			for i < len(p) && octets[p[i]]&octetTarget != 0 {
				if f.targetLen < len(f.target) {
					f.target[f.targetLen] = p[i]
					f.targetLen++
				}
				i++
			}
		}
		if i == len(p) {
			break
		}
		if !f.step(p[i]) {
			return i, errFraming
		}
		i++
	}
	return len(p), nil
}

// next is the beginning of the next request.
func (f *framing) next() { *f = framing{} }

// path is the beginning of the path that the request asks for.
func (f *framing) path() string {
	for i, c := range f.target[:f.targetLen] {
		if c == '?' {
			return string(f.target[:i])
		}
	}
	return string(f.target[:f.targetLen])
}

// step takes one byte; false means that it may not stand here.
func (f *framing) step(c byte) bool {
	switch f.state {
	case frameStart, frameMethod0:
		switch {
		case c == '\r' && f.state == frameStart:
			f.state = frameBlank
			return true
		case octets[c]&octetName != 0:
			f.state = frameMethod
			return true
		}
		return false
	case frameBlank:
		f.state = frameMethod0
		return c == '\n'
	case frameMethod:
		if c == ' ' {
			f.state = frameTarget0
			return true
		}
		return octets[c]&octetName != 0
	case frameTarget0:
		f.state = frameTarget
		if octets[c]&octetTarget == 0 {
			return false
		}
		f.target[0], f.targetLen = c, 1
		return true
	case frameTarget:
		f.state, f.digits = frameVersion, 0
		return c == ' '
	case frameVersion:
		const version = "HTTP/1.x\r"
		if f.digits == len(version)-2 {
			f.http10 = c == '0'
			f.digits++
			return c == '0' || c == '1'
		}
		if c != version[f.digits] {
			return false
		}
		if f.digits++; f.digits == len(version) {
			f.state = frameLine
		}
		return true
	case frameLine:
		f.state = frameField
		return c == '\n'
	case frameField:
		if c == '\r' {
			f.state = frameHead
			return true
		}
		f.state, f.name[0], f.digits = frameName, c|0x20, 1
		return octets[c]&octetName != 0
	case frameName:
		return c == ':' && f.value()
	case frameValue:
		return f.inValue(c)
	case frameHead:
		return c == '\n' && f.headEnds()
	case frameChunk:
		return f.size(c)
	case frameExtension:
		f.extensions++
		if c == '\r' {
			f.state = frameChunkLine
			return true
		}
		return octets[c]&octetValue != 0 && f.extensions <= maxExtensions
	case frameChunkLine:
		if c != '\n' {
			return false
		}
		f.state = frameChunkData
		if f.left == 0 {
			f.state, f.trailer = frameField, true
		}
		return true
	case frameChunkCR:
		f.state = frameChunkLF
		return c == '\r'
	case frameChunkLF:
		f.state, f.left, f.digits = frameChunk, 0, 0
		return c == '\n'
	}
	return false
}

// value begins the value of the field whose name has been read.
func (f *framing) value() bool {
	name := f.name[:min(f.digits, len(f.name))]
	f.state, f.kind, f.begun, f.ended = frameValue, fieldOther, false, false
	var count *uint8
	switch {
	case f.digits > len(f.name):
	case string(name) == "host":
		f.kind, count = fieldHost, &f.hosts
	case string(name) == "content-length":
		f.kind, count = fieldLength, &f.lengths
	case string(name) == "transfer-encoding":
		f.kind, count = fieldCoding, &f.chunks
	}
	f.digits = 0
	if count == nil {
		return true
	}
	*count++
	return *count == 1 && !f.trailer
}

// inValue takes a byte of a field's value.
func (f *framing) inValue(c byte) bool {
	if c == '\r' {
		f.state = frameLine
		switch f.kind {
		case fieldLength:
			return f.begun
		case fieldCoding:
			return f.digits == len("chunked")
		}
		return true
	}
	if f.kind == fieldOther {
		return octets[c]&octetValue != 0
	}
	if c == ' ' || c == '\t' {
		f.ended = f.begun
		return true
	}
	if f.ended {
		return false
	}
	f.begun = true
	switch f.kind {
	case fieldHost:
		return octets[c]&octetHost != 0
	case fieldLength:
		if c < '0' || c > '9' || f.left > (maxLength-9)/10 {
			return false
		}
		f.left = 10*f.left + int64(c-'0')
		return true
	case fieldCoding:
		const chunked = "chunked"
		if f.digits == len(chunked) || c|0x20 != chunked[f.digits] {
			return false
		}
		f.digits++
	}
	return true
}

// headEnds reports whether a head as a whole is in order, and what follows it.
func (f *framing) headEnds() bool {
	switch {
	case f.trailer:
		f.next()
		return true
	case f.hosts == 0 && !f.http10, f.chunks == 1 && (f.lengths == 1 || f.http10):
		return false
	case f.chunks == 1:
		f.state, f.left, f.digits = frameChunk, 0, 0
	case f.left == 0:
		f.next()
	default:
		f.state = frameBody
	}
	return true
}

// size takes a byte of a chunk's size.
func (f *framing) size(c byte) bool {
	switch {
	case f.digits == 0 && (c == '\r' || c == ';'):
		return false
	case c == '\r':
		f.state = frameChunkLine
		return true
	case c == ';':
		f.state = frameExtension
		return true
	case f.digits == maxSizeDigits:
		return false
	}
	f.digits++
	digit := int64(c)
	switch {
	case c >= '0' && c <= '9':
		digit -= '0'
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		digit = digit | 0x20 - 'a' + 10
	default:
		return false
	}
	f.left = f.left<<4 | digit
	return true
}

// What a byte may stand in.
const (
	octetName   = 1 << iota // a token: a method or a field's name
	octetValue              // a field's value
	octetTarget             // a request's target
	octetHost               // the value of Host
)

var octets = func() (t [256]uint8) {
	for c := range 256 {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		if letter || among(c, "!#$%&'*+-.^_`|~") {
			t[c] |= octetName
		}
		if c == '\t' || c >= ' ' && c != 0x7f {
			t[c] |= octetValue
		}
		if c > ' ' && c != 0x7f {
			t[c] |= octetTarget
		}
		if letter || among(c, "-._~!$&'()*+,;=:%[]") {
			t[c] |= octetHost
		}
	}
	return t
}()

func among(c int, set string) bool {
	for i := range len(set) {
		if c == int(set[i]) {
			return true
		}
	}
	return false
}
