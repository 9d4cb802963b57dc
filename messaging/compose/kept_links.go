package compose

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
)

// KeepLinks numbers the links of what a campaign is to be sent with behind those of what it was
// sent with before: a link in a message that was delivered leads where it led, whatever is sent
// later. start has the prepared contents. A fault is a [*ContentError].
func KeepLinks(v *resolver.View, start *campaigns.Start) error {
	kept := &campaigns.KeptLinks{}
	start.KeptLinks = kept
	r, ok := v.Campaigns().Run(start.ID)
	if !ok {
		return nil
	}
	kept.Counts = r.Links
	before, err := v.Campaigns().Links(start.ID)
	if err != nil {
		return err
	}
	if len(before) == 0 || (len(r.Channels) > 0) != (len(start.Channels) > 0) {
		return nil // the ids of messages of one channel, and of several, do not say the same
	}
	for i := range start.Variants {
		at := i
		if len(start.Channels) > 0 {
			at = slices.Index(r.Channels, start.Channels[i])
		}
		if at < 0 || at >= len(before) {
			continue
		}
		if err := keepLinks(&start.Variants[i], before[at]); err != nil {
			return err
		}
	}
	if len(start.Channels) == 0 && len(before) > len(start.Variants) {
		kept.More = before[len(start.Variants):]
	}
	return nil
}

var clickTags = regexp.MustCompile(`\{\{` + TagClick + `\.(\d+)\}\}`)

// keepLinks puts kept in front of the links of a content. A link that is among them keeps its
// number. The link of a push message, which no merge tag stands for, is the last.
func keepLinks(c *campaigns.Content, kept []string) error {
	if len(kept) == 0 || len(c.Links) > 0 && slices.Equal(kept, c.Links) {
		return nil
	}
	links, number, inText := slices.Clone(kept), make([]int, len(c.Links)), clickTags.MatchString(c.HTML) || clickTags.MatchString(c.Text)
	for i, link := range c.Links {
		n := slices.Index(links, link)
		if n < 0 || !inText && n != len(links)-1 {
			n, links = len(links), append(links, link)
		}
		number[i] = n
	}
	if len(links) > tracking.MaxLinks {
		return &ContentError{"", fmt.Errorf("body Input should have fewer new links: with those of the messages that were sent before, which keep leading where they lead, the campaign would have %d, at most %d are possible. Make another campaign of it", len(links), tracking.MaxLinks)}
	}
	renumber := func(text string) string {
		return clickTags.ReplaceAllStringFunc(text, func(tag string) string {
			n, err := strconv.Atoi(clickTags.FindStringSubmatch(tag)[1])
			if err != nil || n >= len(number) {
				return tag
			}
			return "{{" + TagClick + "." + strconv.Itoa(number[n]) + "}}"
		})
	}
	c.HTML, c.Text, c.Links, c.NoLinks = renumber(c.HTML), renumber(c.Text), links, len(c.Links) == 0
	return nil
}
