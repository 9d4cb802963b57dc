package account

import (
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/must"
)

// Hash hashes the whole state of the account: all goes to put, or is written to h.
func (a *State) Hash(h hash.Hash, put func([]byte)) error {
	fmt.Fprintf(h, "account %d profiles %d\n", a.Number, a.Profiles.Headers.Count)
	put(must.JSON(a.Entity))
	if err := a.Access.Hash(put); err != nil {
		return fmt.Errorf("account %016x: %w", a.Number, err)
	}
	hashMap(put, a.Segments)
	if err := a.Types.Hash(put); err != nil {
		return err
	}
	imports := make(map[string]uint64, len(a.Imports))
	for k, v := range a.Imports {
		imports[hex.EncodeToString(k[:])] = v
	}
	hashMap(put, imports)
	if err := a.Contacts.Hash(put); err != nil {
		return err
	}
	a.Campaigns.HashTemplates(put)
	if err := a.Domains.Hash(put); err != nil {
		return err
	}
	if err := a.Campaigns.Hash(put); err != nil {
		return fmt.Errorf("account %016x: %w", a.Number, err)
	}
	if err := a.Credentials.Hash(put); err != nil {
		return err
	}
	if err := a.Sources.Hash(put); err != nil {
		return err
	}
	if err := a.Conversations.Hash(put); err != nil {
		return err
	}
	a.hashSets(put)
	if err := a.Outbox.Hash(put); err != nil {
		return err
	}
	if err := a.Flows.Hash(put); err != nil {
		return err
	}
	if err := a.Erasure.Hash(put); err != nil {
		return err
	}
	if err := a.Audit.Hash(put); err != nil {
		return err
	}
	for _, f := range a.hashed {
		if err := f.Hash(put); err != nil {
			return fmt.Errorf("account %016x: %w", a.Number, err)
		}
	}
	a.Profiles.HashIdentifiers(put)
	if err := a.Engine.Hash(put); err != nil {
		return err
	}
	anonymous, err := a.Profiles.HashProfiles(h, put)
	if err != nil {
		return fmt.Errorf("account %016x: %w", a.Number, err)
	}
	if !anonymous.Equals(a.Engine.Anonymous()) {
		return fmt.Errorf("account %016x: by the documents %d profiles are anonymous, by the segment engine %d", a.Number, anonymous.GetCardinality(), a.Engine.Anonymous().GetCardinality())
	}
	return nil
}

func hashMap[V any](put func([]byte), entities map[string]V) {
	for _, k := range slices.Sorted(maps.Keys(entities)) {
		put([]byte(k))
		put(must.JSON(entities[k]))
	}
}
