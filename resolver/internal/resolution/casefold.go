package resolution

import (
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Two e-mails are one identifier when their normal forms are equal, which are
// lower-cased. Contacts' e-mails are unique in a stricter way: they must differ
// when cases are folded in full, so that STRASSE@x is refused where straße@x is
// on file. Three things answer that:
//
//   - identities: whose e-mail has the folded form for its normal form;
//   - the e-mails of the account whose folded form is another than their normal
//     form, by the folded one (State.caseFolds);
//   - reservations of the directory of e-mails, by both forms.

// addCaseFold notes that an e-mail is on file, h being its identity. It costs
// nothing for the e-mails whose folded form is the normal one, as good as all.
func (s *State) addCaseFold(email []byte, h identifier.Hash) {
	if identity.IsASCII(email) && !identifier.IsMasked(email) {
		return
	}
	f, other := s.Hasher.HashFolded(email, &s.normal)
	if !other || slices.Contains(s.caseFolds[f], h) {
		return
	}
	s.caseFolds[f] = append(s.caseFolds[f], h)
	slices.SortFunc(s.caseFolds[f], func(x, y identifier.Hash) int { return slices.Compare(x[:], y[:]) })
	s.store.PutEntity(caseFoldKey(s.account.Number, f, h), []byte{})
}

// removeCaseFold removes the case fold of an e-mail that is not on file any more.
func (s *State) removeCaseFold(email []byte, h identifier.Hash) {
	if identity.IsASCII(email) && !identifier.IsMasked(email) {
		return
	}
	f, _ := s.Hasher.HashFolded(email, &s.normal)
	i := slices.Index(s.caseFolds[f], h)
	if i < 0 {
		return
	}
	if s.caseFolds[f] = slices.Delete(s.caseFolds[f], i, i+1); len(s.caseFolds[f]) == 0 {
		delete(s.caseFolds, f)
	}
	s.store.PutEntity(caseFoldKey(s.account.Number, f, h), nil)
}

func caseFoldKey(account uint64, f, h identifier.Hash) string {
	return state.EntityKey(account, state.EntityCaseFold, string(f[:])+string(h[:]))
}

// HasEmail reports whether an e-mail, or one that differs from it in case alone, is
// on file with a profile of the account other than except.
func (s *State) HasEmail(email string, except uint32) bool {
	held := func(h identifier.Hash) bool {
		o := s.Identifiers.Owner(h)
		return o != profile.NoOrdinal && o != except
	}
	h, ok := s.Hasher.HashIdentifier(identifier.Email, []byte(email), &s.normal)
	if !ok {
		return false
	}
	if held(h) {
		return true
	}
	f, _ := s.Hasher.HashFolded([]byte(email), &s.normal)
	if slices.ContainsFunc(s.caseFolds[f], held) {
		return true
	}
	return held(s.Hasher.HashFoldedIdentity(email, &s.normal))
}

// LoadCaseFold takes back an e-mail by its folded form that a checkpoint has.
func (s *State) LoadCaseFold(name string) error {
	const n = len(identifier.Hash{})
	if len(name) != 2*n {
		return fmt.Errorf("e-mail's folded form of the wrong length")
	}
	f, h := identifier.Hash([]byte(name[:n])), identifier.Hash([]byte(name[n:]))
	s.caseFolds[f] = append(s.caseFolds[f], h) // in order of keys
	return nil
}

// CaseFolds is how many e-mails have a folded form that is not their normal form.
func (s *State) CaseFolds() int { return len(s.caseFolds) }
