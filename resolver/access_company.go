package resolver

import (
	"encoding/json"
	"fmt"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// CompanyCreate makes another company with its account; its shape is that of
// the first one's record, and the account's number is the record's.
type CompanyCreate = Bootstrap

// CompanyUpdate changes what is set of the account's company.
type CompanyUpdate struct {
	Name      *string `json:"name,omitempty"`
	APIAccess *bool   `json:"api_access,omitempty"`
	Active    *bool   `json:"active,omitempty"`
	// SurfaceCPerMinute is the setting of this name.
	SurfaceCPerMinute *int `json:"surface_c_per_minute,omitempty"`
}

// CreditsAdd tops up the account's e-mail credits.
type CreditsAdd struct {
	Amount int64 `json:"amount"`
}

const (
	maxAccounts = 100_000 // per partition
	// newCompanyCredits is how many e-mails a new company may send unless its
	// creation says otherwise.
	newCompanyCredits = 100_000
	maxTopUp          = 1_000_000_000
	maxCredits        = 1_000_000_000_000
)

// openAccount makes the first account of an empty partition, or another one.
func (m *Machine) openAccount(env eventlog.Envelope, name string, args []byte, out *Outcome) error {
	var c Bootstrap
	if err := json.Unmarshal(args, &c); err != nil {
		return fmt.Errorf("%w: arguments of command %s: %w", eventlog.ErrFormat, name, err)
	}
	if c.ApplyVersion > ApplyVersion {
		return fmt.Errorf("%w: the state machine's rules are version %d, this build has %d", ErrNewer, c.ApplyVersion, ApplyVersion)
	}
	first := name == CommandBootstrap
	switch {
	case first && len(m.accounts) > 0:
		// The first of several that start with an empty log wins.
		out.Refusal = conflicts("", "an account was made before")
	case m.accounts[env.Account] != nil:
		out.Refusal = conflicts("", "an account with this number was made before")
	case len(m.accounts) >= maxAccounts:
		out.Refusal = atLimit("", "there are %d accounts, the most there can be", maxAccounts)
	default:
		c.Settings.Fill()
		out.Refusal = c.Settings.Validate()
	}
	if out.Refusal == nil && !first {
		out.Refusal = refuse.Name(c.Company.Name)
	}
	credits := int64(newCompanyCredits)
	if c.EmailCredits != nil {
		credits = *c.EmailCredits
	}
	if out.Refusal == nil && (credits < 0 || credits > maxTopUp) {
		out.Refusal = invalid("email_credits", "email_credits must be between 0 and %d", maxTopUp)
	}
	if out.Refusal != nil {
		return nil
	}
	e := account.Entity{
		Company: c.Company, CreatedMs: m.logTime, HashKey: c.HashKey, SecretHash: c.SecretHash, Settings: c.Settings,
		APIAccess: first, EmailCredits: credits, HasCatalog: c.ApplyVersion >= applyVersionCatalog,
		HasConsentLog: c.ApplyVersion >= applyVersionConsentLog, HasOrders: c.ApplyVersion >= applyVersionOrders,
	}
	if _, _, err := e.Keys(env.Account); err != nil {
		out.Refusal = invalid("", "%s", err)
		return nil
	}
	m.noteRules(c.ApplyVersion)
	a := m.addAccount(env.Account)
	if err := a.Install(e); err != nil {
		return err
	}
	m.saveAccount(a)
	c.User.Admin = first
	a.Access.Found(m.tx.on(a), c.User, c.APIKey)
	return nil
}

func (m *Machine) updateCompany(tx *transaction, c CompanyUpdate) *Refusal {
	a := tx.account
	e := a.Entity
	if c.Name != nil {
		if r := refuse.Name(*c.Name); r != nil {
			return r
		}
		e.Company.Name = *c.Name
	}
	if c.APIAccess != nil {
		e.APIAccess = *c.APIAccess
	}
	if c.Active != nil {
		e.Deactivated = !*c.Active
		if e.Deactivated && a.Access.HasAdmin() {
			return conflicts("active", "active: a system administrator belongs to this company, so it cannot be deactivated")
		}
	}
	if c.SurfaceCPerMinute != nil {
		e.Settings.SurfaceCPerMinute = *c.SurfaceCPerMinute
		if r := e.Settings.Validate(); r != nil {
			return r
		}
	}
	a.Entity = e
	m.saveAccount(a)
	return nil
}

func (m *Machine) addCredits(tx *transaction, c CreditsAdd) *Refusal {
	a := tx.account
	if c.Amount < 1 || c.Amount > maxTopUp {
		return invalid("amount", "amount must be between 1 and %d", maxTopUp)
	}
	if a.EmailCredits > maxCredits-c.Amount {
		return atLimit("amount", "the account has %d e-mail credits and can have %d at most", a.EmailCredits, int64(maxCredits))
	}
	a.EmailCredits += c.Amount
	m.saveAccount(a)
	a.Flows.ResumeForCredits()
	tx.reply(map[string]int64{"email_credits": a.EmailCredits})
	return nil
}
