package resolver

import (
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/feature"
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

// reply sets the answer to the command.
func (c *command) reply(v any) { c.out.Reply = must.JSON(v) }
