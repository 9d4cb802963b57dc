package resolver

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/inapp"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/changes"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/redact"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/sending"
	"github.com/musterhq/muster/resolver/sources"
)

// commandTable says what each command does. A handler sets the outcome's
// refusal, or changes the state and may set a reply; an error means that the
// arguments cannot be read, and is fatal.
var commandTable = commands()

// commands returns the machine's own commands, and those of features, which come from their
// table (see [account.Commands]). A name stands for one command.
func commands() map[string]func(*Machine, *transaction) error {
	table := map[string]func(*Machine, *transaction) error{
		CommandAppSecretSet:              handle((*Machine).setAppSecret),
		CommandSettingsSet:               handle((*Machine).setSettings),
		CommandSegmentCreate:             handle((*Machine).createSegment),
		CommandSegmentUpdate:             handle((*Machine).updateSegment),
		CommandSegmentDelete:             handle((*Machine).deleteSegment),
		contacts.CommandListAdd:          handle((*Machine).addToList),
		identrules.CommandListAdd1:       handle((*Machine).addToList),
		contacts.CommandCreate:           handle((*Machine).createContact),
		identrules.CommandContactCreate1: handle((*Machine).createContact),
		contacts.CommandUpdate:           handle((*Machine).updateContact),
		CommandContactErase:              handle((*Machine).eraseContact),
		redact.CommandRefused:            handle((*Machine).refuse),

		messages.CommandPreferences: handle((*Machine).savePreferences),

		inapp.CommandMark: handle((*Machine).markInApp),

		CommandOutboxClaim: handle((*Machine).claimOutbox),

		outbox.CommandWebhookDelete: handle((*Machine).deleteWebhook),

		CommandCompanyUpdate:      handle((*Machine).updateCompany),
		CommandCreditsAdd:         handle((*Machine).addCredits),
		access.CommandAPIKeysUsed: handle((*Machine).recordKeyUses),
		sources.CommandUsed:       handle((*Machine).recordSourceUses),
	}
	for name, do := range account.Commands() {
		if table[name] != nil || emaildir.Commands[name] != nil {
			panic("command " + name + " is registered twice")
		}
		table[name] = func(m *Machine, tx *transaction) error {
			on := tx.on(tx.account)
			err := carryOut(tx, do, tx.account, on)
			m.accountsChanged = m.accountsChanged || on.AccessChanged
			return err
		}
	}
	return table
}

// carryOut has a feature's command change its state.
func carryOut[S any](tx *transaction, do feature.Command[S], s S, on *feature.Tx) error {
	on.Reply = nil
	refusal, err := do(s, on, tx.args)
	if err != nil {
		return fmt.Errorf("arguments of command %s: %w", tx.name, err)
	}
	if tx.out.Refusal = refusal; on.Reply != nil {
		tx.reply(on.Reply)
	}
	return nil
}

// handle reads a command's arguments before fn sees them.
func handle[T any](fn func(*Machine, *transaction, T) *Refusal) func(*Machine, *transaction) error {
	return func(m *Machine, tx *transaction) error {
		var args T
		if err := json.Unmarshal(tx.args, &args); err != nil {
			return fmt.Errorf("%w: arguments of command %s: %w", eventlog.ErrFormat, tx.name, err)
		}
		tx.out.Refusal = fn(m, tx, args)
		return nil
	}
}

func (m *Machine) applyCommand(env eventlog.Envelope, name string, args []byte, rows *query.Batch, out *Outcome) error {
	if of, ok := strings.CutPrefix(name, redact.Prefix); ok {
		name, m.tx.redacted = of, true
	}
	switch name {
	case CommandBootstrap, CommandCompanyCreate:
		return m.openAccount(env, name, args, out)
	case CommandPartitionEpoch:
		return m.beginEpoch(env, args, out)
	case CommandPartitionRules:
		return m.beginRules(env, args, out)
	}
	if do, ok := emaildir.Commands[name]; ok {
		m.tx.name, m.tx.args = name, args
		m.tx.feature.Account = env.Account
		return carryOut(&m.tx, do, m.emailDirectory, &m.tx.feature)
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
	m.tx.name, m.tx.args = name, args
	m.tx.flows.SetReporting(sending.IsReport(name))
	audited := auditedCommands[name]
	change := changes.Begin(a, audited.kind, audited.action, args)
	err := fn(m, &m.tx)
	if change != nil && err == nil && out.Refusal == nil {
		change.Note(m.tx.on(a), out.Reply)
	}
	return err
}

// refuse refuses a command that was refused before it was redacted.
func (m *Machine) refuse(*transaction, struct{}) *Refusal {
	return &Refusal{Code: "invalid", Message: "the command was refused, and is redacted"}
}
