package resolver

import (
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine"
)

// transaction is the work of the record that is being applied: what the record says, what
// came of it so far, and memory that is used again for each record. A machine has one, which
// [Machine.begin] readies for each record: nothing but memory outlives a record.
type transaction struct {
	// What the record says. Records of all accounts move on account from one to the next.
	account *account.State // nil for an account that is not there
	env     eventlog.Envelope
	name    string // of a command
	args    []byte // of a command, JSON
	// redacted says that what concerns an erased person was taken out of the
	// arguments: identifiers may be masked.
	redacted bool

	// What came of it.
	rows       *query.Batch // for history, the caller's
	out        *Outcome     // the caller's
	transition uint32       // number of the newest one of this record
	row        uint32       // index of the next event that the record itself records

	// The same record as the parts of an account see it, each with its own scratch memory.
	feature  feature.Tx
	profiles resolution.Work
	flows    automation.Work
	queued   outbox.Work

	scratch
}

// scratch is memory that the machine's own code uses again for each record. A function that
// has values in it calls none that may use the same. Between records [Machine.MissingEmail]
// uses it, too, which keeps the machine's lock for it.
type scratch struct {
	other   profile.Document // beside the record's own, which is profiles.Doc
	facts   segment.Facts
	sentKey []byte
	normal  []byte                               // the normal form of an identifier
	near    [resolution.WindowEvents]engine.Near // of readWindow
}

// begin readies the transaction for a record at the machine's log time.
func (m *Machine) begin(a *account.State, env eventlog.Envelope, rows *query.Batch, out *Outcome) {
	tx := &m.tx
	tx.account, tx.env, tx.name, tx.args, tx.redacted = a, env, "", nil, false
	tx.rows, tx.out, tx.transition, tx.row = rows, out, 0, 0
	if env.Kind == eventlog.KindEvents || env.Kind == eventlog.KindImport {
		tx.row = ownRows // the record's events come first
	}
	tx.feature = feature.Tx{AtMs: m.logTime, Record: env.ID, Offset: out.Offset, Store: m.store, Rules: m.rules}
	tx.profiles.Begin(m.logTime, m.rules)
	tx.flows.Begin(m.logTime, m.flows.Bounds)
	tx.queued.Begin()
}

// on is the record's work on an account as features see it. It holds until the next call.
func (tx *transaction) on(a *account.State) *feature.Tx {
	tx.feature.Account = a.Number
	return &tx.feature
}

// reply sets the answer to the command.
func (tx *transaction) reply(v any) { tx.out.Reply = must.JSON(v) }
