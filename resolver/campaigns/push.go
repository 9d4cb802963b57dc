package campaigns

import (
	"strings"

	"github.com/musterhq/muster/resolver/internal/refuse"
)

// PushOptions are what a push message may have beside its texts and its link.
type PushOptions struct {
	// Image is the https URL of a picture; "" for none. Apple's devices show none.
	Image string `json:"image,omitempty"`
	// Collapse names messages of which a device shows the newest alone: letters, digits, - and
	// _; "" for none.
	Collapse string `json:"collapse,omitempty"`
	// TTLSeconds is for how long the push services keep trying; 0 is as long as they can.
	TTLSeconds int `json:"ttl_seconds,omitempty"`
}

// The bounds of [PushOptions].
const (
	MaxPushTTL      = 28 * 24 * 60 * 60 // seconds
	maxPushImage    = 2048              // bytes
	maxPushCollapse = 32                // bytes
)

const collapseLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// Check says what is wrong with the options; none given are right.
func (p *PushOptions) Check() *refuse.Refusal {
	switch {
	case p == nil:
		return nil
	case len(p.Image) > maxPushImage || p.Image != "" && !strings.HasPrefix(p.Image, "https://"):
		return refuse.Invalid("image", "image Input should be an https URL of at most %d bytes", maxPushImage)
	case len(p.Collapse) > maxPushCollapse || strings.Trim(p.Collapse, collapseLetters) != "":
		return refuse.Invalid("collapse", "collapse Input should have at most %d letters, digits, - and _", maxPushCollapse)
	case p.TTLSeconds < 0 || p.TTLSeconds > MaxPushTTL:
		return refuse.Invalid("ttl_seconds", "ttl_seconds Input should be from 0 to %d, which is 28 days", MaxPushTTL)
	}
	return nil
}

// checkPush says what is wrong with the options of a push message.
func (c *Campaign) checkPush() *refuse.Refusal {
	// Requests are checked before, with the types that they know; logs have this text.
	if c.Push != nil && (c.Channel != ChannelSingle || c.Type != TypePush) {
		return refuse.Invalid("push", "push Input should be left out where channel is not 2 or type not 4: it is of push messages")
	}
	if r := c.Push.Check(); r != nil {
		return refuse.Invalid("push."+r.Field, "push.%s", r.Message)
	}
	return nil
}
