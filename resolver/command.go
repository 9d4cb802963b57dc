package resolver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/eventtypes"
	"github.com/musterhq/muster/resolver/forms"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/redact"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/sending"
	"github.com/musterhq/muster/resolver/sources"
	"github.com/musterhq/muster/segment"
)

// The names of commands. They are in the log: never change the meaning of one.
const (
	CommandBootstrap     = "account.bootstrap"
	CommandAppSecretSet  = "app_secret.set"
	CommandSettingsSet   = "settings.set"
	CommandSegmentCreate = "segment.create"
	CommandSegmentUpdate = "segment.update"
	CommandSegmentDelete = "segment.delete"

	CommandCompanyCreate = "company.create"
	CommandCompanyUpdate = "company.update"
	CommandCreditsAdd    = "credits.add"
)

// Bootstrap makes the first account of an empty partition. The account's
// number is the record's.
type Bootstrap struct {
	ApplyVersion int           `json:"apply_version"`
	Company      Company       `json:"company"`
	HashKey      string        `json:"hash_key"`    // 16 random bytes in hexadecimal
	SecretHash   string        `json:"secret_hash"` // SHA-256 of the App Secret, in hexadecimal
	Settings     Settings      `json:"settings"`
	User         access.User   `json:"user"`
	APIKey       access.APIKey `json:"api_key"`
	// EmailCredits is how many e-mails the company may send at first; nil for the
	// usual number.
	EmailCredits *int64 `json:"email_credits,omitempty"`
}

// AppSecretSet replaces the App Secret.
type AppSecretSet struct {
	SecretHash string `json:"secret_hash"`
}

// SegmentSave creates a segment, or changes the one with the ID.
type SegmentSave struct {
	ID         string          `json:"id,omitempty"`
	Name       string          `json:"name"`
	Definition json.RawMessage `json:"definition"`
	// IfVersion is the version that is replaced, see [Segment.Version]; "" for any.
	IfVersion string `json:"if_version,omitempty"`
}

// SegmentDelete removes a segment that no other refers to.
type SegmentDelete struct {
	ID string `json:"id"`
}

const (
	// maxDefinitionBytes bounds a definition in canonical form.
	maxDefinitionBytes = 1 << 20
)

// command is a record being applied. name and args are those of a command.
type command struct {
	account *account.State
	env     eventlog.Envelope
	name    string
	args    []byte
	rows    *query.Batch
	out     *Outcome
	// redacted says that what concerns an erased person was taken out of the
	// arguments: identifiers may be masked.
	redacted bool

	work       feature.Tx // on an account, as features see it
	transition uint32     // number of the newest one of this record
	row        uint32     // index of the next event that the record itself records
}

// commandTable says what each command does. A handler sets the outcome's
// refusal, or changes the state and may set a reply; an error means that the
// arguments cannot be read, and is fatal.
var commandTable = map[string]func(*Machine, *command) error{
	CommandAppSecretSet:      handle((*Machine).setAppSecret),
	CommandSettingsSet:       handle((*Machine).setSettings),
	CommandSegmentCreate:     handle((*Machine).createSegment),
	CommandSegmentUpdate:     handle((*Machine).updateSegment),
	CommandSegmentDelete:     handle((*Machine).deleteSegment),
	contacts.CommandListAdd:  handle((*Machine).addToList),
	contacts.CommandListAdd1: handle((*Machine).addToList),
	contacts.CommandCreate:   handle((*Machine).createContact),
	contacts.CommandCreate1:  handle((*Machine).createContact),
	contacts.CommandUpdate:   handle((*Machine).updateContact),
	CommandContactErase:      handle((*Machine).eraseContact),
	redact.CommandRefused:    handle((*Machine).refuse),

	messages.CommandPreferences: handle((*Machine).savePreferences),
	forms.CommandSubmit:         handle((*Machine).submitForm),
	forms.CommandConfirm:        handle((*Machine).confirmForm),

	CommandOutboxClaim: handle((*Machine).claimOutbox),

	outbox.CommandWebhookDelete: handle((*Machine).deleteWebhook),

	CommandCompanyUpdate:      handle((*Machine).updateCompany),
	CommandCreditsAdd:         handle((*Machine).addCredits),
	access.CommandAPIKeysUsed: handle((*Machine).recordKeyUses),
	sources.CommandUsed:       handle((*Machine).recordSourceUses),
}

func init() {
	addCommands(access.Commands, func(a *account.State) *access.State { return a.Access })
	addCommands(eventtypes.Commands, func(a *account.State) *eventtypes.State { return a.Types })
	addCommands(contacts.Commands, func(a *account.State) *contacts.State { return a.Contacts })
	addCommands(campaigns.Commands, func(a *account.State) *campaigns.State { return a.Campaigns })
	addCommands(domains.Commands, func(a *account.State) *domains.State { return a.Domains })
	addCommands(sending.Commands, func(a *account.State) *sending.State { return a.Sending })
	addCommands(outbox.Commands, func(a *account.State) *outbox.State { return a.Outbox })
	addCommands(credentials.Commands, func(a *account.State) *credentials.State { return a.Credentials })
	addCommands(sources.Commands, func(a *account.State) *sources.State { return a.Sources })
	addCommands(erasure.Commands, func(a *account.State) *erasure.State { return a.Erasure })
	addCommands(forms.Commands, func(a *account.State) *forms.State { return a.Forms })
	addCommands(automation.Commands, func(a *account.State) *automation.State { return a.Flows })
}

// addCommands makes the commands of a feature commands of the machine.
func addCommands[S any](commands map[string]feature.Command[S], of func(*account.State) S) {
	for name, do := range commands {
		commandTable[name] = func(m *Machine, c *command) error {
			tx := m.tx(c.account)
			err := carryOut(c, do, of(c.account), tx)
			m.accountsChanged = m.accountsChanged || tx.AccessChanged
			return err
		}
	}
}

// carryOut has a feature's command change its state.
func carryOut[S any](c *command, do feature.Command[S], s S, tx *feature.Tx) error {
	tx.Reply = nil
	refusal, err := do(s, tx, c.args)
	if err != nil {
		return fmt.Errorf("arguments of command %s: %w", c.name, err)
	}
	if c.out.Refusal = refusal; tx.Reply != nil {
		c.reply(tx.Reply)
	}
	return nil
}

// tx is the record's work on an account as features see it. It holds until the next call.
func (m *Machine) tx(a *account.State) *feature.Tx {
	m.rec.work.Account = a.Number
	return &m.rec.work
}

// handle reads a command's arguments before fn sees them.
func handle[T any](fn func(*Machine, *command, T) *Refusal) func(*Machine, *command) error {
	return func(m *Machine, c *command) error {
		var args T
		if err := json.Unmarshal(c.args, &args); err != nil {
			return fmt.Errorf("%w: arguments of command %s: %w", eventlog.ErrFormat, c.name, err)
		}
		c.out.Refusal = fn(m, c, args)
		return nil
	}
}

// reply sets the answer to the command.
func (c *command) reply(v any) { c.out.Reply = must.JSON(v) }

func (m *Machine) applyCommand(env eventlog.Envelope, name string, args []byte, rows *query.Batch, out *Outcome) error {
	if of, ok := strings.CutPrefix(name, redact.Prefix); ok {
		name, m.rec.redacted = of, true
	}
	switch name {
	case CommandBootstrap, CommandCompanyCreate:
		return m.openAccount(env, name, args, out)
	case CommandPartitionEpoch:
		return m.beginEpoch(env, args, out)
	}
	if do, ok := emaildir.Commands[name]; ok {
		m.rec.name, m.rec.args = name, args
		m.rec.work.Account = env.Account
		return carryOut(&m.rec, do, m.emails, &m.rec.work)
	}
	fn, ok := commandTable[name]
	if !ok {
		return fmt.Errorf("%w: command %q", ErrNewer, name)
	}
	a := m.accounts[env.Account]
	if a == nil {
		out.Refusal = notFound("", "no account has the number %016x", env.Account)
		return nil
	}
	m.rec.name, m.rec.args = name, args
	m.flows.SetReporting(sending.IsReport(name))
	change := m.beginChange(a, name, args)
	if change == nil {
		return fn(m, &m.rec)
	}
	before := segmentDefinition(a, change.ID)
	err := fn(m, &m.rec)
	if err == nil && out.Refusal == nil {
		m.noteChange(a, change, before, out.Reply)
	}
	return err
}

// refuse refuses a command that was refused before it was redacted.
func (m *Machine) refuse(*command, struct{}) *Refusal {
	return &Refusal{Code: "invalid", Message: "the command was refused, and is redacted"}
}

func (m *Machine) setAppSecret(cmd *command, c AppSecretSet) *Refusal {
	a := cmd.account
	e := a.Entity
	e.SecretHash = c.SecretHash
	if err := a.Install(e); err != nil {
		return invalid("secret_hash", "%s", err)
	}
	m.saveAccount(a)
	return nil
}

func (m *Machine) setSettings(cmd *command, s Settings) *Refusal {
	a := cmd.account
	s.Fill()
	if r := s.Validate(); r != nil {
		return r
	}
	if r := a.Sending.CheckConfirmTemplate(s.ConfirmTemplateID); r != nil {
		return r
	}
	if len(m.tasks) >= maxPendingTasks {
		return atLimit("settings", "settings were changed too often in a row; try again in a moment")
	}
	var added []string
	for _, v := range s.Placeholders {
		if !a.Profiles.HasPlaceholder([]byte(v)) {
			added = append(added, strings.ToLower(strings.TrimSpace(v)))
		}
	}
	a.ForgottenMs = a.KeysFromMs(m.logTime)
	e := a.Entity
	e.Settings = s
	if err := a.Install(e); err != nil {
		panic(err) // it was installed before
	}
	if s.PreferencePage != nil {
		m.beginConsentLog(a)
	}
	m.saveAccount(a)
	if len(added) > 0 {
		m.enqueue(task{Account: a.Number, Detach: added})
	}
	return nil
}

func (m *Machine) createSegment(cmd *command, c SegmentSave) *Refusal {
	c.ID = feature.NewID("seg_", cmd.env.ID)
	cmd.reply(map[string]string{"id": c.ID})
	return m.saveSegment(cmd.account, c, true, cmd.out.Offset)
}

func (m *Machine) updateSegment(cmd *command, c SegmentSave) *Refusal {
	cmd.reply(map[string]string{"id": c.ID})
	return m.saveSegment(cmd.account, c, false, cmd.out.Offset)
}

func (m *Machine) saveSegment(a *account.State, c SegmentSave, create bool, offset int64) *Refusal {
	if r := refuse.Name(c.Name); r != nil {
		return r
	}
	old := a.Segments[c.ID]
	switch {
	case create && len(a.Segments) >= maxSegments:
		return atLimit("", "this account has %d segments, the most it can have; delete one first", maxSegments)
	case !create && old == nil:
		return notFound("id", "there is no segment with this id")
	}
	if old != nil {
		if r := feature.OtherVersion(c.IfVersion, old.Version); r != nil {
			return r
		}
	}
	root, err := segment.Parse(c.Definition, segment.Limits{})
	if err != nil {
		return invalid("definition", "%s", err)
	}
	canonical := root.Canonical()
	if len(canonical) > maxDefinitionBytes {
		return invalid("definition", "definition has %d bytes when its numbers and times are written in full, the most is %d; split it into several segments", len(canonical), maxDefinitionBytes)
	}
	if err := segment.CheckRefs(c.ID, root, a.Definition); err != nil {
		return invalid("definition", "%s", err)
	}
	if err := segment.CheckLists(root, func(id string) bool { return a.Contacts.List(id) != nil }); err != nil {
		return invalid("definition", "%s", err)
	}
	s := &Segment{ID: c.ID, Name: c.Name, Definition: canonical, CreatedMs: m.logTime, UpdatedMs: m.logTime, Root: root}
	if old != nil {
		s.CreatedMs = old.CreatedMs
	}
	if old == nil || !bytes.Equal(old.Definition, s.Definition) {
		if n := a.Engine.Leaves() + len(root.Leaves()); n > maxLeaves {
			return atLimit("definition", "definition: the segments of this account would have %d conditions, the most they can have is %d; share conditions or delete segments", n, maxLeaves)
		}
		m.define(a, s, offset)
	}
	a.Segments[s.ID] = s
	m.store.PutEntity(state.EntityKey(a.Number, state.EntitySegment, s.ID), must.PlainJSON(s))
	return nil
}

func (m *Machine) deleteSegment(cmd *command, c SegmentDelete) *Refusal {
	a, id := cmd.account, c.ID
	if a.Segments[id] == nil {
		return notFound("id", "there is no segment with this id")
	}
	now, before := a.SegmentsUsing(id)
	now = append(now, a.UsesOfSegment(id)...)
	switch {
	case len(now) > 0:
		return &Refusal{Code: "conflict", Field: "id", Message: "the segment is used by " + account.JoinUses(now) + "; change those first"}
	case len(before) > 0:
		return &Refusal{Code: "conflict", Field: "id", Message: "the segment is used by the definition that is being replaced of " + account.JoinUses(before) + "; try again when that is live"}
	}
	a.Engine.Undefine(id)
	delete(a.Segments, id)
	m.store.PutEntity(state.EntityKey(a.Number, state.EntitySegment, id), nil)
	return nil
}
