package tracking

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/html"
)

// Bounds of Rewrite.
const (
	// MaxHTMLBytes bounds a body.
	MaxHTMLBytes = 2 << 20
	// MaxLinks bounds the different URLs of a body.
	MaxLinks = 1000
	// MaxLinkBytes bounds a URL; longer ones are left as they are.
	MaxLinkBytes = 8 << 10
)

// ErrTooLarge reports that a body exceeds a bound of Rewrite.
var ErrTooLarge = errors.New("too large to track")

// Slot is a place in a body where a recipient's own URL goes.
type Slot struct {
	Kind Kind   // Open or Click
	Link uint16 // index in the link table, for Click

	from, to int // the bytes of the body it stands for
}

// Rewritten is a body in parts with a slot between any two. Merge tags are still
// in the parts and never reach over a slot. It does not change and may be used
// concurrently.
type Rewritten struct {
	parts []string // one more than slots
	slots []Slot
}

// Slots is the number of slots.
func (r Rewritten) Slots() int { return len(r.slots) }

// Slot returns slot i, which stands between part i and part i+1.
func (r Rewritten) Slot(i int) Slot { return r.slots[i] }

// Append joins the body for one recipient. url appends what belongs into a slot:
// a URL that needs no escaping within double quotes, as AppendURL makes it.
func (r Rewritten) Append(dst []byte, url func(dst []byte, s Slot) []byte) []byte {
	for i, p := range r.parts {
		dst = append(dst, p...)
		if i < len(r.slots) {
			dst = url(dst, r.slots[i])
		}
	}
	return dst
}

// Template joins the body with a text for each slot, for those whose merge tags are
// compiled on the whole: mark may return a merge tag.
func (r Rewritten) Template(mark func(Slot) string) string {
	return string(r.Append(nil, func(dst []byte, s Slot) []byte { return append(dst, mark(s)...) }))
}

// Rewrite takes the links and the place of the pixel out of an HTML body. links is
// the link table: Slot.Link is the index of a URL, in order of first occurrence, the same
// URL once. URLs are as a browser would read them, merge tags in place.
//
// Tracked are the href of <a> and <area>, and those of VML shapes within Outlook's
// conditional comments, when scheme and host are written out: a URL whose
// beginning is a merge tag could lead anywhere (T3). Left alone are other schemes,
// relative URLs, what is marked data-muster-track="off", and whatever stands in
// comments, scripts and the like. An unsubscribe link is a merge tag in templates and
// so left alone.
//
// The pixel goes before the last </body>, else before the last </html>, else to
// the end.
func Rewrite(body string) (r Rewritten, links []string, err error) {
	if len(body) > MaxHTMLBytes {
		return r, nil, fmt.Errorf("html has %d bytes; at most %d can be tracked: %w", len(body), MaxHTMLBytes, ErrTooLarge)
	}
	w := rewriter{body: body, masked: mask(body), index: map[string]uint16{}, endBody: -1, endHTML: -1}
	w.scan(0, len(body), false)
	if w.tooMany {
		return r, nil, fmt.Errorf("html has more than %d different links; mark some with data-muster-track=\"off\": %w", MaxLinks, ErrTooLarge)
	}
	pixelAt := len(body)
	if w.endBody >= 0 {
		pixelAt = w.endBody
	} else if w.endHTML >= 0 {
		pixelAt = w.endHTML
	}

	var part strings.Builder
	at := 0
	end := func(s Slot) {
		r.parts = append(r.parts, part.String())
		r.slots = append(r.slots, s)
		part.Reset()
	}
	addPixel := func() {
		part.WriteString(body[at:pixelAt])
		part.WriteString(pixelBefore)
		end(Slot{Kind: Open, from: pixelAt, to: pixelAt})
		part.WriteString(pixelAfter)
		at, pixelAt = pixelAt, -1
	}
	for _, f := range w.found {
		if pixelAt >= 0 && f.from >= pixelAt {
			addPixel()
		}
		part.WriteString(body[at:f.from])
		if !f.quoted {
			part.WriteByte('"')
		}
		end(f.Slot)
		if !f.quoted {
			part.WriteByte('"')
		}
		at = f.to
	}
	if pixelAt >= 0 {
		addPixel()
	}
	part.WriteString(body[at:])
	r.parts = append(r.parts, part.String())
	return r, w.links, nil
}

type rewriter struct {
	body, masked string

	found   []foundLink
	links   []string
	index   map[string]uint16
	tooMany bool

	endBody, endHTML int
}

type foundLink struct {
	Slot
	quoted bool
}

// scan reads the markup of body[from:to]. Positions come from adding up the length of
// each token's raw text, which leaves out nothing.
func (w *rewriter) scan(from, to int, conditional bool) {
	z := html.NewTokenizer(strings.NewReader(w.masked[from:to]))
	at := from
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return // the end; what is left is an unfinished tag and stays as it is
		}
		start := at
		at += len(z.Raw())
		switch kind {
		case html.StartTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			switch n := string(name); {
			case n == "a", n == "area", conditional && strings.HasPrefix(n, "v:"):
				w.tag(start, at)
			}
		case html.EndTagToken:
			if conditional {
				break
			}
			switch name, _ := z.TagName(); string(name) {
			case "body":
				w.endBody = start
			case "html":
				w.endHTML = start
			}
		case html.CommentToken:
			if conditional {
				break
			}
			if a, b, ok := conditionalComment(w.masked[start:at]); ok {
				w.scan(start+a, start+b, true)
			}
		}
	}
}

// conditionalComment finds the markup within <!--[if mso]>…<![endif]-->, which
// Outlook reads and others do not.
func conditionalComment(comment string) (from, to int, ok bool) {
	const begin, end = "<!--[if", "<![endif]-->"
	if len(comment) < len(begin)+len(end) || !strings.EqualFold(comment[:len(begin)], begin) ||
		!strings.EqualFold(comment[len(comment)-len(end):], end) {
		return 0, 0, false
	}
	i := strings.Index(comment, "]>")
	to = len(comment) - len(end)
	if i < 0 || i+2 > to {
		return 0, 0, false
	}
	return i + 2, to, true
}

func (w *rewriter) tag(start, end int) {
	href, track := findAttrs(w.masked[start:end])
	if !href.found || href.from == href.to {
		return
	}
	if track.found && strings.EqualFold(strings.TrimSpace(w.body[start+track.from:start+track.to]), "off") {
		return
	}
	link := decodeValue(w.body[start+href.from : start+href.to])
	if len(link) > MaxLinkBytes || !fixedHost(link) {
		return
	}
	i, known := w.index[link]
	if !known {
		if len(w.links) == MaxLinks {
			w.tooMany = true
			return
		}
		i = uint16(len(w.links))
		w.index[link] = i
		w.links = append(w.links, link)
	}
	w.found = append(w.found, foundLink{Slot{Kind: Click, Link: i, from: start + href.from, to: start + href.to}, href.quoted})
}
