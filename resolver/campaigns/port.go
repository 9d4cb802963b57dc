package campaigns

import (
	"encoding/json"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// Host is what campaigns need of the rest of their account. Its methods that change
// something, [Host.Reach], [Host.MayGo] and [Host.CheckEpoch] are for commands alone: they belong to
// the record that is being applied. The others are for readers, too.
type Host interface {
	NumberSource
	Audiences
	Sets
	Profiles
	Limits
	Credits

	// TemplateUsers names what refers to a template, as refusals do; "" for nothing. The
	// account's settings do not count.
	TemplateUsers(id string) string
	// ConfirmTemplate is the id of the template that asks for confirmations of
	// subscriptions, "" for none.
	ConfirmTemplate() string
	// MayBeSender says what keeps an address from being a sender, nil for nothing.
	MayBeSender(address string) *refuse.Refusal
	// CheckEpoch refuses what is asked for under an epoch that is not the newest.
	CheckEpoch(epoch uint64) *refuse.Refusal
	// Notify queues an event that concerns no profile for the webhook endpoints that
	// subscribed to it.
	Notify(event string, data map[string]any)
}

// NumberSource gives campaigns their numbers. It never gives one twice: links and sets hold them.
type NumberSource interface {
	// NextNumber is the number of the campaign that is made next.
	NextNumber() uint32
	// TakeNumber notes that a campaign has a number: the next one has a higher one.
	TakeNumber(number uint32)
	// SaveNumbers stores the number of the campaign that is made next.
	SaveNumbers()
}

// Audiences are whom campaigns can go to. The sets of profiles must not be changed.
type Audiences interface {
	// HasList and HasSegment report whether there is one with the id.
	HasList(id string) bool
	HasSegment(id string) bool
	// ListMembers are the profiles on a list that there is.
	ListMembers(id string) *roaring.Bitmap
	// SegmentMembers are the members of a segment now. While it is being built there are
	// none yet, and building names it as refusals do; otherwise building is "".
	SegmentMembers(id string) (members *roaring.Bitmap, building string)
	// Contacts are all contacts, DeviceOwners the profiles that have a device.
	Contacts() *roaring.Bitmap
	DeviceOwners() *roaring.Bitmap
}

// Sets are the account's sets of profiles by name. Those of campaigns are stored with all
// others, and a merge of profiles does not change them.
type Sets interface {
	// Set finds a set or makes it.
	Set(name string) *profile.OrdinalSet
	// Members reads a set, which need not exist. It must not be changed.
	Members(name string) *roaring.Bitmap
	// DropSet removes a set, if there is one.
	DropSet(name string)
}

// Profiles are those whom messages go to, by ordinal.
type Profiles interface {
	// Root is the ordinal of the profile that another one is now, through merges.
	Root(ordinal uint32) uint32
	// Reach says, for each of some media, why nothing may be sent to a profile, "" for no
	// reason, and which profiles were merged into it. The latter hold until the next call.
	Reach(ordinal uint32, media []string) (reasons []string, merged []profile.MergedProfile)
	// NoteOutcome notes that the record is the outcome of a message to a profile, which may
	// be erased. The ordinal need not be one.
	NoteOutcome(ordinal uint32)
	// Record records on a profile what became of a message to it.
	Record(r Report)
}

// Report is the outcome of a campaign's message, for the profile that it went to.
type Report struct {
	Ordinal uint32
	Medium  string
	// Result is [ResultSent] or [ResultBounced]; every other one is a failure. Reason
	// says why, of a message that was not sent.
	Result, Reason string
	// Properties are what the event has of the campaign.
	Properties map[string]any
	// Retired are addresses of the profile's devices that are dead.
	Retired []string
	// InApp is the in-app message, a card.Card as JSON. Campaign, Recipient and Variant say which
	// one it is; Recipient is the ordinal that it was claimed for.
	InApp     json.RawMessage
	Campaign  *Campaign
	Recipient uint32
	Variant   int
}

// Limits are the sending limits of the account, and the clocks of its people.
type Limits interface {
	// MayGo judges a message of the campaign with a number to a profile that can be reached:
	// untilMs is when it is to be judged again, Unix ms, and reason why it is not sent. It is
	// to go out now where they are 0 and "".
	MayGo(ordinal uint32, medium string, number uint32) (untilMs int64, reason string)
	// Count notes that a message was claimed, Uncount that it has not gone out after all.
	Count(ordinal uint32, medium string, number uint32)
	Uncount(ordinal uint32, number uint32)
	// Local is the first instant at which a profile's clocks show a time, which is in Unix
	// ms as if it was of UTC. AccountLocal is by the account's clocks.
	Local(ordinal uint32, wallMs int64) int64
	AccountLocal(wallMs int64) int64
}

// Credits are what e-mails cost: one each.
type Credits interface {
	// EmailCredits is how many e-mails may still be sent.
	EmailCredits() int64
	// SpendCredits takes n of them; it takes none when there are not enough.
	SpendCredits(n int64)
	// GiveBack returns the credits of n messages that no relay has taken. Messages on
	// media other than e-mail cost none.
	GiveBack(medium string, n uint64)
}
