package resolver

import (
	"cmp"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The commands of sender domains.
const (
	CommandDomainAdd    = "domain.add"
	CommandDomainVerify = "domain.verify"
	CommandDomainDelete = "domain.delete"
)

const maxDomains = 100

// DevelopmentDomain is verified in every account: its mail never leaves the
// machine, it can only be captured.
const DevelopmentDomain = "muster.local"

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

// DomainName names a domain.
type DomainName struct {
	Name string `json:"name"`
	By   string `json:"by,omitempty"` // of CommandDomainVerify
}

func (m *Machine) addDomain(cmd *command, d Domain) *Refusal {
	a := cmd.account
	d.Name = strings.ToLower(strings.TrimSpace(d.Name))
	switch {
	case len(d.Name) > 253 || !strings.Contains(d.Name, ".") || strings.ContainsAny(d.Name, " \t\r\n/@:\\"):
		return invalid("domain", "domain must be a domain name such as mail.example.com")
	case a.domains[d.Name] != nil || d.Name == DevelopmentDomain:
		return &Refusal{Code: "conflict", Field: "domain", Message: "domain: it is there already"}
	case len(a.domains) >= maxDomains:
		return atLimit("domain", "this account has %d sender domains, the most it can have; delete one first", maxDomains)
	}
	d.CreatedMs, d.VerifiedMs = m.logTime, 0
	m.saveDomain(a, &d)
	return nil
}

func (m *Machine) saveDomain(a *account, d *Domain) {
	a.domains[d.Name] = d
	m.store.PutEntity(state.EntityKey(a.number, state.EntityDomain, d.Name), must.JSON(d))
}

func noDomain() *Refusal { return notFound("domain", "domain: there is no such sender domain") }

func (m *Machine) verifyDomain(cmd *command, c DomainName) *Refusal {
	old := cmd.account.domains[c.Name]
	if old == nil {
		return noDomain()
	}
	d := *old
	d.VerifiedMs, d.VerifiedBy = m.logTime, c.By
	m.saveDomain(cmd.account, &d)
	return nil
}

func (m *Machine) deleteDomain(cmd *command, c DomainName) *Refusal {
	if cmd.account.domains[c.Name] == nil {
		return noDomain()
	}
	delete(cmd.account.domains, c.Name)
	m.store.PutEntity(state.EntityKey(cmd.account.number, state.EntityDomain, c.Name), nil)
	return nil
}

// mayBeSender says what keeps an address from being a sender.
func (a *account) mayBeSender(address string) *Refusal {
	at := strings.LastIndexByte(address, '@')
	if at <= 0 || at == len(address)-1 {
		return invalid("sender", "sender must be an e-mail address on a verified domain")
	}
	name := strings.ToLower(address[at+1:])
	if d := a.domains[name]; name != DevelopmentDomain && (d == nil || d.VerifiedMs == 0) {
		return &Refusal{Code: "conflict", Field: "sender", Message: "sender: the domain " + name + " is not verified; add it to the sender domains and publish its DNS records"}
	}
	return nil
}

// MayBeSender says what keeps an address from being a sender now, as a *[Refusal].
func (v *View) MayBeSender(address string) error {
	if r := v.a.mayBeSender(address); r != nil {
		return r
	}
	return nil
}

// Domains lists the sender domains by name.
func (v *View) Domains() []Domain {
	out := make([]Domain, 0, len(v.a.domains))
	for _, d := range v.a.domains {
		out = append(out, *d)
	}
	slices.SortFunc(out, func(x, y Domain) int { return cmp.Compare(x.Name, y.Name) })
	return out
}

// Domain finds a sender domain.
func (v *View) Domain(name string) (Domain, bool) {
	if d := v.a.domains[strings.ToLower(name)]; d != nil {
		return *d, true
	}
	return Domain{}, false
}
