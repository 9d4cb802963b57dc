package forms

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The commands of forms. Package signup carries out submissions and confirmations.
const (
	CommandCreate  = "form.create"
	CommandUpdate  = "form.update"
	CommandDelete  = "form.delete"
	CommandViewed  = "form.viewed"
	CommandSubmit  = "form.submit"
	CommandConfirm = "form.confirm"
)

// EventSubmitted is the type of the event that a submission is once it takes effect: at once,
// or when the person has confirmed it.
const EventSubmitted = "signup_form_submitted"

// Source is the source of consents that a form gave.
const Source = "form"

// The types of what a field of a form takes.
const (
	TypeText    = "text"
	TypeNumber  = "number"
	TypeBoolean = "boolean"
	TypeDate    = "date"
	TypeChoice  = "choice"
)

// The names of fields that are no attributes, and what begins those that are.
const (
	FieldEmail      = "email"
	FieldPhone      = "phone"
	FieldFirstName  = "first_name"
	FieldLastName   = "last_name"
	AttributePrefix = "attributes."
)

// Form is a signup form, and the page that the service hosts for it.
type Form struct {
	ID string `json:"id"` // of the hosted page too: it names the account, and cannot be guessed
	Content
	CreatedMs int64 `json:"created_ms"`
	UpdatedMs int64 `json:"updated_ms"`
}

// Content is the content of a form.
type Content struct {
	Name   string   `json:"name"` // for the account's people
	Title  string   `json:"title"`
	Text   string   `json:"text"` // plain text; a line break begins another line
	Fields []Field  `json:"fields"`
	Button string   `json:"button"`
	Lists  []string `json:"list_ids"` // that the person joins
	// Consent is nil for a form that asks for none.
	Consent *Consent `json:"consent"`
	// DoubleOptIn has everybody confirm their e-mail, also where the account's settings do
	// not. People on file always confirm.
	DoubleOptIn bool `json:"double_opt_in"`
	// Message is what the page says after the form was sent, RedirectURL where the browser goes
	// instead; "" for the message.
	Message     string `json:"message"`
	RedirectURL string `json:"redirect_url"`
	// Published says that the page is shown and that submissions are taken.
	Published bool `json:"published"`
	// AllowedOrigins are the sites that may embed the form, see package weborigin.
	AllowedOrigins []string `json:"allowed_origins"`
}

// Field is a field of a form.
type Field struct {
	// Name is one of the constants Field…, or an attribute behind [AttributePrefix].
	Name     string   `json:"name"`
	Label    string   `json:"label"`
	Type     string   `json:"type"`
	Required bool     `json:"required"`
	Options  []string `json:"options,omitempty"` // of TypeChoice
}

// Consent is what the person agrees to.
type Consent struct {
	Text     string   `json:"text"`
	Channels []string `json:"channels"`
	// Required keeps the form from being sent without it.
	Required bool `json:"required"`
}

// Save creates a form, or changes what is set of the one with the ID.
type Save struct {
	ID          string    `json:"id,omitempty"`
	Name        *string   `json:"name,omitempty"`
	Title       *string   `json:"title,omitempty"`
	Text        *string   `json:"text,omitempty"`
	Fields      *[]Field  `json:"fields,omitempty"`
	Button      *string   `json:"button,omitempty"`
	Lists       *[]string `json:"list_ids,omitempty"`
	Consent     *Consent  `json:"consent,omitempty"` // without a text: none
	DoubleOptIn *bool     `json:"double_opt_in,omitempty"`
	Message     *string   `json:"message,omitempty"`
	RedirectURL *string   `json:"redirect_url,omitempty"`
	Published   *bool     `json:"published,omitempty"`

	AllowedOrigins *[]string `json:"allowed_origins,omitempty"`

	// IfVersion is the version that is replaced, see [Form.Version]; "" for any.
	IfVersion string `json:"if_version,omitempty"`
}

// Delete removes a form. What waits to be confirmed can still be confirmed.
type Delete struct {
	ID string `json:"id"`
}

const (
	idPrefix = "frm_"
	// MaxForms is how many forms an account has at a time.
	MaxForms = 200
)

// newID makes the id of a form: the account, so that any node knows whose it is, and the
// record's random id, so that it cannot be guessed.
func newID(tx *feature.Tx) string {
	return fmt.Sprintf("%s%016x%s", idPrefix, tx.Account, hex.EncodeToString(tx.Record[:]))
}

// AccountOf reads the account's number out of a form's id.
func AccountOf(id string) (account uint64, ok bool) {
	rest, ok := strings.CutPrefix(id, idPrefix)
	if !ok || len(rest) != 16+32 || strings.ToLower(rest) != rest {
		return 0, false
	}
	if _, err := hex.DecodeString(rest); err != nil {
		return 0, false
	}
	account, err := strconv.ParseUint(rest[:16], 16, 64)
	return account, err == nil
}

// Version names the form's content, see [Save].
func (f *Form) Version() string { return feature.Version(string(must.JSON(f.Content))) }

// ConsentVersion names what the person agrees to, "" where the form asks for nothing. A
// submission says by it which text was read.
func (f *Form) ConsentVersion() string {
	if f.Consent == nil {
		return ""
	}
	return feature.Version(f.Consent.Text, strings.Join(f.Consent.Channels, ","))
}

// Field finds the field of a name, nil if the form has none.
func (c *Content) Field(name string) *Field {
	if i := slices.IndexFunc(c.Fields, func(f Field) bool { return f.Name == name }); i >= 0 {
		return &c.Fields[i]
	}
	return nil
}

// Host is what forms need of the rest of their account.
type Host interface {
	// HasList reports whether there is a list.
	HasList(id string) bool
	// BeginConsentLog begins the account's log of consents, if it has none.
	BeginConsentLog()
	// HashPhone is the account's hash of a phone, masked or not.
	HashPhone(phone string) identifier.Hash
}

// State is the forms of one account.
type State struct {
	account uint64
	store   *state.Store
	host    Host
	forms   feature.Table[Form]
	days    feature.Table[Day]
	held    held
}

// New returns the state of an account without forms.
func New(account uint64, store *state.Store, host Host) *State {
	return &State{account: account, store: store, host: host, forms: feature.NewTable[Form](state.EntityForm), days: feature.NewTable[Day](state.EntityFormDay), held: newHeld()}
}

// Commands are the commands that change the state and concern no profile.
var Commands = map[string]feature.Command[*State]{
	CommandCreate: feature.Do((*State).create),
	CommandUpdate: feature.Do((*State).update),
	CommandDelete: feature.Do((*State).remove),
	CommandViewed: feature.Do((*State).viewed),
}

// Load takes back what a checkpoint has, see [feature.State].
func (s *State) Load(kind byte, name string, value []byte) (known bool, err error) {
	switch kind {
	case state.EntityForm:
		_, err = s.forms.Load(name, value)
	case state.EntityFormDay:
		_, err = s.days.Load(name, value)
	case state.EntityFormHeld:
		err = s.held.load(name, value)
	default:
		return false, nil
	}
	return true, err
}

// Hash gives put the whole state, see [feature.State].
func (s *State) Hash(put func([]byte)) error {
	s.forms.Hash(put)
	s.days.Hash(put)
	return s.hashHeld(put)
}

func noForm() *refuse.Refusal { return refuse.NotFound("id", "there is no form with this id") }

func (s *State) create(tx *feature.Tx, c Save) *refuse.Refusal {
	switch {
	case s.forms.Len() >= MaxForms:
		return refuse.AtLimit("", "this account has %d forms, the most it can have; delete one first", MaxForms)
	case c.Name == nil:
		return refuse.Invalid("name", "name is missing; name the form")
	case c.Fields == nil:
		return refuse.Invalid("fields", "fields is missing; a form asks for an email or a phone at least")
	}
	f := &Form{ID: newID(tx), CreatedMs: tx.AtMs, Content: Content{
		Title: "Sign up", Button: "Sign up", Message: "Thank you. If you got an e-mail from us, please confirm by its link.",
		Lists: []string{}, AllowedOrigins: []string{},
	}}
	return s.save(tx, f, &c)
}

func (s *State) update(tx *feature.Tx, c Save) *refuse.Refusal {
	old := s.forms.Get(c.ID)
	if old == nil {
		return noForm()
	}
	if r := feature.OtherVersion(c.IfVersion, old.Version); r != nil {
		return r
	}
	f := *old
	return s.save(tx, &f, &c)
}

// save makes changes to a form, which is not in the state yet, and puts it there.
func (s *State) save(tx *feature.Tx, f *Form, c *Save) *refuse.Refusal {
	set(&f.Name, c.Name)
	set(&f.Title, c.Title)
	set(&f.Text, c.Text)
	set(&f.Fields, c.Fields)
	set(&f.Button, c.Button)
	set(&f.Lists, c.Lists)
	set(&f.DoubleOptIn, c.DoubleOptIn)
	set(&f.Message, c.Message)
	set(&f.RedirectURL, c.RedirectURL)
	set(&f.Published, c.Published)
	set(&f.AllowedOrigins, c.AllowedOrigins)
	if c.Consent != nil {
		f.Consent = c.Consent
		if c.Consent.Text == "" && len(c.Consent.Channels) == 0 {
			f.Consent = nil
		}
	}
	f.UpdatedMs = tx.AtMs
	if r := f.check(s.host.HasList); r != nil {
		return r
	}
	if f.Consent != nil {
		s.host.BeginConsentLog()
	}
	s.forms.Put(tx, f.ID, f)
	tx.Reply = map[string]string{"id": f.ID}
	return nil
}

// set sets what is given.
func set[T any](to, given *T) {
	if given != nil {
		*to = *given
	}
}

func (s *State) remove(tx *feature.Tx, c Delete) *refuse.Refusal {
	if s.forms.Get(c.ID) == nil {
		return noForm()
	}
	s.forms.Delete(tx, c.ID)
	s.dropDays(tx, c.ID)
	return nil
}

// Get finds a form by its id. It must not be changed.
func (s *State) Get(id string) (Form, bool) {
	if f := s.forms.Get(id); f != nil {
		return *f, true
	}
	return Form{}, false
}

// All lists the forms, the oldest first.
func (s *State) All() []Form {
	return s.forms.Sorted(func(x, y Form) int {
		return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), strings.Compare(x.ID, y.ID))
	})
}
