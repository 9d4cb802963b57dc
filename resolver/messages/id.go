package messages

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
)

// ID names one message to one recipient.
type ID [16]byte

// What a message belongs to, the first byte of its id.
const (
	sendOfCampaign = 1
	sendOfOutbox   = 2
	sendOfTest     = 3
	// sendOfProfile begins the ids of links that concern a profile and no message
	// on record: the confirmation of a subscription.
	sendOfProfile = 0x70
)

// TestSend is the id of a message that tests a campaign. It belongs to no recipient and
// counts for nothing.
func TestSend(random [15]byte) (id ID) {
	id[0] = sendOfTest
	copy(id[1:], random[:])
	return id
}

// IsTest reports whether the message tests a campaign.
func (id ID) IsTest() bool { return id[0] == sendOfTest }

// CampaignSend is the id of a campaign's message.
func CampaignSend(campaign, ordinal uint32, variant int) (id ID) {
	id[0] = sendOfCampaign
	binary.BigEndian.PutUint32(id[1:], campaign)
	binary.BigEndian.PutUint32(id[5:], ordinal)
	id[9] = byte(variant)
	return id
}

// Campaign returns the arguments of [CampaignSend]; ok is false for other messages.
func (id ID) Campaign() (campaign, ordinal uint32, variant int, ok bool) {
	return binary.BigEndian.Uint32(id[1:]), binary.BigEndian.Uint32(id[5:]), int(id[9] & variantMask), id[0] == sendOfCampaign
}

// The upper half of the tenth byte of a campaign's message is the medium, by its place in
// sendMedia, for the time when the campaign is not on record any more. In links of messages
// of the outbox it is the second byte.
const (
	variantMask = 0x0f
	mediumShift = 4
)

// sendMedia by their number in ids. None is 0.
var sendMedia = [...]string{"", "email", "sms", "im", "push", "whatsapp", "in_app"}

// On is the id of a message of a campaign or of the outbox with the medium it goes out on.
// Links of messages carry it.
func (id ID) On(medium string) ID {
	n := byte(max(0, slices.Index(sendMedia[:], medium)))
	if id[0] == sendOfOutbox {
		id[1] = n // numbers of items have seven bytes
	} else {
		id[9] = id[9]&variantMask | n<<mediumShift
	}
	return id
}

// Medium is the argument of [ID.On], "" for an id without.
func (id ID) Medium() string {
	n := 0
	switch id[0] {
	case sendOfCampaign:
		n = int(id[9] >> mediumShift)
	case sendOfOutbox:
		n = int(id[1])
	}
	if n < len(sendMedia) {
		return sendMedia[n]
	}
	return ""
}

// OutboxSend is the id of a message of the outbox.
func OutboxSend(origin uint64, ordinal uint32) (id ID) {
	id[0] = sendOfOutbox
	binary.BigEndian.PutUint64(id[1:], origin)
	binary.BigEndian.PutUint32(id[9:], ordinal)
	return id
}

// Outbox returns the arguments of [OutboxSend]; ok is false for other messages.
func (id ID) Outbox() (origin uint64, ordinal uint32, ok bool) {
	return binary.BigEndian.Uint64(id[1:]) & (1<<56 - 1), binary.BigEndian.Uint32(id[9:]), id[0] == sendOfOutbox
}

// ProfileSend is the id of a link that concerns a profile.
func ProfileSend(ordinal uint32) (id ID) {
	id[0] = sendOfProfile
	binary.BigEndian.PutUint32(id[1:], ordinal)
	return id
}

// Profile returns the argument of [ProfileSend]; ok is false for other ids.
func (id ID) Profile() (ordinal uint32, ok bool) {
	return binary.BigEndian.Uint32(id[1:]), id[0] == sendOfProfile
}

// Text is the id as headers, providers and clients carry it.
func (id ID) Text(account uint64) string {
	return fmt.Sprintf("%016x-%s", account, hex.EncodeToString(id[:]))
}

// Seal is where the part of an id begins that means nothing to the state: it may
// be used to make ids that cannot be guessed.
func (id ID) Seal() int {
	switch id[0] {
	case sendOfCampaign:
		return 10 // behind campaign, ordinal and variant
	case sendOfProfile:
		return 5
	}
	return 13 // behind what ids of the outbox hold
}
