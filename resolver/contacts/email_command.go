package contacts

import (
	"encoding/json"
	"fmt"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/emaildir"
)

// EmailCommand is a command that may give a contact an e-mail: see package reservation.
type EmailCommand struct {
	name   string
	create Create
	update Update
	add    ListAdd
}

// takesEmail reports whether a command may give a contact an e-mail. These are all:
// events reserve nothing, and flows set no identifiers.
func takesEmail(name string) bool {
	return name == CommandCreate || name == CommandUpdate || name == CommandListAdd
}

// ParseEmailCommand reads a record of a command that may give a contact an e-mail, and
// returns nil for one of any other command.
func ParseEmailCommand(rec []byte) (*EmailCommand, error) {
	_, body, err := eventlog.DecodeEnvelope(rec)
	if err != nil {
		return nil, err
	}
	name, args, err := eventlog.DecodeCommand(body)
	if err != nil || !takesEmail(name) {
		return nil, err
	}
	return NewEmailCommand(name, args)
}

// NewEmailCommand reads the arguments of a command that may give a contact an e-mail.
func NewEmailCommand(name string, args []byte) (*EmailCommand, error) {
	c := &EmailCommand{name: name}
	into := map[string]any{CommandCreate: &c.create, CommandUpdate: &c.update, CommandListAdd: &c.add}[name]
	if err := json.Unmarshal(args, into); err != nil {
		return nil, fmt.Errorf("arguments of command %s: %w", name, err)
	}
	return c, nil
}

// Name is the command's.
func (c *EmailCommand) Name() string { return c.name }

// Changes is the id of the contact that the command changes; ok is false for a command that
// makes a contact, or adds one to a list.
func (c *EmailCommand) Changes() (id string, ok bool) {
	return c.update.ID, c.name == CommandUpdate
}

// Email is the one that the command gives, "" for none.
func (c *EmailCommand) Email() string {
	switch c.name {
	case CommandCreate:
		return c.create.Email
	case CommandListAdd:
		return c.add.Create.Email
	}
	if c.update.Email == nil {
		return ""
	}
	return *c.update.Email
}

// Args are the command's, with the grant.
func (c *EmailCommand) Args(g emaildir.Grant) []byte {
	c.create.Grant, c.add.Create.Grant, c.update.Grant = &g, &g, &g
	switch c.name {
	case CommandCreate:
		return must.JSON(c.create)
	case CommandListAdd:
		return must.JSON(c.add)
	}
	return must.JSON(c.update)
}
