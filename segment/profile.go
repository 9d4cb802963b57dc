package segment

import (
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/jsontext"
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
)

// The statuses of consent.
const (
	StatusSubscribed      = "subscribed"
	StatusUnsubscribed    = "unsubscribed"
	StatusNeverSubscribed = "never_subscribed"
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
}

// Match tells whether the condition holds for a profile at atMs. It does not
// allocate for identifiers of up to 128 bytes.
func (a *Attribute) Match(f *Fields, atMs int64) bool {
	p := &a.Predicate
	op, negated := p.Op.positive()
	return a.match(op, f, atMs) != negated
}

func (a *Attribute) match(op Op, f *Fields, atMs int64) bool {
	p := &a.Predicate
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
		switch op {
		case OpBefore, OpAfter, OpInLastDays:
			return p.matchTime(op, f.CreatedAtMs, atMs)
		}
		// Constants have the fixed-width form too, whose order is time's.
		return p.matchText(op, AppendTime(buf[:0], f.CreatedAtMs), atMs)
	}
	root := f.Attributes
	if p.Path[0] == FieldGeo {
		root = f.Geo
	}
	raw, _ := jsontext.Lookup(root, p.Path[1:]) // the first key names the root
	return p.matchAny(op, raw, atMs)
}

// Match tells whether the condition holds for a channel's consent: its status,
// where "" means never_subscribed, and the date of the last subscription in
// Unix milliseconds, if there was one.
func (c *Consent) Match(status string, subscribedMs int64, hasDate bool) bool {
	if status == "" {
		status = StatusNeverSubscribed
	}
	if status != c.Status {
		return false
	}
	if c.SinceMs != nil && (!hasDate || subscribedMs < *c.SinceMs) {
		return false
	}
	return c.UntilMs == nil || hasDate && subscribedMs < *c.UntilMs
}

// EachTime calls fn for the times that a timed condition looks at in a profile:
// see [Predicate.EachTime].
func (a *Attribute) EachTime(f *Fields, fn func(ms int64)) {
	p := &a.Predicate
	root := f.Attributes
	switch {
	case a.Field == FieldCreatedAt:
		fn(f.CreatedAtMs)
		return
	case p.Path[0] == FieldGeo:
		root = f.Geo
	case p.Path[0] != FieldAttributes:
		return // text fields are no times
	}
	raw, _ := jsontext.Lookup(root, p.Path[1:])
	p.EachTime(raw, fn)
}
