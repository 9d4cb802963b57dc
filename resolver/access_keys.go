package resolver

import (
	"cmp"
	"encoding/hex"
	"strings"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The bounds of API keys.
const (
	maxAPIKeys = 1000 // that hold, per account
	// maxAPIKeyRecords counts revoked keys too; then the one that was revoked
	// first makes room.
	maxAPIKeyRecords = 10_000
	// keyUsesPerRecord bounds the record that says when keys were used.
	keyUsesPerRecord = 5000
)

// APIKeyCreate makes a key of the actor's.
type APIKeyCreate struct {
	ActorID     string   `json:"actor_id"`
	Name        string   `json:"name"`
	Hash        string   `json:"hash"` // SHA-256 of the key, in hexadecimal
	Permissions []string `json:"permissions"`
}

// APIKeyRevoke ends a key for good; its record stays.
type APIKeyRevoke struct {
	ActorID string `json:"actor_id"`
	ID      string `json:"id"`
}

// APIKeysUsed says when keys were used last. It is of all accounts of the
// partition, so that not every use makes a record.
type APIKeysUsed struct {
	Uses []KeyUse `json:"uses"`
}

// KeyUse is the last use of an API key.
type KeyUse struct {
	Account uint64 `json:"account"`
	KeyID   string `json:"key_id"`
	AtMs    int64  `json:"at_ms"`
}

func parseKeyHash(text string) (hash [32]byte, ok bool) {
	if len(text) != 2*len(hash) {
		return hash, false
	}
	_, err := hex.Decode(hash[:], []byte(text))
	return hash, err == nil
}

// addKey puts a key in its place. One whose hash cannot be read lets nobody in.
func (a *account) addKey(k *APIKey) {
	a.keys[k.ID] = k
	if hash, ok := parseKeyHash(k.Hash); ok {
		a.hashes[hash] = k
	}
}

func (m *Machine) saveKey(a *account, k *APIKey) {
	a.addKey(k)
	m.store.PutEntity(state.EntityKey(a.number, state.EntityAPIKey, k.ID), must.JSON(k))
}

func (m *Machine) createAPIKey(cmd *command, c APIKeyCreate) *Refusal {
	a := cmd.account
	actor, r := a.actor(c.ActorID, permitAPIKeys)
	if r != nil {
		return r
	}
	if r := checkName(c.Name); r != nil {
		return r
	}
	hash, ok := parseKeyHash(c.Hash)
	if !ok {
		return invalid("hash", "hash must be 32 bytes in hexadecimal")
	}
	if a.hashes[hash] != nil {
		return conflicts("hash", "this key was made before")
	}
	permissions, r := granted(actor, c.Permissions)
	if r != nil {
		return r
	}
	holding := 0
	var oldest *APIKey
	for _, k := range a.keys {
		switch {
		case k.RevokedMs == 0:
			holding++
		case oldest == nil || cmp.Or(cmp.Compare(k.RevokedMs, oldest.RevokedMs), strings.Compare(k.ID, oldest.ID)) < 0:
			oldest = k
		}
	}
	if holding >= maxAPIKeys {
		return atLimit("", "this account has %d API keys, the most it can have; revoke one first", maxAPIKeys)
	}
	if len(a.keys) >= maxAPIKeyRecords {
		m.dropKey(a, oldest)
	}
	k := &APIKey{
		ID: newID("key_", cmd.env.ID), Name: strings.TrimSpace(c.Name), Hash: c.Hash,
		CreatorID: actor.ID, Permissions: permissions, CreatedMs: m.logTime,
	}
	m.saveKey(a, k)
	cmd.reply(map[string]string{"id": k.ID})
	return nil
}

func (m *Machine) dropKey(a *account, k *APIKey) {
	delete(a.keys, k.ID)
	if hash, ok := parseKeyHash(k.Hash); ok {
		delete(a.hashes, hash)
	}
	m.store.PutEntity(state.EntityKey(a.number, state.EntityAPIKey, k.ID), nil)
}

func (m *Machine) revokeAPIKey(cmd *command, c APIKeyRevoke) *Refusal {
	a := cmd.account
	if _, r := a.actor(c.ActorID, permitAPIKeys); r != nil {
		return r
	}
	old := a.keys[c.ID]
	if old == nil {
		return notFound("id", "there is no API key with this id")
	}
	if old.RevokedMs == 0 {
		k := *old
		k.RevokedMs = max(1, m.logTime)
		m.saveKey(a, &k)
	}
	return nil
}

func (m *Machine) recordKeyUses(cmd *command, c APIKeysUsed) *Refusal {
	if len(c.Uses) > keyUsesPerRecord {
		return invalid("uses", "uses must have at most %d values", keyUsesPerRecord)
	}
	for _, u := range c.Uses {
		a := m.accounts[u.Account]
		if a == nil {
			continue
		}
		// A key may have gone since it was used.
		if old := a.keys[u.KeyID]; old != nil && old.LastUsedMs < u.AtMs {
			k := *old
			k.LastUsedMs = u.AtMs
			m.saveKey(a, &k)
		}
	}
	return nil
}

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

// What keys that do not hold are compared with, so that the steps are the same.
var (
	decoyAccount = newAccount(0, 0)
	decoyKey     = &APIKey{Hash: strings.Repeat("0", 64), RevokedMs: 1}
)

// permissionsOf are those of a key that its creator has now, nil where the creator was
// removed.
func (a *account) permissionsOf(k *APIKey) (out []string) {
	creator := a.users[k.CreatorID]
	if creator == nil {
		return nil
	}
	for _, x := range k.Permissions {
		if creator.Can(x) {
			out = append(out, x)
		}
	}
	return out
}

// EffectivePermissions are what a key may do now: its permissions that its creator
// has, and nothing once it is revoked.
func (v *View) EffectivePermissions(k *APIKey) []string {
	if k.RevokedMs != 0 {
		return nil
	}
	return v.a.permissionsOf(k)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// APIKeys lists the account's keys, the oldest first, also those revoked.
func (v *View) APIKeys() []APIKey {
	return sortedValues(v.a.keys, func(x, y APIKey) int {
		return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), strings.Compare(x.ID, y.ID))
	})
}

// APIKey finds a key by its id.
func (v *View) APIKey(id string) (APIKey, bool) {
	if k := v.a.keys[id]; k != nil {
		return *k, true
	}
	return APIKey{}, false
}
