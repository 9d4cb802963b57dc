package keyapi

import (
	"encoding/json"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/view"
)

func contactOperations() keycall.Group {
	return keycall.Group{Group: operation.Group{Surface: operation.SurfaceA, Tag: "Contacts", Title: "Contacts",
		About: "A contact is a profile: a person with identifiers, consents, lists and a history of events. `_id` is the `profile_id` of events."}, Routes: []keycall.Route{
		{Handle: createContact, Operation: operation.Operation{Method: "POST", Path: "/contacts", Permission: "contacts:write", ID: "createContact", Summary: "Create a contact",
			About: "All fields are optional, and so is the body. The e-mail is unique in the whole system, compared trimmed and without regard to case. " +
				"A phone records consent to SMS with the source `manual`. An `external_id` or `phone` on file leads to its profile, which becomes the contact.",
			Body: shape.Object(append(shapes.ContactFields(), shape.Opt("list_id", shape.ListID("Puts the contact on this list in the same step.")))...), BodyRules: operation.BodyRules{Optional: true, Instead: toMake},
			Data: contactShape, Fails: []string{"Contact with this email already exists", "list_id: there is no such list"}}},
		{Handle: listContacts, Operation: operation.Operation{Method: "GET", Path: "/contacts", Permission: "contacts:read", ID: "listContacts", Summary: "List contacts",
			About: "All profiles in the order in which they were made, or those with an identifier, or on a list.",
			Query: []operation.Parameter{
				operation.Query("email", shape.Text("ann@example.com", "The profile with this e-mail alone.")),
				operation.Query("external_id", shape.Text("42", "The profile that this external id identifies, and contacts that share it.")),
				operation.Query("phone", shape.Text("+491701234567", "The profile that this phone number identifies, and contacts that share it.")),
				operation.Query("list_id", shape.ListID("Those on this list alone.")),
			}, Data: shape.List(contactShape, ""), Paged: true, Fails: []string{"limit Input should be a whole number from 1 to 1000"}}},
		{Handle: getContact, Operation: operation.Operation{Method: "GET", Path: "/contacts/{id}", Permission: "contacts:read", ID: "getContact", Summary: "Read a contact",
			Data: contactShape, Fails: []string{"There is no contact with this id"}}},
		{Handle: updateContact, Operation: operation.Operation{Method: "PATCH", Path: "/contacts/{id}", Permission: "contacts:write", ID: "updateContact", Summary: "Change a contact",
			About: "What is given is changed, all of it or nothing: identifiers are added, names removed by an empty text, keys of `geo` and `attributes` by null. It merges no profiles: an identifier of another contact is refused. " +
				"`subscribed` records a consent to e-mail or its withdrawal; `true` is refused while the contact is suppressed there, see `/profiles/{id}/suppression`.",
			Body: shape.Object(append(shapes.ContactChanges(),
				shape.Opt("subscribed", shape.Boolean(true, "Whether the person wants e-mail, with the source `api`.")),
				shape.Opt("consents", shape.MapOf(shape.Object(shape.Req("status", shape.Word("", "subscribed", "unsubscribed")), shape.Opt("source", shape.Text("form", "Where it comes from.").Bytes(0, 100).Default(sourceAPI))),
					"Consents by channel; other channels stay as they are.").Like(shape.Pairs("sms", shape.Pairs("status", "unsubscribed", "source", "form")))),
				shape.Opt("geo", shape.Geo("Merged into what is there.")), shape.Opt("attributes", shape.Attributes("Merged into what is there.")))...), BodyRules: operation.BodyRules{Instead: toUpdate},
			Data: contactShape, Fails: []string{"phone: another contact has this value", "subscribed: the contact is bounced on email; lift the suppression first"}}},
		{Handle: eraseContact, Operation: operation.Operation{Method: "DELETE", Path: "/contacts/{id}", Permission: "contacts:write", ID: "eraseContact", Summary: "Erase a contact",
			About: "The person is forgotten: profile, events in history and log, checkpoints. Hashes of the identifiers are kept, so that they do not come back; an administrator may lift that.",
			Fails: []string{"There is no contact with this id"}}},
		{Handle: exportContact, Operation: operation.Operation{Method: "GET", Path: "/contacts/{id}/export", Permission: "contacts:read", Timeout: keycall.HistoryTimeout, ID: "exportContact", Summary: "Export all that is known of a contact",
			Data: contactExportShape, Fails: []string{"There is no contact with this id"}}},
	}}
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
	// Consents are those on record, by channel.
	Consents map[string]consent `json:"consents"`
	// Status is that of e-mail, null for a contact that never subscribed.
	Status          *string         `json:"status"`
	EngagementScore int             `json:"engagement_score"`
	Lists           []string        `json:"lists"`
	Geo             json.RawMessage `json:"geo"`
	Attributes      json.RawMessage `json:"attributes"`
	CreatedAt       string          `json:"created_at"`
	// Warning is only in the answer that made or changed the contact, if there is
	// something to warn of.
	Warning string `json:"warning,omitempty"`
}

type smsConsent struct {
	Status string  `json:"status"`
	Source *string `json:"source"`
}

func toContact(p *view.Profile, atMs int64) contact {
	sms := p.Consent("sms")
	status := p.Status("email", atMs)
	x := contact{
		ID:    p.ID.String(),
		Email: record.TextOrNull(p.Newest(resolver.IdentityEmail)), Phone: record.TextOrNull(p.Newest(resolver.IdentityPhone)),
		ExternalID: record.TextOrNull(p.Newest(resolver.IdentityExternalID)), FirstName: record.TextOrNull(p.FirstName), LastName: record.TextOrNull(p.LastName),
		SMSConsent: smsConsent{sms.Status, record.TextOrNull(sms.Source)}, Consents: consentsOf(p), Status: record.TextOrNull(status),
		EngagementScore: p.Score(atMs), Lists: p.Lists, Geo: record.Object(p.Geo), Attributes: record.Object(p.Attributes),
		CreatedAt: record.Time(p.CreatedMs), Subscribed: p.Subscribed(),
	}
	if x.Lists == nil {
		x.Lists = []string{}
	}
	return x
}

var errNoContact = keycall.FailWith(keycall.CodeNotFound, "There is no contact with this id")

// contactOf reads a contact by its id, through merges.
func contactOf(c *keycall.Call, id string) (x contact, err error) {
	err = c.Read(func(v *resolver.View) error {
		o, ok := v.Profiles().ResolveText(id)
		if !ok {
			return errNoContact
		}
		p, err := v.Profiles().Get(o)
		if err == nil {
			x = toContact(p, max(c.Now.UnixMilli(), v.LogTimeMs()))
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

func (f *contactFields) create() contacts.Create {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return contacts.Create{
		Email: text(f.Email), FirstName: text(f.FirstName), LastName: text(f.LastName),
		Phone: text(f.Phone), ExternalID: text(f.ExternalID), ListID: text(f.ListID),
	}
}

// createContact answers POST /contacts. All fields are optional, and so is the
// body.
func createContact(c *keycall.Call) (any, error) {
	var in contactFields
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	var out contacts.Reply
	if err := c.Command(contacts.CommandCreate, in.create(), &out); err != nil {
		return nil, err
	}
	return contactMade(c, &out)
}

// contactMade is the contact of a reply, with its warning.
func contactMade(c *keycall.Call, reply *contacts.Reply) (contact, error) {
	x, err := contactOf(c, reply.ID)
	x.Warning = reply.Warning
	return x, err
}

func getContact(c *keycall.Call) (any, error) { return contactOf(c, c.Param("id")) }

// updateContact answers PATCH /contacts/{id}: what is given is changed, consents
// too. Names are removed by "", attributes by null within attributes.
func updateContact(c *keycall.Call) (any, error) {
	var in struct {
		contactFields
		// Raw, so that numbers stay as they were written.
		Geo        json.RawMessage `json:"geo"`
		Attributes json.RawMessage `json:"attributes"`
		Subscribed *bool           `json:"subscribed"`
		Consents   json.RawMessage `json:"consents"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	args := contacts.Update{ID: c.Param("id"), Email: in.Email, FirstName: in.FirstName, LastName: in.LastName, Phone: in.Phone, ExternalID: in.ExternalID}
	if field := args.Blank(); field != "" {
		return nil, keycall.Fail("%s %s", field, record.BlankIdentifier)
	}
	var err error
	if args.Geo, err = keycall.Object("geo", in.Geo); err != nil {
		return nil, err
	}
	if args.Attributes, err = keycall.Object("attributes", in.Attributes); err != nil {
		return nil, err
	}
	if args.Consents, err = consentChanges(in.Subscribed, in.Consents); err != nil {
		return nil, err
	}
	var out contacts.Reply
	if err := c.Command(contacts.CommandUpdate, args, &out); err != nil {
		return nil, err
	}
	var channels []string // that are consented to
	for _, x := range args.Consents {
		if x.Status == "subscribed" {
			channels = append(channels, x.Channel)
		}
	}
	x, err := contactOf(c, out.ID)
	if err == nil && len(channels) > 0 {
		err = c.Read(func(v *resolver.View) error {
			o, ok := v.Profiles().ResolveText(out.ID)
			if !ok {
				return errNoContact
			}
			p, err := v.Profiles().Get(o)
			if err == nil {
				x.Warning = record.SuppressedConsent(p, channels...)
			}
			return err
		})
	}
	return x, err
}

// listContacts answers GET /contacts: all profiles in the order in which they
// were made, or those with an identifier, or on a list.
func listContacts(c *keycall.Call) (any, error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	from, err := c.Ordinal()
	if err != nil {
		return nil, err
	}
	out := []contact{}
	next := ""
	err = c.Read(func(v *resolver.View) error {
		ordinals, err := selectedProfiles(c, v, from, limit)
		if err != nil {
			return err
		}
		atMs := max(c.Now.UnixMilli(), v.LogTimeMs())
		var room paging.Room
		for i, o := range ordinals {
			p, err := v.Profiles().Get(o)
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
		return c.Hold(room.Bytes)
	})
	return keycall.Reply{Data: out, Next: next}, err
}

// selectedProfiles are the ordinals that a list of contacts shows.
func selectedProfiles(c *keycall.Call, v *resolver.View, from uint32, limit int) ([]uint32, error) {
	args := c.QueryArgs()
	for kind, name := range []string{"email", "external_id", "phone"} {
		if value := string(args.Peek(name)); value != "" {
			return v.Profiles().Holders(resolver.IdentityKind(kind), value, from, limit)
		}
	}
	if id := string(args.Peek("list_id")); id != "" {
		l, ok := v.Contacts().Find(id)
		if !ok {
			return nil, keycall.FailWith(keycall.CodeNotFound, "list_id: there is no such list")
		}
		return v.Contacts().MembersPage(l, from, limit), nil
	}
	return v.Profiles().Page(from, limit), nil
}
