package segment

import (
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/rawjson"
)

// The fields of a profile that conditions know. Fields below geo and
// attributes are free.
const (
	FieldEmail      = "email"
	FieldPhone      = "phone"
	FieldExternalID = "external_id"
	FieldFirstName  = "first_name"
	FieldLastName   = "last_name"
	FieldCreatedAt  = "created_at"
	FieldGeo        = "geo"
	FieldAttributes = "attributes"
	// FieldTags is short for attributes.tags, which is how it is kept.
	FieldTags = "tags"

	// FieldStatus and FieldSuppressed continue with a channel behind a dot. The
	// status alone is that of e-mail.
	FieldStatus     = "status"
	FieldSuppressed = "suppressed"
	// FieldSubscribed in a definition that is sent now becomes a condition on the
	// status: see [Node.UseCurrentFields].
	FieldSubscribed = "subscribed"
	FieldFirstSeen  = "first_seen_at"
	FieldLastEvent  = "last_event_at"
	FieldScore      = "engagement_score"
	// FieldEventCount makes an activity condition: see [AnyEvent].
	FieldEventCount = "event_count"
	// FieldPushDevices are the kinds of the profile's devices.
	FieldPushDevices = "push_devices"
)

// The statuses of consent.
const (
	StatusSubscribed      = "subscribed"
	StatusUnsubscribed    = "unsubscribed"
	StatusNeverSubscribed = "never_subscribed"
	// StatusPending is of those subscribed who have not confirmed it yet. They
	// are subscribed too.
	StatusPending = "pending"
)

// Fields is what attribute conditions look at in a profile.
type Fields struct {
	// Emails, Phones and ExternalIDs are all identifiers of the profile, as
	// given or in normal form. A profile may have several of a kind: they are
	// judged like the elements of an array. None is a missing value.
	Emails, Phones, ExternalIDs [][]byte
	// FirstName and LastName are missing when empty.
	FirstName, LastName []byte
	// Geo and Attributes are JSON objects in canonical text; empty for none.
	Geo, Attributes []byte
	// CreatedAtMs is when the profile was created, in Unix milliseconds.
	CreatedAtMs int64
	// FirstSeenMs is the same, or the time of the first event if that is earlier.
	FirstSeenMs int64
	// LastEventMs is the time of the newest event that was sent to the service, in
	// Unix milliseconds, when HasEvent is set.
	LastEventMs int64
	HasEvent    bool
	// IsContact reports that the profile was made, or taken on, as a contact.
	IsContact bool
	// Anonymous reports that nothing says who the profile is: there are ids of devices, and no
	// e-mail, external id or phone.
	Anonymous bool
	// Engagement is the profile's engagement with messages.
	Engagement Engagement
	// PushDevices are the kinds of the profile's devices. One that has several of
	// a kind may name it several times.
	PushDevices []string
}

// Match reports whether the condition holds for a profile at atMs. It does not
// allocate for identifiers of up to 128 bytes.
func (a *Attribute) Match(f *Facts, atMs int64) bool {
	p := &a.Predicate
	op, negated := p.Op.positive()
	return a.match(op, f, atMs) != negated
}

func (a *Attribute) match(op Op, facts *Facts, atMs int64) bool {
	p, f := &a.Predicate, &facts.Fields
	var buf [128]byte
	switch a.Field {
	case FieldEmail:
		for _, s := range f.Emails {
			if p.matchText(op, identity.AppendNormalEmail(buf[:0], s), atMs) {
				return true
			}
		}
		return false
	case FieldPhone:
		for _, s := range f.Phones {
			if p.matchText(op, identity.AppendNormalPhone(buf[:0], s), atMs) {
				return true
			}
		}
		return false
	case FieldExternalID:
		for _, s := range f.ExternalIDs {
			if p.matchText(op, s, atMs) {
				return true
			}
		}
		return false
	case FieldFirstName:
		return len(f.FirstName) > 0 && p.matchText(op, f.FirstName, atMs)
	case FieldLastName:
		return len(f.LastName) > 0 && p.matchText(op, f.LastName, atMs)
	case FieldCreatedAt:
		return p.matchInstant(op, f.CreatedAtMs, atMs)
	case FieldFirstSeen:
		return p.matchInstant(op, f.FirstSeenMs, atMs)
	case FieldLastEvent:
		return f.HasEvent && p.matchInstant(op, f.LastEventMs, atMs)
	case FieldSubscribed:
		return p.matchBool(op, facts.Subscribed())
	case FieldScore:
		return p.matchNumber(op, float64(f.Engagement.Score(atMs)))
	case FieldPushDevices:
		for _, kind := range f.PushDevices {
			if p.matchText(op, append(buf[:0], kind...), atMs) {
				return true
			}
		}
		return false
	}
	switch p.Path[0] {
	case FieldStatus:
		status := facts.Status(p.Path[1], atMs)
		return status != "" && p.matchText(op, append(buf[:0], status...), atMs)
	case FieldSuppressed:
		return p.matchBool(op, facts.suppressed(p.Path[1]))
	}
	root := f.Attributes
	if p.Path[0] == FieldGeo {
		root = f.Geo
	}
	raw, _ := rawjson.Lookup(root, p.Path[1:]) // the first key names the root
	return p.matchAny(op, raw, atMs)
}

// Match reports whether the condition holds for what a profile has said of the
// channel. No record is never_subscribed.
func (c *Consent) Match(f *Facts) bool {
	have := f.consentOf(c.Channel)
	if have == nil {
		have = &ConsentFact{}
	}
	switch {
	case c.Status == StatusPending:
		if have.Status != StatusSubscribed || f.SuppressionReason(c.Channel) != SuppressionPending {
			return false
		}
	case have.Status == "":
		if c.Status != StatusNeverSubscribed {
			return false
		}
	case have.Status != c.Status:
		return false
	}
	if c.SinceMs != nil && (!have.HasDate || have.SubscribedMs < *c.SinceMs) {
		return false
	}
	return c.UntilMs == nil || have.HasDate && have.SubscribedMs < *c.UntilMs
}

// EachTime calls fn for the times that a condition with in_last_days or
// not_in_last_days looks at in a profile: see [Predicate.EachTime].
func (a *Attribute) EachTime(f *Fields, fn func(ms int64)) {
	p := &a.Predicate
	root := f.Attributes
	switch {
	case a.Field == FieldCreatedAt:
		fn(f.CreatedAtMs)
		return
	case a.Field == FieldFirstSeen:
		fn(f.FirstSeenMs)
		return
	case a.Field == FieldLastEvent:
		if f.HasEvent {
			fn(f.LastEventMs)
		}
		return
	case p.Path[0] == FieldGeo:
		root = f.Geo
	case p.Path[0] != FieldAttributes:
		return // text fields are no times
	}
	raw, _ := rawjson.Lookup(root, p.Path[1:])
	p.EachTime(raw, fn)
}
