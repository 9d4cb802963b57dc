package compose

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver/campaigns"
)

// textLinks finds merge tags, which stay as they are, and links, which may have tags behind
// their host. White space, quotation marks, an ellipsis, dashes and the punctuation of Chinese
// and Japanese end a link: in an address such characters are encoded.
var textLinks = regexp.MustCompile(`\{\{[^{}]*\}\}|(?i:https?)://` + inLink + `+(?:\{\{[^{}]*\}\}` + inLink + `*)*`)

const inLink = `[^\s<>"'{}\x{A0}«»\x{2000}-\x{206F}\x{3000}-\x{303F}\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF20}]`

// nextLink finds where another link begins behind a separator.
var nextLink = regexp.MustCompile(`(?i)[,;|]https?://`)

// TakeTextLinks puts merge tags in place of the links of a text, so that clicks can be
// recorded. A link whose host is a merge tag could lead anywhere, and one that is too long
// for a link of ours is left alone, too.
func TakeTextLinks(c campaigns.Content) (campaigns.Content, error) {
	tooMany := false
	replace := func(before byte, found string) string {
		link := withoutPunctuation(before, found)
		if strings.HasSuffix(link, "//") || len(link) > tracking.MaxLinkBytes {
			return found
		}
		n := slices.Index(c.Links, link)
		if n < 0 {
			if n = len(c.Links); n == tracking.MaxLinks {
				tooMany = true
				return found
			}
			c.Links = append(c.Links, link)
		}
		return "{{" + TagClick + "." + strconv.Itoa(n) + "}}" + found[len(link):]
	}
	var out strings.Builder
	before := byte(0) // what stands in front of rest
	for rest := c.Text; rest != ""; {
		at := textLinks.FindStringIndex(rest)
		if at == nil {
			out.WriteString(rest)
			break
		}
		if at[0] > 0 {
			before = rest[at[0]-1]
		}
		found := rest[at[0]:at[1]]
		if next := nextLink.FindStringIndex(found); next != nil {
			found = found[:next[0]]
		}
		out.WriteString(rest[:at[0]])
		if strings.HasPrefix(found, "{{") {
			out.WriteString(found)
		} else {
			out.WriteString(replace(before, found))
		}
		rest, before = rest[at[0]+len(found):], found[len(found)-1]
	}
	c.Text = out.String()
	if tooMany {
		return c, &ContentError{"body", fault("Input should have at most " + strconv.Itoa(tracking.MaxLinks) + " different links where track_links counts them")}
	}
	return c, nil
}

// withoutPunctuation is a link without what ends the sentence that it stands in, or the marks
// for bold, italics and struck-out text that WhatsApp has; before is what stands in front of it.
func withoutPunctuation(before byte, link string) string {
	for {
		last := link[len(link)-1]
		switch {
		case strings.IndexByte(".,;:!?", last) >= 0:
		case last == ')' && strings.Count(link, "(") < strings.Count(link, ")"):
		case last == ']' && strings.Count(link, "[") < strings.Count(link, "]"):
		case last == before && strings.IndexByte("*_~", last) >= 0:
			before = 0 // one mark closes one
		default:
			return link
		}
		link = link[:len(link)-1]
	}
}
