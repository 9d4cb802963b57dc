package ingest

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// textLongHead answers a request whose head is over the limit, wherever that is
// found.
const textLongHead = "the head of the request is too long; send fewer or shorter headers"

// headBytes is how long the head of a request is, written as nodes write it to each
// other: a space behind each name and cookie, lines that end with two bytes. No
// node could hand on what is within a limit otherwise.
func headBytes(h *fasthttp.RequestHeader) int {
	n := len(h.Method()) + len(h.RequestURI()) + len(h.Protocol()) + len("  \r\n")
	rest := h.RawHeaders()
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
		line = bytes.TrimSuffix(line, []byte{'\r'})
		n += len(line) + len("\r\n")
		name, value, ok := bytes.Cut(line, []byte{':'})
		if !ok {
			continue
		}
		n += unspaced(value)
		if equalFold(name, "cookie") {
			for more := true; more; {
				if _, value, more = bytes.Cut(value, []byte{';'}); more {
					n += unspaced(value)
				}
			}
		}
	}
	return n
}

// unspaced is 1 for what does not begin with a space, which it is to be given.
func unspaced(b []byte) int {
	if len(b) > 0 && b[0] == ' ' {
		return 0
	}
	return 1
}

// longHead reports whether a head is over a limit. Most are far below any, and not
// looked at: writing one out makes it three times as long at most.
func longHead(h *fasthttp.RequestHeader, limit int) bool {
	if 3*(len(h.Method())+len(h.RequestURI())+len(h.Protocol())+len("  \r\n")+len(h.RawHeaders())) <= limit {
		return false
	}
	return headBytes(h) > limit
}
