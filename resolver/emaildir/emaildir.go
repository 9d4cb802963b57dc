// Package emaildir is the directory of contacts' e-mails. They are unique among all
// accounts, and so among all partitions. In a log of one partition its machine sees them
// all, and [State.Hold] is all there is to it. In a log of several, partition 0 keeps a
// directory of who holds which name, and nothing is a contact's e-mail in any partition
// before the directory has it:
//
//  1. reserve: the directory notes the names, under an id, for the account;
//  2. the command that makes or changes the contact carries what was reserved, as
//     its [Grant]. The account's partition takes no e-mail without one, and
//     none at or behind the instant until which it was reserved;
//  3. confirm, or release what the command did not take.
//
// The node may stop at any of these steps, and any of them may be done twice
// or late. What is neither confirmed nor released in time is reconciled by the owner
// of the directory: it asks the account's partition, by a command whose time is
// past that instant. From then on the partition refuses the grant by its own time,
// so the answer stands: confirmed is what it holds, released what it does not.
//
// What is erased is released by a queue in the state of the account's partition.
// All names are by id: what repeats, or comes late, meets another id or none.
//
// The invariants, as tests name them:
//
//   - M1: at any instant at most one account among all partitions holds a name;
//   - M2: what an account holds the directory has, for that account under that
//     id; an answered creation holds its e-mail;
//   - M3: what was refused, or stopped half way, is held for no longer than until
//     it is reconciled; erased e-mails are free in the end;
//   - M4: an e-mail is refused as a duplicate only if a contact had it at some
//     instant between question and answer.
package emaildir

import (
	"encoding/hex"
	"fmt"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// The commands of reservations. Reserve, confirm and release are the directory's,
// of account 0 in partition 0; reconcile is the account's; released is of account 0 in
// the partition whose queue it shortens.
const (
	CommandReserve   = "email.reserve"
	CommandConfirm   = "email.confirm"
	CommandRelease   = "email.release"
	CommandReconcile = "email.settle"
	CommandReleased  = "email.released"
)

// The bounds of reservations. They are part of the rules: changing one changes
// what Apply does and needs a new version of the state machine's rules.
const (
	MaxItems      = 512 // of one record
	maxEmailNames = 4   // of one item
	// MaxReserved bounds what is neither confirmed nor released. One takes some
	// 200 bytes of memory; what is confirmed is on disk.
	MaxReserved = 100_000
	// MaxReleases bounds what a partition has yet to release.
	MaxReleases = 200_000
	// maxReserveMs is how far ahead the end of a reservation may be.
	maxReserveMs = 10 * 60_000
)

// Name is an e-mail among all accounts, or all e-mails with one folded form:
// its hash.
type Name identifier.Hash

// ReservationID names a reservation. The one of zeros is of what was reserved
// before there were several partitions.
type ReservationID [16]byte

// MarshalText writes the name in hexadecimal.
func (n Name) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, n[:]), nil }

// UnmarshalText reads a name.
func (n *Name) UnmarshalText(b []byte) error { return unhex(n[:], b) }

// MarshalText writes the id in hexadecimal.
func (id ReservationID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

// UnmarshalText reads an id.
func (id *ReservationID) UnmarshalText(b []byte) error { return unhex(id[:], b) }

// unhex fills dst. Decode panics on what is longer than its destination.
func unhex(dst, b []byte) error {
	if len(b) != hex.EncodedLen(len(dst)) {
		return fmt.Errorf("%q does not have %d hexadecimal digits", b, hex.EncodedLen(len(dst)))
	}
	_, err := hex.Decode(dst, b)
	return err
}

// Grant is what a command that may give a contact an e-mail has of the
// directory. The node sets it where there are several partitions; without one the
// machine sees all e-mails there are.
type Grant struct {
	ID      ReservationID `json:"id"`
	Names   []Name        `json:"names,omitempty"`
	UntilMs int64         `json:"until_ms,omitempty"` // log time, Unix ms
	// Taken says that another account has the e-mail.
	Taken bool `json:"taken,omitempty"`
}

// Reserve asks the directory for names.
type Reserve struct {
	Items []Ask `json:"items"`
}

// Ask asks for names of one e-mail under a new id. No other account may hold any of
// Check.
type Ask struct {
	Account uint64        `json:"account"`
	ID      ReservationID `json:"id"`
	Take    []Name        `json:"take"`
	Check   []Name        `json:"check,omitempty"`
	UntilMs int64         `json:"until_ms"`
}

// Answer says what became of an [Ask].
type Answer string

// The answers of the directory.
const (
	Granted Answer = "granted"
	// Taken means that another account has the e-mail.
	Taken Answer = "taken"
	// Busy means that it is not decided yet which account has it; ask again.
	Busy Answer = "busy"
	// Full means that too many reservations are not reconciled.
	Full Answer = "full"
	// Ahead means that UntilMs is too far ahead of the directory's time.
	Ahead Answer = "ahead"
)

// Reserved answers [Reserve], item by item.
type Reserved struct {
	Items []Answered `json:"items"`
}

// Answered answers an [Ask].
type Answered struct {
	Answer Answer `json:"answer"`
	// At says which reservation under the id is meant: one that was released may be
	// made again by a record that comes late. 0 is one that needs no confirmation.
	At int64 `json:"at,omitempty"`
}

// Confirm says that accounts hold what was reserved.
type Confirm struct {
	Items []Confirmed `json:"items"`
}

// Confirmed is a reservation whose names are held.
type Confirmed struct {
	ID ReservationID `json:"id"`
	At int64         `json:"at"`
}

// Release gives up names.
type Release struct {
	Items []Names `json:"items"`
}

// Names are names of an account under one id.
type Names struct {
	Account uint64        `json:"account"`
	ID      ReservationID `json:"id"`
	Names   []Name        `json:"names"`
	// UntilMs is set where it is asked who holds them.
	UntilMs int64 `json:"until_ms,omitempty"`

	at int64 // of the reservation
}

// Reconcile asks an account's partition which names the account holds. It is
// refused before the time until which they were reserved.
type Reconcile struct {
	Items []Names `json:"items"`
}

// Reconciled answers [Reconcile]: the names that are held, item by item.
type Reconciled struct {
	Held [][]Name `json:"held"`
}

// Released says that the directory has released names.
type Released struct {
	Items []Names `json:"items"`
}

// Commands are of a partition rather than of one of its accounts, but for
// [CommandReconcile].
var Commands = map[string]feature.Command[*State]{
	CommandReserve:   feature.Do((*State).reserve),
	CommandConfirm:   feature.Do((*State).confirm),
	CommandRelease:   feature.Do((*State).release),
	CommandReconcile: feature.Do((*State).closeGrants),
	CommandReleased:  feature.Do((*State).forgetReleases),
}

// checkItems bounds the work of one record.
func checkItems(items []Names) *refuse.Refusal {
	if len(items) > MaxItems {
		return refuse.AtLimit("items", "items must have at most %d entries", MaxItems)
	}
	for i := range items {
		if n := len(items[i].Names); n < 1 || n > maxEmailNames {
			return refuse.Invalid("items", "items[%d].names must have 1 to %d entries", i, maxEmailNames)
		}
	}
	return nil
}
