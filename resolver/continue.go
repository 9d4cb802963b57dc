package resolver

import (
	"fmt"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// applyContinue lets the segment engines continue and works on the first task.
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
	m.tx.account = a
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
