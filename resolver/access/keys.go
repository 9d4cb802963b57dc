package access

import (
	"cmp"
	"crypto/subtle"
	"strings"

	"github.com/musterhq/muster/internal/bit"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// APIKey is a key of Surfaces A and C, stored as its hash.
type APIKey struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Hash        string   `json:"hash"` // SHA-256 of the key, in hexadecimal
	CreatorID   string   `json:"creator_id"`
	Permissions []string `json:"permissions"`
	CreatedMs   int64    `json:"created_ms"`
	// LastUsedMs is 0 before the first use. It lags behind by up to a minute.
	LastUsedMs int64 `json:"last_used_ms,omitempty"`
	// RevokedMs is 0 while the key holds. A revoked key keeps its record.
	RevokedMs int64 `json:"revoked_ms,omitempty"`
}

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

// noteHash finds a key by its hash from now on. A key whose hash cannot be read authenticates
// no request.
func (s *State) noteHash(k *APIKey) {
	if hash, ok := feature.ParseHash(k.Hash); ok {
		s.keysByHash[hash] = k
	}
}

func (s *State) putKey(tx *feature.Tx, k *APIKey) {
	s.apiKeys.Put(tx, k.ID, k)
	s.noteHash(k)
}

func (s *State) createAPIKey(tx *feature.Tx, c APIKeyCreate) *refuse.Refusal {
	actor, r := s.actor(c.ActorID, permitAPIKeys)
	if r != nil {
		return r
	}
	if r := refuse.Name(c.Name); r != nil {
		return r
	}
	hash, ok := feature.ParseHash(c.Hash)
	if !ok {
		return refuse.Invalid("hash", "hash must be 32 bytes in hexadecimal")
	}
	if s.keysByHash[hash] != nil {
		return refuse.Conflicts("hash", "this key was made before")
	}
	permissions, r := granted(actor, c.Permissions)
	if r != nil {
		return r
	}
	holding := 0
	var oldest *APIKey
	for _, k := range s.apiKeys.All() {
		switch {
		case k.RevokedMs == 0:
			holding++
		case oldest == nil || cmp.Or(cmp.Compare(k.RevokedMs, oldest.RevokedMs), strings.Compare(k.ID, oldest.ID)) < 0:
			oldest = k
		}
	}
	if holding >= MaxAPIKeys {
		return refuse.AtLimit("", "this account has %d API keys, the most it can have; revoke one first", MaxAPIKeys)
	}
	if s.apiKeys.Len() >= MaxAPIKeyRecords {
		s.dropKey(tx, oldest)
	}
	k := &APIKey{
		ID: feature.NewID("key_", tx.Record), Name: strings.TrimSpace(c.Name), Hash: c.Hash,
		CreatorID: actor.ID, Permissions: permissions, CreatedMs: tx.AtMs,
	}
	s.putKey(tx, k)
	tx.Reply = map[string]string{"id": k.ID}
	return nil
}

func (s *State) dropKey(tx *feature.Tx, k *APIKey) {
	s.apiKeys.Delete(tx, k.ID)
	if hash, ok := feature.ParseHash(k.Hash); ok {
		delete(s.keysByHash, hash)
	}
}

func (s *State) revokeAPIKey(tx *feature.Tx, c APIKeyRevoke) *refuse.Refusal {
	if _, r := s.actor(c.ActorID, permitAPIKeys); r != nil {
		return r
	}
	old := s.apiKeys.Get(c.ID)
	if old == nil {
		return refuse.NotFound("id", "there is no API key with this id")
	}
	if old.RevokedMs == 0 {
		k := *old
		k.RevokedMs = max(1, tx.AtMs)
		s.putKey(tx, &k)
	}
	return nil
}

// KeyUsed notes when a key was used. It may have gone since.
func (s *State) KeyUsed(tx *feature.Tx, keyID string, atMs int64) {
	if old := s.apiKeys.Get(keyID); old != nil && old.LastUsedMs < atMs {
		k := *old
		k.LastUsedMs = atMs
		s.putKey(tx, &k)
	}
}

// decoyKey is compared with keys that are not valid, so that the steps are the same.
var decoyKey = &APIKey{Hash: strings.Repeat("0", 64), RevokedMs: 1}

// Holds finds the key with the SHA-256 of its text, and what it may do. ok is false when
// there is none, or one that was revoked. Both take the same steps.
func (s *State) Holds(hash [32]byte) (k *APIKey, permissions []string, ok bool) {
	k, known := s.keysByHash[hash]
	if !known {
		k = decoyKey
	}
	stored, readable := feature.ParseHash(k.Hash)
	good := subtle.ConstantTimeCompare(stored[:], hash[:])
	for _, holds := range [...]bool{known, readable, k.RevokedMs == 0} {
		good &= bit.Of(holds)
	}
	return k, s.permissionsOf(k), good == 1
}
