package forms

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// Submit is a submission of a form as it was sent. Callers have checked its values
// against the form.
type Submit struct {
	ID string `json:"id"` // of the form
	// Keys make a repeat harmless: one that has a key of one before counts as the same, and
	// the first is remembered.
	Keys []string `json:"keys"`

	Email string `json:"email,omitempty"`
	Values

	// Consented says that the person agreed to the form's consent, whose text is Wording.
	Consented bool `json:"consented,omitempty"`
	// ConsentVersion is the form's when the person read it, see [Form.ConsentVersion]; ""
	// of a form that asked for nothing, and in records of before it was sent along.
	ConsentVersion string `json:"consent_version,omitempty"`
}

// Values are what a submission makes of a profile, and the evidence of its consents.
type Values struct {
	Phone      string          `json:"phone,omitempty"`
	FirstName  string          `json:"first_name,omitempty"`
	LastName   string          `json:"last_name,omitempty"`
	Attributes json.RawMessage `json:"attributes,omitempty"` // object
	Wording    string          `json:"wording,omitempty"`
	Client     string          `json:"client,omitempty"` // the network of the client, never a whole address
}

// Reply answers a submission.
type Reply struct {
	// Repeated says that the same was sent before, so that nothing changed.
	Repeated bool `json:"repeated,omitempty"`
}

// Confirm carries out a submission that was held.
type Confirm struct {
	Profile    string `json:"profile"`
	Submission string `json:"submission"`
}

// The bounds of a submission.
const (
	// MaxValueBytes bounds a text that is submitted.
	MaxValueBytes  = 512
	maxKeys        = 2
	maxKeyBytes    = 100
	maxClientBytes = 50
)

// NoForm refuses a submission to a form that there is none of, or that takes none.
func NoForm() *refuse.Refusal {
	return refuse.NotFound("id", "there is no published form with this id")
}

// Check says what cannot be stored of a submission. Of a redacted command identifiers may be
// masked.
func (c *Submit) Check(redacted bool) *refuse.Refusal {
	for _, f := range [...]struct {
		name, text string
		most       int
	}{{"email", c.Email, MaxValueBytes}, {"phone", c.Phone, MaxValueBytes}, {"first_name", c.FirstName, MaxValueBytes}, {"last_name", c.LastName, MaxValueBytes}, {"wording", c.Wording, MaxConsentBytes}, {"client", c.Client, maxClientBytes}} {
		if redacted && identifier.IsMasked(f.text) {
			continue
		}
		if len(f.text) > f.most || !utf8.ValidString(f.text) || strings.ContainsRune(f.text, 0) {
			return refuse.Invalid(f.name, "%s must have at most %d bytes of UTF-8 without NUL characters", f.name, f.most)
		}
	}
	switch {
	case len(c.ConsentVersion) > maxKeyBytes:
		return refuse.Invalid("consent_version", "consent_version must have at most %d bytes", maxKeyBytes)
	case c.Email == "" && c.Phone == "":
		return refuse.Invalid("email", "email or phone must be given")
	case len(c.Keys) == 0 || len(c.Keys) > maxKeys || slices.ContainsFunc(c.Keys, func(k string) bool { return k == "" || len(k) > maxKeyBytes }):
		return refuse.Invalid("keys", "keys must have 1 to %d entries of 1 to %d bytes", maxKeys, maxKeyBytes)
	}
	return nil
}

// Consents are the channels that a submission consents to.
func (f *Form) Consents(c *Submit) []string {
	if !c.Consented {
		return nil
	}
	return f.consents(c.Email, c.Phone)
}

// Submitted counts a submission.
func (s *State) Submitted(tx *feature.Tx, form string) {
	s.sweep(tx.AtMs)
	s.count(tx, form, func(f *Figures) { f.Submissions++ })
}

// Converted counts a submission that took effect.
func (s *State) Converted(tx *feature.Tx, form string) {
	if s.forms.Get(form) != nil {
		s.count(tx, form, func(f *Figures) { f.Conversions++ })
	}
}

// Unconfirmable counts a submission that cannot be confirmed.
func (s *State) Unconfirmable(tx *feature.Tx, form string) {
	s.count(tx, form, func(f *Figures) { f.Unconfirmable++ })
}
