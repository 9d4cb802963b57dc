package record

import (
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
)

// Key is an API key as it is answered, without the key itself.
type Key struct {
	ID   string `json:"_id"`
	Name string `json:"name"`
	// Permissions are what the key was given, Effective what of that its creator may do
	// now.
	Permissions []string `json:"permissions"`
	Effective   []string `json:"effective_permissions"`
	CreatedBy   string   `json:"created_by"` // id of the user
	CreatedAt   string   `json:"created_at"`
	LastUsedAt  *string  `json:"last_used_at"`
	Revoked     bool     `json:"revoked"`
	RevokedAt   *string  `json:"revoked_at"`
}

// NewKey is a key that was used last at usedMs (Unix milliseconds), or when the state
// says if that is later.
func NewKey(v *resolver.View, k *access.APIKey, usedMs int64) Key {
	out := Key{
		ID: k.ID, Name: k.Name, Permissions: k.Permissions, Effective: v.Access().EffectivePermissions(k), CreatedBy: k.CreatorID, CreatedAt: Time(k.CreatedMs),
		Revoked: k.RevokedMs != 0, RevokedAt: TimeOrNull(k.RevokedMs), LastUsedAt: TimeOrNull(max(k.LastUsedMs, usedMs)),
	}
	if out.Permissions == nil {
		out.Permissions = []string{}
	}
	if out.Effective == nil {
		out.Effective = []string{}
	}
	return out
}
