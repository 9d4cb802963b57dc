package messaging

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver/campaigns"
)

// textLinks finds merge tags, which stay as they are, and links, which may have tags behind
// their host.
var textLinks = regexp.MustCompile(`\{\{[^{}]*\}\}|(?i:https?)://[^\s<>"'{}]+(?:\{\{[^{}]*\}\}[^\s<>"'{}]*)*`)

// takeTextLinks puts merge tags in place of the links of a text, so that clicks can be
// recorded. A link whose host is a merge tag could lead anywhere, and one that is too long
// for a link of ours is left alone, too.
func takeTextLinks(c campaigns.Content) (campaigns.Content, error) {
	tooMany := false
	c.Text = textLinks.ReplaceAllStringFunc(c.Text, func(found string) string {
		if strings.HasPrefix(found, "{{") {
			return found
		}
		link := withoutPunctuation(found)
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
		return "{{" + tagClick + "." + strconv.Itoa(n) + "}}" + found[len(link):]
	})
	if tooMany {
		return c, &ContentError{"body", fault("Input should have at most " + strconv.Itoa(tracking.MaxLinks) + " different links where track_links counts them")}
	}
	return c, nil
}

// withoutPunctuation is a link without what ends the sentence that it stands in.
func withoutPunctuation(link string) string {
	for {
		last := link[len(link)-1]
		switch {
		case strings.IndexByte(".,;:!?", last) >= 0:
		case last == ')' && strings.Count(link, "(") < strings.Count(link, ")"):
		case last == ']' && strings.Count(link, "[") < strings.Count(link, "]"):
		default:
			return link
		}
		link = link[:len(link)-1]
	}
}
