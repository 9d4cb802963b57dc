package resolver

import (
	"encoding/binary"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/state"
)

// task is work that is too large for one record. Tasks are worked off in
// order, a bounded piece with each continue record, which the node appends
// while there are tasks.
type task struct {
	Seq     uint64 `json:"seq"`
	Account uint64 `json:"account"`
	// Detach lists values that have become placeholders: profiles that hold
	// one lose it.
	Detach []string `json:"detach"`
	// Done is how many of them are done.
	Done int `json:"done"`
	// Endpoint is one that was deleted: what waits for it is dropped.
	Endpoint string `json:"endpoint,omitempty"`
}

func (t *task) key() string {
	return state.EntityKey(t.Account, state.EntityTask, string(binary.BigEndian.AppendUint64(nil, t.Seq)))
}

// Pending is the number of tasks waiting for continue records, the segment
// engines with work left among them.
func (m *Machine) Pending() int { return len(m.tasks) + len(m.busy) }

func (m *Machine) enqueue(t task) {
	t.Seq = m.nextTask
	m.nextTask++
	m.tasks = append(m.tasks, t)
	m.store.PutEntity(t.key(), must.JSON(t))
}
