// Package erasure keeps erased persons out. When a profile is erased, the hashes of its
// identifiers stay as marks: what comes later with such an identifier is refused, until the
// mark is revoked. What the person had refused by then holds again for the profile that the
// identifier is stored with afterwards.
//
// An erasure is over once history, the log and the checkpoints hold nothing of the person.
// Until then it is a task, and so is what was refused because of erased persons and may be
// in the log. The node that carries tasks out takes them in a [Batch] and reports them by
// [CommandDone].
package erasure

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// Message is the refusal of an identifier whose person was erased.
const Message = "this person was erased and may not be stored again"

const (
	// maxMarks bounds the marks of an account. One takes some 60 bytes.
	maxMarks = 5_000_000
	// maxTasks bounds the erasures that history has not confirmed.
	maxTasks = 10_000
)

// Mark keeps an identifier of an erased person out. The identifier itself is not kept, only
// its hash under the account's key.
type Mark struct {
	Hash string `json:"hash,omitempty"`
	Kind string `json:"kind"`
	AtMs int64  `json:"at_ms"`
	// At is the offset of the record that erased the person: what comes later and
	// has the identifier is refused.
	At int64 `json:"at,omitempty"`
	// Refused is what the person, or the account, had refused by then. It holds
	// again for the profile that the identifier is stored with after the mark was
	// revoked.
	Refused []Refused `json:"refused,omitempty"`
	// RevokedMs is when the mark was revoked, 0 while it keeps the identifier out.
	RevokedMs int64 `json:"lifted_ms,omitempty"`
}

// Task is an erasure that history has not confirmed yet.
type Task struct {
	UpTo     int64    `json:"up_to"` // rows of the ordinals are below
	Ordinals []uint32 `json:"ordinals"`
	// Hashes are those of the person's identifiers, in hexadecimal.
	Hashes []string `json:"hashes,omitempty"`
}

// AddHash adds an identifier of the person.
func (t *Task) AddHash(h identifier.Hash) { t.Hashes = append(t.Hashes, hex.EncodeToString(h[:])) }

// refusedRange says that what was refused because of erased persons may be in the
// log, from an offset on.
type refusedRange struct {
	From int64 `json:"from"`
	UpTo int64 `json:"up_to"`
}

// State is the erasures of an account.
type State struct {
	account uint64
	hasher  func() identifier.Hasher // the account's, which may change

	marks   map[identifier.Hash]Mark
	revoked map[identifier.Hash]Mark // what was refused before an erasure whose mark was revoked
	tasks   []*Task                  // the oldest first
	refused refusedRange

	// refusing says that the record being applied, or a part of it, was refused because
	// of an identifier of an erased person.
	refusing bool
	// doneBelow is the offset below which history was last said to have erased, by the
	// records applied since the state was loaded. No part of the state.
	doneBelow int64
	// newest is the offset behind the newest erasure that is known. It stays when marks go,
	// until the state is loaded again. No part of the state.
	newest int64
}

// New returns the state of an account without erasures.
func New(account uint64, hasher func() identifier.Hasher) *State {
	return &State{account: account, hasher: hasher, marks: map[identifier.Hash]Mark{}, revoked: map[identifier.Hash]Mark{}}
}

// Erased reports whether an identifier is kept out.
func (s *State) Erased(h identifier.Hash) bool {
	if len(s.marks) == 0 {
		return false
	}
	_, is := s.marks[h]
	return is
}

// MarkedAt is the offset of the record by which an identifier is kept out; not ok is one
// that is not.
func (s *State) MarkedAt(h identifier.Hash) (offset int64, ok bool) {
	x, ok := s.marks[h]
	return x.At, ok
}

// Marks counts the identifiers that are kept out.
func (s *State) Marks() int { return len(s.marks) }

// Pending is how many erasures history has not confirmed.
func (s *State) Pending() int { return len(s.tasks) }

// Refuse is the refusal of an identifier of a kind whose person was erased.
func Refuse(k identifier.Kind) *refuse.Refusal {
	return &refuse.Refusal{Code: "forbidden", Field: "user." + k.String(), Message: "user." + k.String() + ": " + Message}
}

// NoteRefused notes that the record's text is to leave the log: it, or a part of it, was
// refused because of an erased person.
func (s *State) NoteRefused() { s.refusing = true }

// NoteNamed is NoteRefused if an identifier is an erased person's.
func (s *State) NoteNamed(h identifier.Hash) {
	if s.Erased(h) {
		s.refusing = true
	}
}

// EndRecord ends the record of tx: what was noted of it becomes a part of the state.
func (s *State) EndRecord(tx *feature.Tx) {
	if !s.refusing {
		return
	}
	s.refusing = false
	if s.refused.UpTo == 0 {
		s.refused.From = tx.Offset
	}
	s.refused.UpTo = tx.Offset + 1
	s.saveRefused(tx)
}

func (s *State) saveRefused(tx *feature.Tx) {
	var b []byte
	if s.refused.UpTo != 0 {
		b = must.JSON(s.refused)
	}
	tx.Store.PutEntity(s.key(entityRefused, nil), b)
}

// Room refuses the erasure of a profile with a number of identifiers that there is no room
// for.
func (s *State) Room(identifiers int) *refuse.Refusal {
	switch {
	case len(s.tasks) >= maxTasks:
		return refuse.AtLimit("", "%d erasures wait for history to take part, the most that can; try again later", maxTasks)
	case len(s.marks)+len(s.revoked)+identifiers > maxMarks:
		return refuse.AtLimit("", "this account keeps %d identifiers of erased persons out, the most it can; lift some first", maxMarks)
	}
	return nil
}

// KeepOut marks an identifier of the person whom a task erases, and adds it to the task.
func (s *State) KeepOut(tx *feature.Tx, t *Task, k identifier.Kind, h identifier.Hash, refused []Refused) {
	t.AddHash(h)
	x := Mark{Kind: k.String(), AtMs: tx.AtMs, At: t.UpTo - 1, Refused: refused}
	s.marks[h] = x
	s.newest = max(s.newest, t.UpTo)
	tx.Store.PutEntity(s.key(entityMark, h[:]), must.JSON(x))
}

// Begin begins a task: the erasure is done, but for files.
func (s *State) Begin(tx *feature.Tx, t *Task) {
	s.tasks = append(s.tasks, t)
	tx.Store.PutEntity(s.taskKey(t), must.JSON(t))
}

// The names of entities of kind [state.EntityErased].
const (
	entityMark    = 'h' // a hash
	entityTask    = 't' // an offset
	entityRefused = 'r' // nothing
)

func (s *State) key(what byte, name []byte) string {
	return state.EntityKey(s.account, state.EntityErased, string(append([]byte{what}, name...)))
}

func (s *State) taskKey(t *Task) string {
	return s.key(entityTask, binary.BigEndian.AppendUint64(nil, uint64(t.UpTo)))
}

// Load takes back an entity that a checkpoint has, see [feature.State]. Tasks come in their
// order.
func (s *State) Load(kind byte, name string, value []byte) (known bool, err error) {
	if kind != state.EntityErased {
		return false, nil
	}
	if name == "" {
		return true, errors.New("erasure without a name")
	}
	switch what, rest := name[0], name[1:]; what {
	case entityMark:
		var x Mark
		if len(rest) != len(identifier.Hash{}) {
			return true, errors.New("erasure of the wrong length")
		}
		err := json.Unmarshal(value, &x)
		s.newest = max(s.newest, x.At+1)
		if x.RevokedMs != 0 {
			s.revoked[identifier.Hash([]byte(rest))] = x
		} else {
			s.marks[identifier.Hash([]byte(rest))] = x
		}
		return true, err
	case entityTask:
		t := new(Task)
		err := json.Unmarshal(value, t)
		s.tasks = append(s.tasks, t)
		return true, err
	case entityRefused:
		return true, json.Unmarshal(value, &s.refused)
	}
	return true, fmt.Errorf("%w: erasure of kind %q", statefiles.ErrNewer, name[0])
}

// Hash gives put the whole state, see [feature.State].
func (s *State) Hash(put func([]byte)) error {
	for _, marks := range [...]map[identifier.Hash]Mark{s.marks, s.revoked} {
		for _, h := range sortedHashes(marks) {
			put(h[:])
			put(must.JSON(marks[h]))
		}
	}
	for _, t := range s.tasks {
		put(must.JSON(t))
	}
	if s.refused.UpTo != 0 {
		put(must.JSON(s.refused))
	}
	return nil
}

func sortedHashes(marks map[identifier.Hash]Mark) []identifier.Hash {
	return slices.SortedFunc(maps.Keys(marks), func(x, y identifier.Hash) int { return bytes.Compare(x[:], y[:]) })
}

// List lists the identifiers that are kept out, in order of their hashes, behind one, limit
// at most.
func (s *State) List(after string, limit int) []Mark {
	var out []Mark
	for _, h := range sortedHashes(s.marks) {
		x := s.marks[h]
		if x.Hash = hex.EncodeToString(h[:]); x.Hash <= after {
			continue
		}
		if len(out) == limit {
			break
		}
		out = append(out, x)
	}
	return out
}

// DoneBelow is the offset behind the newest erasure that was ended by a record applied since
// the state was loaded, 0 where there is none.
func (s *State) DoneBelow() int64 { return s.doneBelow }

// Newest is the offset behind the newest erasure that left a mark, or was ended by a record
// applied since the state was loaded; 0 where there is none. It only grows, but for a load,
// which does not know of marks that were removed.
func (s *State) Newest() int64 { return s.newest }

// Refused is an opt-out of a channel, or a suppression of one.
type Refused struct {
	Channel byte                      `json:"channel"`
	Reason  profile.SuppressionReason `json:"reason,omitempty"` // 0 for an opt-out
	SinceMs int64                     `json:"since_ms"`
}

// RefusedBy are the opt-outs and suppressions of a profile. Their source is not among them: it
// is a text that may name a person.
func RefusedBy(d *profile.Document) (out []Refused) {
	for _, c := range d.Consents {
		if c.Status == profile.ConsentUnsubscribed {
			out = append(out, Refused{Channel: c.Channel, SinceMs: c.SinceMs})
		}
	}
	for _, b := range d.Suppressions {
		if b.Reason != profile.SuppressionPending {
			out = append(out, Refused{Channel: b.Channel, Reason: b.Reason, SinceMs: b.SinceMs})
		}
	}
	return out
}

// Restore makes refusals hold for a profile that an identifier is attached to whose mark
// was revoked, in its document. The mark is done with: the profile has them from then on.
func (s *State) Restore(tx *feature.Tx, d *profile.Document, h identifier.Hash) (changed bool) {
	if len(s.revoked) == 0 {
		return false
	}
	mark, ok := s.revoked[h]
	if !ok {
		return false
	}
	for _, x := range mark.Refused {
		changed = true
		if x.Reason != 0 {
			d.Suppress(profile.Suppression{Channel: x.Channel, Reason: x.Reason, SinceMs: x.SinceMs}, tx.Rules)
			continue
		}
		d.MergeConsent(profile.Consent{Channel: x.Channel, Status: profile.ConsentUnsubscribed, SinceMs: x.SinceMs})
		if !d.Subscribed(x.Channel) {
			d.Unsuppress(x.Channel, profile.SuppressionPending)
		}
	}
	delete(s.revoked, h)
	tx.Store.PutEntity(s.key(entityMark, h[:]), nil)
	return changed
}
