package resolver

import (
	"encoding/binary"

	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/outbox"
)

// itemOf is an item of the outbox by its number, nil for none.
func itemOf(a *account.State, seq uint64) *outbox.Item {
	return a.Outbox.Find(seq, 0, outbox.ItemName{})
}

// lastItem is the number of the newest item of the test account's outbox.
func lastItem(m *Machine) uint64 {
	b, err := m.store.Entity(state.EntityKey(testAccount, state.EntityOutbox, ""))
	if err != nil {
		panic(err)
	}
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// waitingItems are those of the test account's outbox by their numbers.
func waitingItems(m *Machine) map[uint64]*outbox.Item {
	a, items := m.accounts[testAccount], map[uint64]*outbox.Item{}
	for seq := range lastItem(m) + 1 {
		if it := itemOf(a, seq); it != nil {
			items[seq] = it
		}
	}
	return items
}

func endpointOf(a *account.State, id string) outbox.Endpoint {
	e, _ := a.Outbox.Endpoint(id)
	return e
}
