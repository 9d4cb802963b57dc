package view

import (
	"encoding/hex"

	"github.com/musterhq/muster/resolver/internal/identifier"
)

// NotInConversation is why a person does not get a text by WhatsApp.
const NotInConversation = "the person has not written in the last 24 hours; only templates may be sent then"

// MayWriteFreely reports whether a text may be sent to a profile by WhatsApp, at its number, at
// an instant (Unix ms).
func (v Reach) MayWriteFreely(ordinal uint32, phone string, nowMs int64) bool {
	return v.MayWriteFreelyTo(phone, nowMs) || v.a.Conversations.ProfileOpenUntil(ordinal) > nowMs
}

// MayWriteFreelyTo reports whether a text may be sent to a number by WhatsApp at an instant (Unix
// ms): a text came from there in the 24 hours before.
func (v Reach) MayWriteFreelyTo(phone string, nowMs int64) bool {
	h, ok := v.phoneHash(phone)
	return ok && v.a.Conversations.OpenUntil(h) > nowMs
}

// ConversationNumber is what conversations.Open calls a phone number, "" for a text that is
// none.
func (v Reach) ConversationNumber(phone string) string {
	h, ok := v.phoneHash(phone)
	if !ok {
		return ""
	}
	return hex.EncodeToString(h[:])
}

func (v *base) phoneHash(phone string) (h identifier.Hash, ok bool) {
	var buf []byte
	return v.a.Profiles.Hasher.HashIdentifier(identifier.Phone, []byte(phone), &buf)
}
