package compose

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/view"
)

// SealSend makes the id of a message one that cannot be guessed: what its kind
// leaves free of it is a seal under the account's key. Messages are numbered, so
// one number would be enough to unsubscribe others by mail.
func SealSend(key tracking.Key, id messages.ID) messages.ID {
	from := id.Seal()
	h := hmac.New(sha256.New, key[:])
	h.Write([]byte("send\x00"))
	h.Write(id[:from])
	copy(id[from:], h.Sum(nil))
	return id
}

// Sealed reports whether an id is one that [SealSend] made.
func Sealed(key tracking.Key, id messages.ID) bool {
	want := SealSend(key, id)
	return hmac.Equal(want[:], id[:])
}

// AccountKey is the key of an account's links and ids.
func AccountKey(v *resolver.View, account uint64) (tracking.Key, error) {
	return tracking.DeriveKey(v.Secret(), account)
}

// ParseMessageID reads the message's id out of a Message-ID of ours.
func ParseMessageID(s string) (account uint64, send messages.ID, ok bool) {
	left, _, found := strings.Cut(s, "@")
	if !found {
		return 0, send, false
	}
	number, id, found := strings.Cut(left, ".")
	if !found {
		return 0, send, false
	}
	return ParseSend(number + "-" + id)
}

// ParseAddressID reads a message's id as it stands in an address, behind a plus
// sign: the short form has no account, which is then the given one.
func ParseAddressID(s string, account uint64) (uint64, messages.ID, bool) {
	if len(s) == 2*len(messages.ID{}) {
		s = strings.Join([]string{pad16(account), s}, "-")
	}
	return ParseSend(s)
}

func pad16(n uint64) string {
	s := strconv.FormatUint(n, 16)
	return strings.Repeat("0", 16-len(s)) + s
}

// UnsubscribeAddress is where mail unsubscribes the recipient of a message, at a
// domain that hands such mail in.
func UnsubscribeAddress(send messages.ID, domain string) string {
	return "unsubscribe+" + hex.EncodeToString(send[:]) + "@" + domain
}

// unsubscribeChannels are what a link of a single message unsubscribes from, by the number
// in the link, in texts of before the ids in links said on which channel they were sent.
var unsubscribeChannels = [...]string{1: mediumSMS, 2: mediumWhatsApp}

// UnsubscribeChannel is the channel that a link to unsubscribe is about.
func UnsubscribeChannel(c *tracking.Claims, sent view.Sent) string {
	if n := int(c.Link); !sent.OfCampaign && n > 0 && n < len(unsubscribeChannels) {
		return unsubscribeChannels[n]
	}
	return sent.Channel
}

// ConfirmURL is the link by which a profile confirms its subscription to e-mail at an
// address, whose [view.Profiles.EmailHash] it carries, or the submission of a form with an id.
func (l Links) ConfirmURL(ordinal uint32, address, submission string) string {
	l.Flow, l.Step = submission, address
	return l.URL(tracking.Confirm, SealSend(l.Key, messages.ProfileSend(ordinal)), 0)
}

// PreferencesURL is a link to the preference page of a profile that belongs to no message.
func (l Links) PreferencesURL(ordinal uint32) string {
	return l.URL(tracking.Preferences, SealSend(l.Key, messages.ProfileSend(ordinal)), 0)
}

// ClickLocation is where a click on a link of a message leads: the link with the
// profile's values filled in. Scheme and host are those that the author wrote.
func ClickLocation(link string, p *view.Profile) (string, error) {
	t, err := merge.Parse(link, merge.URL)
	if err != nil {
		return "", err
	}
	rendered, err := t.Render(ProfileValues(p))
	if err != nil {
		return "", err
	}
	return tracking.Location(link, rendered)
}
