// Package domains has the domains that an account sends e-mail from.
package domains

import (
	"cmp"
	"strings"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The commands of sender domains.
const (
	CommandAdd    = "domain.add"
	CommandVerify = "domain.verify"
	CommandDelete = "domain.delete"
)

const maxDomains = 100

// Development is verified in every account: its mail never leaves the
// machine, it can only be captured.
const Development = "muster.local"

// Domain is a domain that an account sends e-mail from.
type Domain struct {
	Name string `json:"name"` // lower-case
	// Selector and PrivateKey sign messages (DKIM). The key is PKCS #8 in PEM.
	Selector   string `json:"selector"`
	PrivateKey string `json:"private_key"`
	// Token is what a TXT record of the domain must hold.
	Token      string `json:"token"`
	CreatedMs  int64  `json:"created_ms"`
	VerifiedMs int64  `json:"verified_ms"` // 0: not verified
	// VerifiedBy says how: dns, or the administrator who vouches for it.
	VerifiedBy string `json:"verified_by,omitempty"`
}

// Name names a domain.
type Name struct {
	Name string `json:"name"`
	// By and Token are of CommandVerify: see [Domain.VerifiedBy], and the token that was
	// looked up. Apply compares it: the domain may have been removed and added again since.
	// "" where none was looked up, and in old logs.
	By    string `json:"by,omitempty"`
	Token string `json:"token,omitempty"`
}

// State is the sender domains of one account.
type State struct {
	table feature.Table[Domain]
}

// New is the state of an account without sender domains.
func New() *State { return &State{feature.NewTable[Domain](state.EntityDomain)} }

// Commands are the commands that change the state.
var Commands = map[string]feature.Command[*State]{
	CommandAdd:    feature.Do((*State).add),
	CommandVerify: feature.Do((*State).verify),
	CommandDelete: feature.Do((*State).remove),
}

// Load takes back what a checkpoint has, see [feature.State].
func (s *State) Load(kind byte, name string, value []byte) (known bool, err error) {
	return s.table.LoadKind(kind, name, value)
}

// Hash gives put the whole state, see [feature.State].
func (s *State) Hash(put func([]byte)) error {
	s.table.Hash(put)
	return nil
}

func (s *State) add(tx *feature.Tx, d Domain) *refuse.Refusal {
	d.Name = strings.ToLower(strings.TrimSpace(d.Name))
	switch {
	case len(d.Name) > 253 || !strings.Contains(d.Name, ".") || strings.ContainsAny(d.Name, " \t\r\n/@:\\"):
		return refuse.Invalid("domain", "domain must be a domain name such as mail.example.com")
	case s.table.Get(d.Name) != nil || d.Name == Development:
		return refuse.Conflicts("domain", "domain: it is there already")
	case s.table.Len() >= maxDomains:
		return refuse.AtLimit("domain", "this account has %d sender domains, the most it can have; delete one first", maxDomains)
	}
	d.CreatedMs, d.VerifiedMs = tx.AtMs, 0
	s.table.Put(tx, d.Name, &d)
	return nil
}

func noDomain() *refuse.Refusal {
	return refuse.NotFound("domain", "domain: there is no such sender domain")
}

func (s *State) verify(tx *feature.Tx, c Name) *refuse.Refusal {
	old := s.table.Get(c.Name)
	if old == nil {
		return noDomain()
	}
	if c.Token != "" && c.Token != old.Token {
		return refuse.Conflicts("domain", "domain: it was removed and added again while DNS was asked; publish its new records, and verify it again")
	}
	d := *old
	d.VerifiedMs, d.VerifiedBy = tx.AtMs, c.By
	s.table.Put(tx, d.Name, &d)
	return nil
}

func (s *State) remove(tx *feature.Tx, c Name) *refuse.Refusal {
	if s.table.Get(c.Name) == nil {
		return noDomain()
	}
	s.table.Delete(tx, c.Name)
	return nil
}

// MayBeSender says what keeps an address from being a sender now, nil for nothing.
func (s *State) MayBeSender(address string) *refuse.Refusal {
	at := strings.LastIndexByte(address, '@')
	if at <= 0 || at == len(address)-1 {
		return refuse.Invalid("sender", "sender must be an e-mail address on a verified domain")
	}
	name := strings.ToLower(address[at+1:])
	if d := s.table.Get(name); name != Development && (d == nil || d.VerifiedMs == 0) {
		return refuse.Conflicts("sender", "sender: the domain %s is not verified; add it to the sender domains and publish its DNS records", name)
	}
	return nil
}

// Default is the oldest verified domain, [Development] when there is none.
func (s *State) Default() string {
	best := Development
	var bestMs int64
	for name, d := range s.table.All() {
		if d.VerifiedMs != 0 && (best == Development || d.CreatedMs < bestMs || d.CreatedMs == bestMs && name < best) {
			best, bestMs = name, d.CreatedMs
		}
	}
	return best
}

// All lists the sender domains by name.
func (s *State) All() []Domain {
	return s.table.Sorted(func(x, y Domain) int { return cmp.Compare(x.Name, y.Name) })
}

// Get finds a sender domain.
func (s *State) Get(name string) (Domain, bool) {
	if d := s.table.Get(strings.ToLower(name)); d != nil {
		return *d, true
	}
	return Domain{}, false
}
