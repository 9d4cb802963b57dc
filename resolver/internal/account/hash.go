package account

import (
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/reach"
)

// Hash hashes the whole state of the account: all goes to put, or is written to h.
func (a *State) Hash(h hash.Hash, put func([]byte)) error {
	fmt.Fprintf(h, "account %d profiles %d\n", a.Number, a.Profiles.Headers.Count)
	put(must.JSON(a.Entity))
	for _, step := range a.hashOrder() {
		if err := step.Hash(put); err != nil {
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

// hashSegments, hashImports and hashSets are the parts of the state's hash that belong to no
// feature.
func (a *State) hashSegments(put func([]byte)) { hashMap(put, a.Segments) }

func (a *State) hashImports(put func([]byte)) {
	imports := make(map[string]uint64, len(a.Imports))
	for k, v := range a.Imports {
		imports[hex.EncodeToString(k[:])] = v
	}
	hashMap(put, imports)
}

// hashSets leaves out the sets of reachable profiles, which follow from the documents.
func (a *State) hashSets(put func([]byte)) { a.Sets.Hash(reach.IsSet, put) }

func hashMap[V any](put func([]byte), entities map[string]V) {
	for _, k := range slices.Sorted(maps.Keys(entities)) {
		put([]byte(k))
		put(must.JSON(entities[k]))
	}
}
