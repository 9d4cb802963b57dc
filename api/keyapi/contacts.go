package keyapi

import (
	"encoding/json"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/resolver"
)

func (a *API) contactRoutes() []route {
	return []route{
		{method: "POST", path: "/contacts", permission: "contacts:write", handle: a.createContact},
		{method: "GET", path: "/contacts", permission: "contacts:read", handle: a.listContacts},
		{method: "GET", path: "/contacts/{id}", permission: "contacts:read", handle: a.getContact},
		{method: "DELETE", path: "/contacts/{id}", permission: "contacts:write", handle: a.eraseContact},
		{method: "GET", path: "/contacts/{id}/export", permission: "contacts:read", handle: a.exportContact, timeout: historyTimeout},
		{method: "PATCH", path: "/contacts/{id}", permission: "contacts:write", handle: a.updateContact},
	}
}

// contact is a contact as it is answered. Fields that are not known are null.
type contact struct {
	ID         string     `json:"_id"`
	Email      *string    `json:"email"`
	FirstName  *string    `json:"first_name"`
	LastName   *string    `json:"last_name"`
	Phone      *string    `json:"phone"`
	ExternalID *string    `json:"external_id"`
	Subscribed bool       `json:"subscribed"`
	SMSConsent smsConsent `json:"sms_consent"`
	// Status is that of e-mail, null for somebody who never subscribed.
	Status          *string         `json:"status"`
	EngagementScore int             `json:"engagement_score"`
	Lists           []string        `json:"lists"`
	Geo             json.RawMessage `json:"geo"`
	Attributes      json.RawMessage `json:"attributes"`
	CreatedAt       string          `json:"created_at"`
}

type smsConsent struct {
	Status string  `json:"status"`
	Source *string `json:"source"`
}

func toContact(p *resolver.Profile, atMs int64) contact {
	sms := p.Consent("sms")
	status := p.Status("email", atMs)
	x := contact{
		ID:    p.ID.String(),
		Email: record.TextOrNull(p.Newest(resolver.IdentityEmail)), Phone: record.TextOrNull(p.Newest(resolver.IdentityPhone)),
		ExternalID: record.TextOrNull(p.Newest(resolver.IdentityExternalID)), FirstName: record.TextOrNull(p.FirstName), LastName: record.TextOrNull(p.LastName),
		SMSConsent: smsConsent{sms.Status, record.TextOrNull(sms.Source)}, Status: record.TextOrNull(status),
		EngagementScore: p.Score(atMs), Lists: p.Lists, Geo: record.Object(p.Geo), Attributes: record.Object(p.Attributes),
		CreatedAt: record.Time(p.CreatedMs), Subscribed: p.Subscribed(),
	}
	if x.Lists == nil {
		x.Lists = []string{}
	}
	return x
}

var errNoContact = failWith(codeNotFound, "There is no contact with this id")

// contactOf reads a contact by its id, through merges.
func (c *call) contactOf(id string) (x contact, err error) {
	err = c.read(func(v *resolver.View) error {
		o, ok := v.ResolveText(id)
		if !ok {
			return errNoContact
		}
		p, err := v.Profile(o)
		if err == nil {
			x = toContact(p, max(c.now.UnixMilli(), v.LogTimeMs()))
		}
		return err
	})
	return x, err
}

// contactFields are the fields of a contact in a request.
type contactFields struct {
	Email      *string `json:"email"`
	FirstName  *string `json:"first_name"`
	LastName   *string `json:"last_name"`
	Phone      *string `json:"phone"`
	ExternalID *string `json:"external_id"`
	ListID     *string `json:"list_id"`
}

func (f *contactFields) create() resolver.ContactCreate {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return resolver.ContactCreate{
		Email: text(f.Email), FirstName: text(f.FirstName), LastName: text(f.LastName),
		Phone: text(f.Phone), ExternalID: text(f.ExternalID), ListID: text(f.ListID),
	}
}

// createContact answers POST /contacts. All fields are optional, and so is the
// body.
func (a *API) createContact(c *call) (any, error) {
	var in contactFields
	if err := c.decodeOptional(&in); err != nil {
		return nil, err
	}
	var out resolver.ContactReply
	if err := c.command(resolver.CommandContactCreate, in.create(), &out); err != nil {
		return nil, err
	}
	return c.contactOf(out.ID)
}

func (a *API) getContact(c *call) (any, error) { return c.contactOf(c.param("id")) }

// updateContact answers PATCH /contacts/{id}: what is given is changed. Names
// are removed by "", attributes by null within attributes.
func (a *API) updateContact(c *call) (any, error) {
	var in struct {
		contactFields
		// Raw, so that numbers stay as they were written.
		Geo        json.RawMessage `json:"geo"`
		Attributes json.RawMessage `json:"attributes"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	args := resolver.ContactUpdate{ID: c.param("id"), Email: in.Email, FirstName: in.FirstName, LastName: in.LastName, Phone: in.Phone, ExternalID: in.ExternalID}
	var err error
	if args.Geo, err = object("geo", in.Geo); err != nil {
		return nil, err
	}
	if args.Attributes, err = object("attributes", in.Attributes); err != nil {
		return nil, err
	}
	var out resolver.ContactReply
	if err := c.command(resolver.CommandContactUpdate, args, &out); err != nil {
		return nil, err
	}
	return c.contactOf(out.ID)
}

// listContacts answers GET /contacts: all profiles in the order in which they
// were made, or those with an identifier, or on a list.
func (a *API) listContacts(c *call) (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	from, err := c.from()
	if err != nil {
		return nil, err
	}
	out := []contact{}
	next := ""
	err = c.read(func(v *resolver.View) error {
		ordinals, err := c.selected(v, from, limit)
		if err != nil {
			return err
		}
		atMs := max(c.now.UnixMilli(), v.LogTimeMs())
		var room paging.Room
		for i, o := range ordinals {
			p, err := v.Profile(o)
			if err != nil {
				return err
			}
			x := toContact(p, atMs)
			if !room.Take(x) {
				ordinals, limit = ordinals[:i], i
				break
			}
			out = append(out, x)
		}
		next = paging.NextOrdinal(ordinals, limit)
		return c.hold(room.Bytes)
	})
	return reply{data: out, next: next}, err
}

// selected are the ordinals that a list of contacts shows.
func (c *call) selected(v *resolver.View, from uint32, limit int) ([]uint32, error) {
	args := c.QueryArgs()
	for kind, name := range []string{"email", "external_id", "phone"} {
		if value := string(args.Peek(name)); value != "" {
			if o, ok := v.Find(resolver.IdentityKind(kind), value); ok && o >= from {
				return []uint32{o}, nil
			}
			return nil, nil
		}
	}
	if id := string(args.Peek("list_id")); id != "" {
		l, ok := v.List(id)
		if !ok {
			return nil, failWith(codeNotFound, "list_id: there is no such list")
		}
		return v.ListMembersPage(l, from, limit), nil
	}
	return v.ProfilesPage(from, limit), nil
}
