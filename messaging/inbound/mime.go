package inbound

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/quotedprintable"
	"strings"
)

// Bounds of a mail's structure. What lies beyond is not looked at.
const (
	maxDepth      = 6
	maxParts      = 100
	maxFields     = 500
	maxFieldBytes = 8 << 10
)

// field is a header field: its name in lower case, its value unfolded.
type field struct{ name, value string }

type fields []field

func (f fields) get(name string) string {
	for _, x := range f {
		if x.name == name {
			return x.value
		}
	}
	return ""
}

// part is an entity. Libraries for MIME refuse a mail with a broken header line or
// boundary; bounces are broken often enough that reading what there is, is
// worth a reader of our own.
type part struct {
	header fields
	kind   string // media type in lower case; text/plain when there is none
	params map[string]string
	body   []byte // as sent
	parts  []*part
}

// parseMail reads a mail. It cannot fail.
func parseMail(raw []byte) *part {
	// A mailbox's separator line.
	if bytes.HasPrefix(raw, []byte("From ")) || bytes.HasPrefix(raw, []byte(">From ")) {
		_, raw = cutLine(raw)
	}
	budget := maxParts
	return parsePart(raw, 0, &budget)
}

func parsePart(raw []byte, depth int, budget *int) *part {
	p := &part{}
	p.header, p.body = parseHeader(raw)
	p.kind, p.params = mediaType(p.header.get("content-type"))
	if boundary := p.params["boundary"]; strings.HasPrefix(p.kind, "multipart/") && boundary != "" && depth < maxDepth {
		for _, b := range splitParts(p.body, boundary, budget) {
			p.parts = append(p.parts, parsePart(b, depth+1, budget))
		}
	}
	return p
}

// parseHeader reads fields up to an empty line. Lines that are no fields are left out.
func parseHeader(raw []byte) (fields, []byte) {
	var out fields
	var value []byte // of the last field in out, until it is complete
	finish := func() {
		if len(out) > 0 {
			out[len(out)-1].value = string(bytes.TrimSpace(value))
		}
	}
	skipped := false // the last field was left out, and so are its further lines
	for len(raw) > 0 {
		ln, rest := cutLine(raw)
		raw = rest
		if len(ln) == 0 {
			break
		}
		if ln[0] == ' ' || ln[0] == '\t' {
			if ln = bytes.TrimSpace(ln); len(out) > 0 && !skipped && len(value)+len(ln) < maxFieldBytes {
				value = append(append(value, ' '), ln...)
			}
			continue
		}
		name, v, ok := bytes.Cut(ln, []byte{':'})
		name = bytes.TrimSpace(name)
		skipped = !ok || len(name) == 0 || len(name) > 100 || bytes.ContainsAny(name, " \t") || len(out) >= maxFields
		if skipped {
			continue
		}
		finish()
		value = append(value[:0], v[:min(len(v), maxFieldBytes)]...)
		out = append(out, field{name: strings.ToLower(string(name))})
	}
	finish()
	return out, raw
}

// cutLine cuts after the first line break; the line comes without it.
func cutLine(raw []byte) (ln, rest []byte) {
	ln, rest, _ = bytes.Cut(raw, []byte{'\n'})
	return bytes.TrimSuffix(ln, []byte{'\r'}), rest
}

func mediaType(text string) (string, map[string]string) {
	if text == "" {
		return "text/plain", nil
	}
	kind, params, err := mime.ParseMediaType(text)
	if err == nil {
		return kind, params
	}
	// A broken parameter must not hide the boundary.
	kind, rest, _ := strings.Cut(text, ";")
	params = map[string]string{}
	for _, name := range []string{"boundary", "report-type", "charset"} {
		if i := indexFold(rest, name+"="); i >= 0 {
			v := rest[i+len(name)+1:]
			if strings.HasPrefix(v, `"`) {
				v, _, _ = strings.Cut(v[1:], `"`)
			} else if j := strings.IndexAny(v, "; \t"); j >= 0 {
				v = v[:j]
			}
			params[name] = v
		}
	}
	return strings.ToLower(strings.TrimSpace(kind)), params
}

// indexFold is strings.Index that takes capitals of ASCII for small letters. Lowering
// the text first would move its bytes where they are no UTF-8.
func indexFold(text, want string) int {
	for i := 0; i+len(want) <= len(text); i++ {
		if strings.EqualFold(text[i:i+len(want)], want) {
			return i
		}
	}
	return -1
}

// splitParts finds the parts between boundary lines. A last part without a closing
// line counts.
func splitParts(body []byte, boundary string, budget *int) [][]byte {
	if len(boundary) > 200 {
		return nil
	}
	mark := []byte("--" + boundary)
	var out [][]byte
	start := -1
	for at := 0; at < len(body); {
		end := bytes.IndexByte(body[at:], '\n')
		next := len(body)
		if end >= 0 {
			next = at + end + 1
		}
		ln := bytes.TrimRight(body[at:next], " \t\r\n")
		if bytes.HasPrefix(ln, mark) {
			tail := ln[len(mark):]
			if closing := bytes.Equal(tail, []byte("--")); len(tail) == 0 || closing {
				if start >= 0 {
					out = append(out, body[start:at])
				}
				start = next
				if closing {
					return out
				}
				if *budget--; *budget < 0 {
					return out
				}
			}
		}
		at = next
	}
	if start >= 0 && start < len(body) {
		out = append(out, body[start:])
	}
	return out
}

// text decodes the transfer encoding as far as it can be decoded.
func (p *part) text() []byte {
	switch strings.ToLower(strings.TrimSpace(p.header.get("content-transfer-encoding"))) {
	case "base64":
		clean := bytes.Map(func(r rune) rune {
			if r <= ' ' {
				return -1
			}
			return r
		}, p.body)
		out := make([]byte, base64.StdEncoding.DecodedLen(len(clean)))
		n, _ := base64.StdEncoding.Decode(out, clean)
		return out[:n]
	case "quoted-printable":
		out, err := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(p.body)))
		if err != nil && len(out) == 0 {
			return p.body
		}
		return out
	}
	return p.body
}

// find returns the first part of one of the types, not looking into attached mails.
func (p *part) find(kinds ...string) *part {
	for _, k := range kinds {
		if p.kind == k {
			return p
		}
	}
	for _, c := range p.parts {
		if f := c.find(kinds...); f != nil {
			return f
		}
	}
	return nil
}

// original returns the header of the mail that a report quotes.
func (p *part) original() fields {
	o := p.find("message/rfc822", "message/global", "text/rfc822-headers", "message/global-headers", "text/rfc822-header")
	if o == nil {
		return nil
	}
	h, _ := parseHeader(bytes.TrimLeft(o.text(), "\r\n"))
	return h
}

// groups reads the blocks of fields of a machine-readable report.
func groups(body []byte) []fields {
	var out []fields
	for len(body) > 0 && len(out) < maxParts {
		body = bytes.TrimLeft(body, "\r\n")
		var g fields
		g, body = parseHeader(body)
		if len(g) > 0 {
			out = append(out, g)
		}
	}
	return out
}
