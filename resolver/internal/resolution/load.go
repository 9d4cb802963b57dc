package resolution

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// LoadIdentifiers fills the identifier maps of all accounts, which are loaded with the headers of
// their profiles. It reads identifiers while those before are put in their maps, which takes
// longer. of finds the profiles of an account, nil for none.
func LoadIdentifiers(store *state.Store, of func(account uint64) *State) error {
	const batch = 1 << 17 // 3 MB each
	type identities struct {
		of   *profile.IdentifierMap
		list []profile.IdentifierChange
	}
	read, free := make(chan identities, 1), make(chan []profile.IdentifierChange, 2)
	free <- nil
	free <- nil
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		var room []profile.IdentifierChange
		for b := range read {
			room = slices.Grow(room[:0], len(b.list))
			b.of.LoadAll(b.list, room[:len(b.list)])
			free <- b.list[:0]
		}
	}()
	var next identities
	hand := func() {
		if len(next.list) > 0 {
			read <- next
			next.list = nil
		}
	}
	err := store.Each(state.TableIdentity, func(number uint64, rest, value []byte) error {
		s := of(number)
		if s == nil || len(rest) != len(identifier.Hash{}) || len(value) != 4 {
			return fmt.Errorf("identity entry of the wrong form")
		}
		o := binary.LittleEndian.Uint32(value)
		if o >= s.Headers.Count {
			return fmt.Errorf("identity of profile %d, there are %d", o, s.Headers.Count)
		}
		if next.of != &s.Identifiers || len(next.list) == batch {
			hand()
		}
		if len(next.list) == 0 {
			next = identities{&s.Identifiers, <-free}
		}
		next.list = append(next.list, profile.IdentifierChange{Hash: identifier.Hash(rest), Ordinal: o})
		return nil
	})
	hand()
	close(read)
	<-loaded
	return err
}

// FillReach fills the sets of reachable profiles, which are empty, from the documents. of finds the
// profiles of an account, nil for none.
func FillReach(store *state.Store, of func(account uint64) *State) error {
	var d profile.Document
	err := store.Each(state.TableDocument, func(number uint64, rest, value []byte) error {
		s := of(number)
		if s == nil || len(rest) != 4 {
			return errors.New("document of an unknown account")
		}
		if err := d.Decode(value); err != nil {
			return err
		}
		s.Reach.Add(binary.BigEndian.Uint32(rest), &d)
		return nil
	})
	if err != nil {
		return fmt.Errorf("find out who can be sent to: %w", err)
	}
	return nil
}
