package view

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/redact"
	"github.com/musterhq/muster/resolver/internal/state"
)

// View is the state of one account at one offset. It is valid inside the
// function it is handed to and must be left quickly: Apply waits meanwhile.
type View struct{ base }

// base is what all parts of a view read.
type base struct {
	host    Host // nil for a machine that no node serves
	store   *state.Store
	a       *account.State
	next    int64 // offset of the next record
	logTime int64 // Unix ms
}

// Profiles are the account's people, one for each root ordinal: their identifiers and their
// documents.
type Profiles struct{ *base }

// Segments are the account's segments and their members.
type Segments struct{ *base }

// Reach says who can be sent to on which channel.
type Reach struct{ *base }

// Columns are fields of all profiles, kept beside the documents for previews.
type Columns struct{ *base }

// UsedIn says what refers to a part of the account.
type UsedIn struct{ *base }

// Profiles are the account's people. Like all parts of a view they end with it.
func (v *View) Profiles() Profiles { return Profiles{&v.base} }

// Segments are the account's segments.
func (v *View) Segments() Segments { return Segments{&v.base} }

// Reach says who can be sent to.
func (v *View) Reach() Reach { return Reach{&v.base} }

// Columns are fields of all profiles.
func (v *View) Columns() Columns { return Columns{&v.base} }

// UsedIn says what refers to a part of the account.
func (v *View) UsedIn() UsedIn { return UsedIn{&v.base} }

// New makes a view of an account as it is behind the record before next. host is nil for a
// machine that no node serves.
func New(host Host, store *state.Store, a *account.State, next, logTimeMs int64) *View {
	return &View{base{host, store, a, next, logTimeMs}}
}

// Cut names this state for queries of history.
func (v *View) Cut() query.Cut { return query.Cut{Partition: v.host.Partition(), UpTo: v.next} }

// LogTimeMs is the log time of this state, in Unix milliseconds. No event of
// it is later.
func (v *View) LogTimeMs() int64 { return v.logTime }

// Find finds the profile that holds an identifier.
func (v Profiles) Find(kind identifier.Kind, value string) (ordinal uint32, ok bool) {
	var buf []byte
	h, ok := v.a.Profiles.Hasher.HashIdentifier(kind, []byte(value), &buf)
	if !ok {
		return 0, false
	}
	ordinal = v.a.Profiles.Owner(h)
	return ordinal, ordinal != profile.NoOrdinal
}

// FindProven is [Profiles.Find] of identifiers that more than a browser's key has given to the
// profile: everybody can read such a key, so that what it attached proves nothing.
func (v Profiles) FindProven(kind identifier.Kind, value string) (ordinal uint32, ok bool, err error) {
	o, ok := v.Find(kind, value)
	if !ok {
		return 0, false, nil
	}
	o = v.Root(o)
	var d profile.Document
	if err := v.decode(o, &d); err != nil {
		return 0, false, err
	}
	var buf []byte
	want, _ := v.a.Profiles.Hasher.HashIdentifier(kind, []byte(value), &buf)
	for i := range d.Identifiers {
		id := &d.Identifiers[i]
		if h, ok := v.a.Profiles.Hasher.HashIdentifier(id.Kind, id.Value, &buf); id.Kind == kind && id.Claimed && ok && h == want {
			return 0, false, nil
		}
	}
	return o, true, nil
}

// Known reports whether an identifier is a profile's, or kept out as that of an erased person.
func (v Profiles) Known(kind identifier.Kind, value string) bool {
	var buf []byte
	h, ok := v.a.Profiles.Hasher.HashIdentifier(kind, []byte(value), &buf)
	if !ok {
		return false
	}
	_, held := v.a.Profiles.Identifiers.Get(h)
	return held || v.a.Erasure.Erased(h)
}

// Resolve finds the profile an id stands for, through merges.
func (v Profiles) Resolve(id profile.ID) (ordinal uint32, ok bool) { return v.a.Profiles.Find(id) }

// ResolveText is [Profiles.Resolve] of an id as clients send it. Text that is no id
// is an id that no profile has.
func (v Profiles) ResolveText(id string) (ordinal uint32, ok bool) { return v.a.ResolveText(id) }

// ID is the id of an ordinal of the state. For one from history, see
// [Profiles.HistoryID].
func (v Profiles) ID(ordinal uint32) profile.ID { return v.a.Profiles.Headers.Get(ordinal).ID }

// Identity is one identifier of a profile, as given.
type Identity struct {
	Kind  identifier.Kind
	Value string
}

// Conflict is an identifier that was seen with a profile but is not its own.
type Conflict struct {
	Kind   identifier.Kind
	Value  string
	Reason string
	Other  *profile.ID // the profile it was seen with or belongs to
	AtMs   int64
}

// Merged is a profile that was merged into another.
type Merged struct {
	ID   profile.ID
	AtMs int64
}

// Consent is the consent to a channel.
type Consent struct {
	Channel string
	Status  string
	Source  string
	SinceMs int64 // of the status
	// SubscribedMs is when the channel was subscribed to last, 0 if never.
	SubscribedMs int64
}

// Profile is all that is known of a profile.
type Profile struct {
	Ordinal    uint32
	ID         profile.ID
	Identities []Identity // the newest of a kind stands last; no anonymous ids
	// AnonymousIDs are what SDKs made up for the person's devices, the newest last. They are
	// shown on the person's page alone.
	AnonymousIDs []string
	FirstName    string
	LastName     string
	Geo          json.RawMessage // nil when empty
	Attributes   json.RawMessage // nil when empty
	Consents     []Consent
	Merged       []Merged
	Conflicts    []Conflict
	CreatedMs    int64
	FirstSeenMs  int64 // of the first event, if that is before the creation
	LastEventMs  int64
	ContactInfo
}

// HasEvent reports whether an event was sent to the service of the profile:
// LastEventMs means nothing before.
func (p *Profile) HasEvent() bool { return profile.HasEvent(p.LastEventMs) }

// EmailHash names an e-mail in a link: its hash under the account's key, in hexadecimal. It is
// the same in all spellings of an identifier, and "" for a blank one.
func (v Profiles) EmailHash(email string) string {
	var buf []byte
	h, ok := v.a.Profiles.Hasher.HashIdentifier(identifier.Email, []byte(email), &buf)
	if !ok {
		return ""
	}
	return hex.EncodeToString(h[:])
}

// Newest is the identifier of a kind that is shown, "" if there is none.
func (p *Profile) Newest(kind identifier.Kind) string {
	for i := len(p.Identities) - 1; i >= 0; i-- {
		if p.Identities[i].Kind == kind {
			return p.Identities[i].Value
		}
	}
	return ""
}

// Ordinals are the profile's own ordinal and those merged into it, by which
// history knows its events.
func (v Profiles) Ordinals(ordinal uint32) ([]uint32, error) {
	var d profile.Document
	if err := v.decode(ordinal, &d); err != nil {
		return nil, err
	}
	out := []uint32{ordinal}
	for _, m := range d.Merged {
		out = append(out, m.Ordinal)
	}
	return out, nil
}

func (v *base) decode(ordinal uint32, d *profile.Document) error {
	b, err := v.store.Peek(v.a.Name(), ordinal)
	if err != nil {
		return err
	}
	return d.Decode(b)
}

// Get reads a profile.
func (v Profiles) Get(ordinal uint32) (*Profile, error) {
	var d profile.Document
	if err := v.decode(ordinal, &d); err != nil {
		return nil, err
	}
	return v.profile(ordinal, &d), nil
}

// profile is the profile of a decoded document.
func (v *base) profile(ordinal uint32, d *profile.Document) *Profile {
	h := v.a.Profiles.Headers.Get(ordinal)
	p := &Profile{
		Ordinal: ordinal, ID: h.ID, FirstName: string(d.FirstName), LastName: string(d.LastName),
		Geo: slices.Clone(d.Geo), Attributes: slices.Clone(d.Attributes),
		CreatedMs: d.CreatedMs, FirstSeenMs: d.FirstSeen(), LastEventMs: h.LastEvent,
	}
	for _, id := range d.Identifiers {
		if id.Kind == identifier.Anonymous {
			p.AnonymousIDs = append(p.AnonymousIDs, string(id.Value))
			continue
		}
		p.Identities = append(p.Identities, Identity{id.Kind, string(id.Value)})
	}
	for _, c := range d.Consents {
		p.Consents = append(p.Consents, consent(c))
	}
	for _, m := range d.Merged {
		p.Merged = append(p.Merged, Merged{Profiles{v}.ID(m.Ordinal), m.AtMs})
	}
	p.Conflicts = v.conflicts(ordinal, d)
	p.ContactInfo = v.contactInfo(d)
	return p
}

// HeldHere is [profile.ConflictHeld] as shown on the profile that held the identifier
// first.
const HeldHere = "another profile was made with this identifier; it still identifies this one, which held it first"

// conflicts are those that a profile has with others as they are now: one with a profile
// that was erased, or that is the same person since, is none, and of two with profiles
// that became one the first is returned.
func (v *base) conflicts(ordinal uint32, d *profile.Document) (out []Conflict) {
	for _, c := range d.Conflicts {
		shared := slices.ContainsFunc(d.Identifiers, func(id profile.Identifier) bool {
			return id.Shared && id.Kind == c.Kind && bytes.Equal(id.Value, c.Value)
		})
		if identifier.IsMasked(c.Value) {
			c.Value = []byte(redact.ErasedText) // replayed from a redacted record
		}
		x := Conflict{Kind: c.Kind, Value: string(c.Value), Reason: profile.ConflictReasons[c.Reason], AtMs: c.AtMs}
		if c.Reason == profile.ConflictHeld && !shared {
			x.Reason = HeldHere
		}
		if c.Other != profile.NoOrdinal {
			o := v.a.Profiles.Root(c.Other)
			if o == ordinal || v.a.Profiles.Erased(o) {
				continue
			}
			id := Profiles{v}.ID(o)
			x.Other = &id
			if slices.ContainsFunc(out, func(y Conflict) bool {
				return y.Other != nil && *y.Other == id && y.Kind == x.Kind && y.Reason == x.Reason
			}) {
				continue
			}
		}
		out = append(out, x)
	}
	return out
}

func consent(c profile.Consent) Consent {
	return Consent{profile.NameOf(profile.Channels, c.Channel), profile.NameOf(profile.ConsentStatuses, c.Status), string(c.Source), c.SinceMs, c.SubscribedMs}
}

// Host is what views of a machine, and snapshots that outlive them, need of the
// node that serves it.
type Host interface {
	// Partition is the number of the machine's partition.
	Partition() int
	// Epoch is that of the lease that the host holds, 0 when embedded or without the lease.
	Epoch() uint64
	// HoldFiles keeps the machine's files open until release is called once. The
	// machine is held still meanwhile.
	HoldFiles() (release func())
	// Left is closed when the machine is given up, and StopErr says why.
	Left() <-chan struct{}
	StopErr() error
}
