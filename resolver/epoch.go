package resolver

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Epochs say which node acts for a partition of a log that several nodes reach.
//
// What is read, answered or appended does not depend on who owns a partition:
// the state is a function of the log. Only what leaves the process does, and
// that is what epochs are for. A node that takes a partition replays its log and
// appends an epoch record; once that is applied it acts, until another node's
// epoch record stands behind its own. The order in the log decides, no clock.
//
// A node that was frozen does not know yet that another took over. All it can do
// goes through records, and each kind of them is harmless from it:
//
//   - Claims, batches of campaigns, the end and the resumption of a run are
//     refused under an epoch that is not the newest (claim.go). So nothing leaves
//     the process but what was under way when it froze, under the same id.
//   - Outcomes: that a message was sent is true whichever node reports it, and
//     counts once: by then the item or the recipient may be gone. Any other outcome
//     is refused under an older epoch: it would make the attempt of the new owner,
//     which is under way, another one, and that would be repeated.
//   - Events, imports and commands of clients mean the same whichever node appends
//     them.
//   - A tick carries a time and nothing else. What is due is due by log time, in
//     one order, and log time never goes back: an old tick does nothing.
//   - A continue record says that the machine is to go on with what it has begun.
//     With nothing begun it does nothing; one more only does the next piece early.
//   - A chunk of a segment's past names the leaf or state and the place where it
//     goes on; what does not go on where the last one ended is passed over. One
//     that does is exact, whichever node made it: the past is that below the offset
//     at which the state was defined, merges since are followed when it is applied,
//     and a profile that changed since a leaf was defined is judged by that change,
//     not by the chunk. Numbers of leaves and states are never given twice.
//   - erasure.done says that history has erased what was erased below an offset.
//     History is one for all nodes, tasks are in the order of their offsets, and
//     every state has the same: what is confirmed is what was asked for.
//   - A message between partitions about e-mails names a reservation by its id: it
//     is given up or settled once, and what an account's partition answers about
//     its outcome stays true.
//   - api_keys.used reports past uses, the newest counts.
//   - An epoch record that was on its way when its node froze becomes the newest
//     and takes the partition from its owner. Both then see in the log that they
//     do not act or should not: the owner takes the partition again
//     (Node.Take of package node), the other one gives it back.
//
// So epochs need not be in those records. History and checkpoints are no effects
// in this sense: rows are a function of the log, and history takes those of a
// record once, whichever node brings them.

// CommandPartitionEpoch begins an epoch. It is of no account: its number is 0.
const CommandPartitionEpoch = "partition.epoch"

// EpochBegin is the argument of [CommandPartitionEpoch].
type EpochBegin struct {
	Node    string `json:"node"`
	Address string `json:"address,omitempty"`
	// ApplyVersion is that of the node's build. A build that has an older one stops
	// at the record: it does not know the rules of those that follow.
	ApplyVersion int `json:"apply_version"`
}

// CommandPartitionRules says that a build with newer rules than those noted acts from here
// on, on a node that begins no epochs. It is of no account.
const CommandPartitionRules = "partition.rules"

// RulesBegin is the argument of [CommandPartitionRules].
type RulesBegin struct {
	ApplyVersion int `json:"apply_version"`
}

// beginRules notes a build's version of the rules.
func (m *Machine) beginRules(env eventlog.Envelope, args []byte, out *Outcome) error {
	var c RulesBegin
	if err := json.Unmarshal(args, &c); err != nil {
		return fmt.Errorf("%w: arguments of command %s: %w", eventlog.ErrFormat, CommandPartitionRules, err)
	}
	if c.ApplyVersion > ApplyVersion {
		return fmt.Errorf("%w: a record says version %d of the state machine's rules, this build has version %d", ErrNewer, c.ApplyVersion, ApplyVersion)
	}
	if env.Account != 0 {
		out.Refusal = invalid("", "the rules are a partition's, not an account's")
		return nil
	}
	m.noteRules(c.ApplyVersion)
	return nil
}

// noteRules notes the version of the rules of a build that acts from here on.
func (m *Machine) noteRules(version int) {
	if version >= state.RulesNoted {
		m.rules = max(m.rules, version)
	}
}

// NeedsRules reports whether the state has accounts and does not know that a build with the
// present rules acts.
func (m *Machine) NeedsRules() bool { return len(m.accounts) > 0 && m.rules < ApplyVersion }

// Epoch is the time for which a node acts for a partition.
type Epoch = state.Epoch

const maxNodeText = 256 // bytes of a node's id, and of its address

// beginEpoch makes the writer of the record the one who acts.
func (m *Machine) beginEpoch(env eventlog.Envelope, args []byte, out *Outcome) error {
	var c EpochBegin
	if err := json.Unmarshal(args, &c); err != nil {
		return fmt.Errorf("%w: arguments of command %s: %w", eventlog.ErrFormat, CommandPartitionEpoch, err)
	}
	if c.ApplyVersion > ApplyVersion {
		return fmt.Errorf("%w: node %.40q at %.80q has version %d of the state machine's rules, this build has version %d",
			ErrNewer, c.Node, c.Address, c.ApplyVersion, ApplyVersion)
	}
	switch {
	case env.Account != 0:
		out.Refusal = invalid("", "an epoch is a partition's, not an account's")
	case c.Node == "" || len(c.Node) > maxNodeText:
		out.Refusal = invalid("node", "node must have 1 to %d bytes", maxNodeText)
	case len(c.Address) > maxNodeText:
		out.Refusal = invalid("address", "address must have at most %d bytes", maxNodeText)
	default:
		m.epoch = Epoch{
			Number: uint64(out.Offset) + 1, Node: c.Node, Address: c.Address, Session: hex.EncodeToString(env.ID[:]),
			ApplyVersion: c.ApplyVersion, BeganMs: m.logTime,
		}
		m.noteRules(c.ApplyVersion)
		out.Reply = must.JSON(m.epoch)
	}
	return nil
}

// epochEntity is the epoch as a checkpoint has it, nil for none.
func (m *Machine) epochEntity() *Epoch {
	if m.epoch.Number == 0 {
		return nil
	}
	e := m.epoch
	return &e
}
