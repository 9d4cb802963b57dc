package resolver

import (
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/sources"
)

// MaxKeyUses bounds the records that say when keys were used.
const MaxKeyUses = 5000

// KeyAccess is what a request with an API key may do.
type KeyAccess struct {
	Account uint64
	KeyID   string
	// Permissions are those of the key that its creator has now.
	Permissions []string
	// SurfaceCPerMinute is how many requests of Surface C the key may make in
	// any 60 seconds.
	SurfaceCPerMinute int
}

// decoyAccount is asked about keys of accounts that are not there, so that the steps are
// the same.
var decoyAccount = account.New(0, 0)

func (m *Machine) recordKeyUses(tx *transaction, c access.APIKeysUsed) *Refusal {
	if len(c.Uses) > MaxKeyUses {
		return invalid("uses", "uses must have at most %d values", MaxKeyUses)
	}
	for _, u := range c.Uses {
		if a := m.accounts[u.Account]; a != nil {
			a.Access.KeyUsed(tx.on(a), u.KeyID, u.AtMs)
		}
	}
	return nil
}

func (m *Machine) recordSourceUses(_ *transaction, c sources.Used) *Refusal {
	if len(c.Uses) > MaxKeyUses {
		return invalid("uses", "uses must have at most %d values", MaxKeyUses)
	}
	for _, u := range c.Uses {
		if a := m.accounts[u.Account]; a != nil {
			a.Sources.KeyUsed(m.tx.on(a), u.SourceID, u.KeyID, u.AtMs)
		}
	}
	return nil
}

// WriteKeys are the write keys that hold, by the SHA-256 of their text.
func (m *Machine) WriteKeys() map[[32]byte]sources.Access {
	out := map[[32]byte]sources.Access{}
	for _, a := range m.byIndex {
		a.Sources.WriteKeys(out, a.Number, !a.Deactivated)
	}
	return out
}

// EmailDirectory is the directory of e-mails, as far as the partition has it.
func (m *Machine) EmailDirectory() *emaildir.State { return m.emailDirectory }
