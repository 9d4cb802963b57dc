// Package feature is what the features of the state machine are made of. A feature is a
// part of an account's state that is apart from events and profiles, such as who may sign
// in. It is a package of its own: tables of entities, the commands that change them, and
// what is asked of them. It does not know the machine; the machine keeps one state of the
// feature for each account, gives its commands their arguments, and writes what they
// changed to checkpoints.
package feature

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Tx is the work of one record on an account.
type Tx struct {
	Account uint64
	AtMs    int64 // log time, Unix ms
	Record  eventlog.RecordID
	Offset  int64 // of the record
	Store   *state.Store
	Rules   int // the version of the rules that the record is applied by, 0 before [state.RulesNoted]
	// Reply is the answer to a command, a value that becomes JSON; nil for none.
	Reply any
	// AccessChanged means that what requests know of accounts without a read may have
	// changed: which keys let them in, and what they may do.
	AccessChanged bool
}

// NewID makes an entity's id from the record that creates it.
func NewID(prefix string, record eventlog.RecordID) string {
	return prefix + hex.EncodeToString(record[:])
}

// ParseHash reads a SHA-256 in hexadecimal.
func ParseHash(text string) (hash [32]byte, ok bool) {
	if len(text) != 2*len(hash) {
		return hash, false
	}
	_, err := hex.Decode(hash[:], []byte(text))
	return hash, err == nil
}

// Command changes the state S of an account by a command's arguments, or changes nothing
// and returns why. An error means that the arguments cannot be read.
type Command[S any] func(s S, tx *Tx, args []byte) (*refuse.Refusal, error)

// Do reads a command's arguments before fn sees them.
func Do[S, A any](fn func(S, *Tx, A) *refuse.Refusal) Command[S] {
	return func(s S, tx *Tx, args []byte) (*refuse.Refusal, error) {
		var a A
		if err := json.Unmarshal(args, &a); err != nil {
			return nil, fmt.Errorf("%w: %w", eventlog.ErrFormat, err)
		}
		return fn(s, tx, a), nil
	}
}

// Listener is a state that takes note of the events of a type.
type Listener interface {
	// OnEvent is called for each event of the type that was sent to the service, with the
	// profile and the event's own time (Unix ms).
	OnEvent(tx *Tx, ordinal uint32, atMs int64)
}

// Reader is a state to which events of some types say more than that they happened. What they
// say becomes part of it with the event.
type Reader interface {
	// Reads reports whether events of a type say something. It is asked of every event.
	Reads(eventType []byte) bool
	// Read reads an event before it is known whose it is. repeats means that the state has
	// what it says already, of a profile: the event is then answered as a duplicate of that
	// profile's, and changes nothing.
	Read(tx *Tx, ev *eventlog.Event) (of uint32, repeats bool)
	// Take makes what was read last part of the state, once the event is recorded on a
	// profile at its own time (Unix ms). What it returns is recorded after it.
	Take(tx *Tx, ordinal uint32, atMs int64) []Recorded
	// Warning says what of the event that was read last was not taken over, or why it is
	// a repetition; "" when all was taken.
	Warning() string
}

// Merger is a state that has something of profiles.
type Merger interface {
	// Merge makes what it has of a merged profile the winner's.
	Merge(tx *Tx, winner, merged uint32)
}

// Eraser is a state that has something of profiles, or of people.
type Eraser interface {
	// Erase removes erased profiles.
	Erase(tx *Tx, ordinals ...uint32) error
}

// Timer is a state in which something falls due.
type Timer interface {
	// Advance does what is due at the record's time.
	Advance(tx *Tx)
	// NextDue is the earliest instant (Unix ms) at which Advance has something to do; ok is
	// false for none.
	NextDue() (ms int64, ok bool)
}

// Opener is a state that is made ready once all that a checkpoint has is loaded.
type Opener interface {
	// Open makes it ready, in an account with so many profiles. An error says that what was
	// loaded does not fit together.
	Open(profiles uint32) error
}

// Freezer is a state that keeps changes to itself until a checkpoint begins.
type Freezer interface {
	// Freeze hands to the store what has changed and is not there yet.
	Freeze()
}

// Keyed is a state with texts of profiles in the store, which checkpoints are rid of after an
// erasure.
type Keyed interface {
	// Keys are the texts of the profiles.
	Keys(ordinals ...uint32) []string
}

// State is a feature's state in an account.
type State interface {
	// Load takes back what a checkpoint has; known is false for an entity that is not
	// the feature's.
	Load(kind byte, name string, value []byte) (known bool, err error)
	// Hash gives put the whole state, in an order that depends on it alone. The error says
	// that something derived from the entities does not follow them.
	Hash(put func([]byte)) error
}
