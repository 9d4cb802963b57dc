package erasure

import (
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// The names of the commands. They are in the log: never change the meaning of one.
const (
	CommandDone = "erasure.done"
	CommandLift = "erasure.lift"
)

// Commands are the commands that change the state.
var Commands = map[string]feature.Command[*State]{
	CommandDone: feature.Do((*State).done),
	CommandLift: feature.Do((*State).lift),
}

// Done says that history has erased what was erased below an offset.
type Done struct {
	UpTo int64 `json:"up_to"`
	// RefusedUpTo says that nothing is left below an offset of what was refused because
	// of erased persons.
	RefusedUpTo int64 `json:"refused_up_to,omitempty"`
}

// Lift lets an identifier be stored again. It is named by its hash, or by kind and value.
type Lift struct {
	Hash  string `json:"hash,omitempty"` // in hexadecimal
	Kind  string `json:"kind,omitempty"`
	Value string `json:"value,omitempty"`
}

// done ends what history has confirmed.
func (s *State) done(tx *feature.Tx, c Done) *refuse.Refusal {
	s.doneBelow, s.newest = max(s.doneBelow, c.UpTo), max(s.newest, c.UpTo)
	for len(s.tasks) > 0 && s.tasks[0].UpTo <= c.UpTo {
		tx.Store.PutEntity(s.taskKey(s.tasks[0]), nil)
		s.tasks = s.tasks[1:]
	}
	switch r := &s.refused; {
	case r.UpTo == 0 || c.RefusedUpTo <= r.From:
	case c.RefusedUpTo >= r.UpTo:
		*r = refusedRange{}
		s.saveRefused(tx)
	default:
		r.From = c.RefusedUpTo
		s.saveRefused(tx)
	}
	return nil
}

func (s *State) lift(tx *feature.Tx, c Lift) *refuse.Refusal {
	h, ok := s.find(c)
	if !ok {
		return refuse.NotFound("", "no erased person had this identifier")
	}
	x := s.marks[h]
	delete(s.marks, h)
	if len(x.Refused) == 0 {
		tx.Store.PutEntity(s.key(entityMark, h[:]), nil)
		return nil
	}
	x.RevokedMs = tx.AtMs
	s.revoked[h] = x
	tx.Store.PutEntity(s.key(entityMark, h[:]), must.JSON(x))
	return nil
}

// find finds the mark that is meant.
func (s *State) find(c Lift) (h identifier.Hash, ok bool) {
	if c.Hash != "" {
		h, err := identifier.ParseHash(c.Hash)
		return h, err == nil && s.Erased(h)
	}
	for k := range identifier.Kinds {
		if c.Kind != "" && k.String() != c.Kind {
			continue
		}
		var buf []byte
		if h, ok = s.hasher().HashIdentifier(k, []byte(c.Value), &buf); ok && s.Erased(h) {
			return h, true
		}
	}
	return h, false
}
