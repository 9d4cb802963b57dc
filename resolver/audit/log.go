// Package audit has the audit log of an account: who changed what, and when.
//
// A command says who made it in the field "_by" of its arguments, which nothing else looks
// at; commands without it, as those of older logs, are not in the audit log. No values are
// kept but definitions of segments, and contents (contents.go): the versions of what was
// changed. The newest entries stay, as many as there is room for.
package audit

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The bounds of the audit log of an account. The oldest changes are dropped.
const (
	MaxChanges         = 2000
	MaxDefinitionBytes = 4 << 20 // of definitions together
	// maxDefinition is the longest definition that is kept.
	maxDefinition = 64 << 10
)

// The kinds of authors of changes.
const (
	ByUser = "user"
	ByKey  = "key"
)

// Author is who made a change.
type Author struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// Change is one entry of the audit log.
type Change struct {
	Seq    uint64 `json:"seq"` // from 1
	AtMs   int64  `json:"at_ms"`
	By     Author `json:"by"`
	Action string `json:"action"` // such as segment.update
	Kind   string `json:"kind"`   // of what was changed
	ID     string `json:"id,omitempty"`
	Name   string `json:"name,omitempty"`
	// Fields are the names of what was set; of segments and settings those that are
	// other than before.
	Fields []string `json:"fields,omitempty"`
	// Definition is a segment's as of the change; empty for one that is too long.
	Definition json.RawMessage `json:"definition,omitempty"`
	// ContentBytes is the length of what it is then, of a flow, template or settings; 0
	// where the command does not say that it is kept, as in older logs.
	ContentBytes int `json:"content_bytes,omitempty"`

	// Keeps says that the content is to be kept. It is not stored.
	Keeps bool `json:"-"`
}

// line is the part of a change that is in memory.
type line struct {
	seq      uint64
	kind, id string
	bytes    int // of the definition
	content  int // bytes of the content, 0 for none that is kept
	// version says that there was a content.
	version bool
}

// State is the audit log of an account.
type State struct {
	account  uint64
	store    *state.Store
	lines    []line // in order
	bytes    int    // of definitions
	contents int    // bytes of contents that are kept
}

// New returns an empty audit log, whose entries are in the store.
func New(account uint64, store *state.Store) *State { return &State{account: account, store: store} }

// byField is the field of a command's arguments that says who made it.
const byField = `"_by":`

// signature is the value of the field "_by".
type signature struct {
	Author
	// Keeps says that the content of what is changed is kept.
	Keeps bool `json:"keeps,omitempty"`
}

// Sign adds the author to the arguments of a command. It is nil for arguments that are no
// object.
func Sign(args any, by Author) json.RawMessage {
	b := must.JSON(args)
	if len(b) < 2 || b[len(b)-1] != '}' {
		return nil
	}
	b = b[:len(b)-1]
	if len(b) > 1 {
		b = append(b, ',')
	}
	b = append(append(b, byField...), must.JSON(signature{by, true})...)
	return append(b, '}')
}

// Signed is what the arguments of a signed command say of what it changes, "" for nothing.
type Signed struct {
	By              Author
	Keeps           bool // the content of what is changed
	ID, Name, Group string
}

// ReadSigned reads the arguments of a command; not ok means that they are not signed.
func ReadSigned(args []byte) (c Signed, ok bool) {
	if !bytes.Contains(args, []byte(byField)) {
		return c, false
	}
	var in struct {
		By    *signature `json:"_by"`
		ID    string     `json:"id"`
		Name  string     `json:"name"`
		Group string     `json:"group"`
	}
	// Fields of other types are not read: what they are is the command's to judge.
	if err := json.Unmarshal(args, &in); in.By == nil || in.By.ID == "" && err != nil {
		return c, false
	}
	return Signed{in.By.Author, in.By.Keeps, in.ID, in.Name, in.Group}, true
}

// Add adds a change, which gets its number and its time. content is what was changed as of
// then, nil for what has no contents; it is kept if the change says so.
func (s *State) Add(tx *feature.Tx, c *Change, content []byte) {
	if len(c.Definition) > maxDefinition {
		c.Definition = nil
	}
	c.Seq, c.AtMs = 1, tx.AtMs
	if n := len(s.lines); n > 0 {
		c.Seq = s.lines[n-1].seq + 1
	}
	if c.Keeps {
		s.keepContent(c, content)
	}
	s.store.PutEntity(s.key(c.Seq), must.JSON(c))
	s.add(c)
	drop := func(seq uint64) { s.store.PutEntity(s.contentKey(seq), nil) }
	s.dropContents(drop)
	for len(s.lines) > 1 && (len(s.lines) > MaxChanges || s.bytes > MaxDefinitionBytes) {
		s.dropContent(0, drop)
		s.store.PutEntity(s.key(s.lines[0].seq), nil)
		s.bytes -= s.lines[0].bytes
		s.lines = s.lines[1:]
	}
}

func (s *State) add(c *Change) {
	content := c.keptContent()
	s.lines = append(s.lines, line{c.Seq, c.Kind, c.ID, len(c.Definition), content, c.ContentBytes > 0})
	s.bytes += len(c.Definition)
	s.contents += content
}

func (s *State) key(seq uint64) string {
	return state.EntityKey(s.account, state.EntityChange, string(binary.BigEndian.AppendUint64(nil, seq)))
}

// Load takes back a change that a checkpoint has; they come in order. See [feature.State].
func (s *State) Load(kind byte, _ string, value []byte) (known bool, err error) {
	if kind != state.EntityChange {
		return false, nil
	}
	var c Change
	if err := json.Unmarshal(value, &c); err != nil {
		return true, err
	}
	c.ID = strings.Clone(c.ID)
	s.add(&c)
	s.dropContents(func(uint64) {}) // they are not in the store any more
	return true, nil
}

// change reads one from the store.
func (s *State) change(seq uint64) (c Change, err error) {
	b, err := s.store.Entity(s.key(seq))
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(b, &c)
}

// Hash gives put the audit log, see [feature.State].
func (s *State) Hash(put func([]byte)) error {
	for _, x := range s.lines {
		c, err := s.change(x.seq)
		if err != nil {
			return err
		}
		put(must.JSON(c))
	}
	return s.hashContents(put)
}

// Changes lists the audit log, the newest first: of a kind and of an id, "" for any,
// before a number, 0 for the end, limit at most.
func (s *State) Changes(kind, id string, before uint64, limit int) ([]Change, error) {
	var out []Change
	for _, x := range slices.Backward(s.lines) {
		if len(out) >= limit {
			break
		}
		if kind != "" && x.kind != kind || id != "" && x.id != id || before != 0 && x.seq >= before {
			continue
		}
		c, err := s.change(x.seq)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}
