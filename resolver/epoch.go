package resolver

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/state"
)

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

// CommandPartitionRules says that a build with newer rules than those noted runs from here
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

// noteRules notes the version of the rules of a build that runs from here on.
func (m *Machine) noteRules(version int) {
	if version < state.RulesNoted || version <= m.rules {
		return
	}
	m.rules = version
	for _, a := range m.byIndex {
		m.shareWindows(a)
	}
}

// rulesWindows is the version from which on the windows of an account's segments share states.
const rulesWindows = 26

func (m *Machine) shareWindows(a *account.State) {
	if m.rules >= rulesWindows {
		a.Engine.ShareWindows()
	}
}

// NeedsRules reports whether the state has accounts and does not know that a build with the
// present rules runs.
func (m *Machine) NeedsRules() bool { return len(m.accounts) > 0 && m.rules < ApplyVersion }

// Epoch is the time for which a node holds the lease of a partition.
type Epoch = state.Epoch

const maxNodeText = 256 // bytes of a node's id, and of its address

// beginEpoch gives the lease to the writer of the record.
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
