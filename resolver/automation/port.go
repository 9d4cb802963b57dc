package automation

import (
	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine"
)

// Port is what the flows of one account need of the rest of the account, and of the record
// that is being applied. A failure of the store is no error here: the port panics, and the
// machine names the record.
type Port interface {
	Profiles
	Segments
	Outbox
	// World is what definitions may refer to.
	World() flows.World
	// Rules is the version of the state machine's rules under which the record is applied, 0
	// before [state.RulesNoted].
	Rules() int
	// Scrub has an entity's key removed from older files, too: it names an erased profile.
	Scrub(key string)
}

// Profiles are the profiles of the account, by ordinal.
type Profiles interface {
	// ProfileCount is how many were made: all ordinals are below.
	ProfileCount() uint32
	// ProfileID is the id of an ordinal, also of one that is a part of another.
	ProfileID(o uint32) profile.ID
	// Root is the profile of which an ordinal is a part after merges.
	Root(o uint32) uint32
	// Erased reports whether nothing is left of a profile.
	Erased(o uint32) bool
	// Named finds the profile of the first identifier that is on file, for a call.
	Named(email, externalID, phone string) (o uint32, refusal *refuse.Refusal)
	// Load reads a profile's document into scratch memory of the record, where it stays
	// until the next call. Webhooks about events take the profile's e-mail from there.
	Load(o uint32) *profile.Document
	// Save stores a document of which no field has changed that conditions look at.
	Save(o uint32, d *profile.Document)
	// Update stores a document, and updates segments by its changed fields.
	Update(o uint32, d *profile.Document, changed engine.Fields)
	// Record records an event of the service's own on the profile that was loaded last;
	// encoded are its properties as JSON.
	Record(o uint32, typ string, properties map[string]any, encoded []byte)
	// Set finds a named set of profiles or makes it, DropSet removes it.
	Set(name string) *profile.OrdinalSet
	DropSet(name string)
	// HasOpenCart reports whether the newest cart of a profile has something in it, and no
	// order followed.
	HasOpenCart(o uint32) bool
	// Sum is a hash under the account's key.
	Sum(b []byte) identifier.Hash
	// KeyUsed finds the profile for which a call of a flow has used an idempotency key
	// that still counts, UseKey notes one.
	KeyUsed(flow, key string) (o uint32, ok bool)
	UseKey(flow, key string, o uint32)
}

// Segments are the segments of the account.
type Segments interface {
	// Engine has their members. Segments and flows come to each instant together.
	Engine() *engine.Engine
	// Define makes the condition of a step known to the engine; history before the offset
	// has its past.
	Define(id string, root *segment.Node, offset int64)
	// MaxLeaves is how many conditions segments and flows may have together.
	MaxLeaves() int
	// EmitTransitions hands over the engine's transitions, to [State.Transition] among
	// others.
	EmitTransitions()
}

// Outbox takes what steps send.
type Outbox interface {
	// Reach says whether the profile may be sent to on a channel: [flows.Queued], or why
	// not. Credits are not looked at.
	Reach(d *profile.Document, channel string) flows.Result
	// MayGo says whether the account's limits let a message to a profile go out on a channel
	// now: [flows.Queued], or why not. With [flows.Held] it is to be asked again at untilMs.
	MayGo(o uint32, channel string) (r flows.Result, untilMs int64)
	// Credits is how many e-mails the account may still send.
	Credits() int64
	// QueueMessage queues a message. An e-mail takes a credit, which there must be; the last
	// one pauses flows, see [State.PauseForCredits]. False means that there is no room.
	// A message that is queued counts for the account's limits, unless it ignores them.
	QueueMessage(from Source, d *profile.Document, x *flows.Message) bool
	// QueueCall returns the number of the queued request, under which [State.Answer] gets
	// its outcome.
	QueueCall(from Source, x *flows.Webhook) (seq uint64, ok bool)
	// HasRoom reports whether there is room for those who are pending: events and waits
	// go first.
	HasRoom() bool
}

// Source is where an item of the outbox comes from.
type Source struct {
	Ordinal uint32 // the profile
	Flow    string // ids
	Step    string
	// Event is what started the enrolment, a JSON object or empty.
	Event []byte
}
