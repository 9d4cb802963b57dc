package identifier

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/identity"
)

// Placeholders answer whether a value is a placeholder without allocating. They have scratch
// memory: no two calls of Has at once.
type Placeholders struct {
	values  map[string]struct{}
	longest int
	// lengths has a bit for the length of each value, 63 for all that are longer:
	// most identifiers are as long as no placeholder.
	lengths uint64
	buf     []byte
}

// NewPlaceholders returns those of an account's settings.
func NewPlaceholders(values []string) Placeholders {
	p := Placeholders{values: make(map[string]struct{}, len(values))}
	for _, v := range values {
		v = strings.ToLower(strings.TrimSpace(v))
		p.values[v] = struct{}{}
		p.longest = max(p.longest, len(v))
		p.lengths |= 1 << min(len(v), 63)
	}
	return p
}

// Has reports whether a value is one of them.
func (p *Placeholders) Has(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	if len(raw) > p.longest {
		return false
	}
	// Only letters beyond ASCII change their length in lower case.
	if p.lengths>>min(len(raw), 63)&1 == 0 && identity.IsASCII(raw) {
		return false
	}
	p.buf = p.buf[:0]
	for _, c := range raw {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		} else if c >= utf8.RuneSelf {
			_, ok := p.values[string(bytes.ToLower(raw))]
			return ok
		}
		p.buf = append(p.buf, c)
	}
	_, ok := p.values[string(p.buf)]
	return ok
}
