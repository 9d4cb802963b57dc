package resolver

import (
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/orders"
)

// orderHost is what orders see of their account, see [orders.Host].
type orderHost struct {
	m *Machine
	a *account.State
}

func (h orderHost) Root(ordinal uint32) uint32 { return h.a.Profiles.Root(ordinal) }

func (h orderHost) HashOrder(id string, buf *[]byte) identifier.Hash {
	return orders.HashID(h.a.Profiles.Hasher, id, buf)
}

// noteTouch notes a click or an open of a message of a campaign or a flow, which orders may be
// attributed to. Others have no source, and neither has a campaign that was deleted.
func (m *Machine) noteTouch(a *account.State, ordinal uint32, kind string, source orders.Source) {
	if a.HasOrders && (source.Campaign != "" || source.Flow != "") {
		a.Orders.Touch(m.tx.on(a), ordinal, kind, source)
	}
}
