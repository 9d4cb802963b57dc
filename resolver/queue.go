package resolver

import (
	"encoding/binary"
	"fmt"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/profile"
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

// applyContinue lets the segment engines go on and works on the first task.
func (m *Machine) applyContinue() error {
	m.applyEngines()
	if len(m.tasks) == 0 {
		return nil
	}
	t := &m.tasks[0]
	a := m.accounts[t.Account]
	if a == nil {
		return fmt.Errorf("task %d is of account %016x, which is not here", t.Seq, t.Account)
	}
	m.rec.account = a
	finish := func() {
		m.store.PutEntity(t.key(), nil)
		m.tasks = m.tasks[1:]
	}
	if t.Endpoint != "" {
		done, err := a.Outbox.DropEndpoint(t.Endpoint)
		if err == nil && done {
			finish()
		}
		return err
	}
	for n := 0; n < continueWork && t.Done < len(t.Detach); n++ {
		err := a.Profiles.Detach([]byte(t.Detach[t.Done]), func(o uint32, d *profile.Document) { m.updateSegments(a, o, d) })
		if err != nil {
			return err
		}
		m.react()
		t.Done++
	}
	if t.Done < len(t.Detach) {
		m.store.PutEntity(t.key(), must.JSON(t))
		return nil
	}
	finish()
	return nil
}
