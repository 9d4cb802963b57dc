package resolver

import (
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/identifier"
)

// conversationHost is what conversations see of their account and of the record that is being
// applied, see [conversations.Host].
type conversationHost struct {
	m *Machine
	a *account.State
}

func (h conversationHost) Rules() int { return h.m.rules }

func (h conversationHost) Erased(number identifier.Hash) bool { return h.a.Erasure.Erased(number) }
