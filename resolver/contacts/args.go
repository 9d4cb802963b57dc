package contacts

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// The commands that make and change contacts. A contact is a profile that was made, or
// taken on, by name and not by an event. The machine carries them out, for they lead to a
// profile by its identifiers. Package identrules has the names of the first versions, which
// lead to profiles by other rules.
const (
	CommandCreate  = "contact.create.2"
	CommandUpdate  = "contact.update"
	CommandListAdd = "list.add.2"
)

// MessageDuplicateEmail is the refusal of an e-mail that is on file already.
const MessageDuplicateEmail = "Contact with this email already exists"

// The bounds of what a contact is made of, those of events.
const (
	MaxIdentifierBytes = 512
	maxPersonNameBytes = 512
)

// Create makes a contact. All fields are optional.
type Create struct {
	Email      string `json:"email,omitempty"`
	FirstName  string `json:"first_name,omitempty"`
	LastName   string `json:"last_name,omitempty"`
	Phone      string `json:"phone,omitempty"`
	ExternalID string `json:"external_id,omitempty"`
	ListID     string `json:"list_id,omitempty"`
	// Unsubscribed are channels of which the person wants nothing, such as email and sms.
	// A known contact that is put on a list keeps its consents.
	Unsubscribed []string `json:"unsubscribed,omitempty"`
	// Grant is the node's to set.
	Grant *emaildir.Grant `json:"grant,omitempty"`
}

// Update changes what is set of a contact. An empty name is removed;
// identifiers are added, never removed.
type Update struct {
	ID         string          `json:"id"`
	Email      *string         `json:"email,omitempty"`
	FirstName  *string         `json:"first_name,omitempty"`
	LastName   *string         `json:"last_name,omitempty"`
	Phone      *string         `json:"phone,omitempty"`
	ExternalID *string         `json:"external_id,omitempty"`
	Geo        json.RawMessage `json:"geo,omitempty"`        // object; null values remove
	Attributes json.RawMessage `json:"attributes,omitempty"` // likewise
	Consents   []ConsentChange `json:"consents,omitempty"`
	Grant      *emaildir.Grant `json:"grant,omitempty"` // the node's to set
}

// Blank is the first identifier that is given as an empty text, "" for none. It changes
// nothing: the sender means to remove one, and identifiers are never removed.
func (c *Update) Blank() string {
	for k, v := range [identifier.Kinds]*string{c.Email, c.ExternalID, c.Phone} {
		if v != nil && *v == "" {
			return identifier.Kind(k).String()
		}
	}
	return ""
}

// Reply answers commands that make or change a contact.
type Reply struct {
	ID      string `json:"id"`
	Created bool   `json:"created"` // the profile was made by this command
	// Warning names identifiers that were not added because the profile may have no
	// more; "" when all were.
	Warning string `json:"warning,omitempty"`
}

// ListAdd puts a contact on a list; it is made if its e-mail is not on file.
type ListAdd struct {
	ListID string `json:"list_id"`
	Create Create `json:"create"`
}

// DuplicateEmail is the refusal with [MessageDuplicateEmail].
func DuplicateEmail() *refuse.Refusal {
	return &refuse.Refusal{Code: "conflict", Field: "email", Message: MessageDuplicateEmail}
}

// Check says what cannot be stored of a contact. The e-mail is taken as it is. Of a redacted
// command identifiers may be masked.
func (c *Create) Check(redacted bool) *refuse.Refusal {
	for _, f := range [...]struct {
		name  string
		value *string
		limit int
	}{
		{"email", &c.Email, MaxIdentifierBytes}, {"phone", &c.Phone, MaxIdentifierBytes}, {"external_id", &c.ExternalID, MaxIdentifierBytes},
		{"first_name", &c.FirstName, maxPersonNameBytes}, {"last_name", &c.LastName, maxPersonNameBytes},
	} {
		if redacted && identifier.IsMasked(*f.value) {
			continue
		}
		if len(*f.value) > f.limit {
			return refuse.Invalid(f.name, "%s must have at most %d bytes", f.name, f.limit)
		}
		if !utf8.ValidString(*f.value) || strings.ContainsRune(*f.value, 0) {
			return refuse.Invalid(f.name, "%s must be UTF-8 text without NUL characters", f.name)
		}
	}
	return CheckConsents(&profile.Document{}, c.Refusals())
}

// Refusals are the consents that the contact is made without.
func (c *Create) Refusals() (out []ConsentChange) {
	for _, channel := range c.Unsubscribed {
		out = append(out, ConsentChange{Channel: channel, Status: profile.ConsentStatuses[profile.ConsentUnsubscribed], Source: SourceImport})
	}
	return out
}
