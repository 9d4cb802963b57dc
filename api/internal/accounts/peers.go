package accounts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/view"
)

// Peers asks all nodes of a cluster.
type Peers interface {
	// Ask has the owner of each partition answer a question, the nodes that own
	// several for those at once, and this one by answer. Each partition is
	// answered for exactly once.
	Ask(ctx context.Context, answer Answerer, name string, args any) ([]json.RawMessage, error)
	// AskOwner asks the owner of one partition.
	AskOwner(ctx context.Context, partition int, answer Answerer, name string, args any) (json.RawMessage, error)
}

// Answerer answers a question about partitions: [API.Answer].
type Answerer = func(ctx context.Context, name string, partitions []int, args []byte) (any, error)

// The questions that nodes ask each other.
const (
	askCompanies = "companies"
	askUsers     = "users"
	askRun       = "campaign_run"
)

// companiesQuery asks for companies, in order of their accounts.
type companiesQuery struct {
	// Account and ID name one company, unless they are nil and "".
	Account *uint64 `json:"account,omitempty"`
	ID      string  `json:"id,omitempty"`
	// After is the account that the list begins behind, nil for the first; Limit
	// how many there are at most.
	After *uint64 `json:"after,omitempty"`
	Limit int     `json:"limit"`
}

// usersQuery asks for the users of active accounts who have an e-mail.
type usersQuery struct {
	Email     string  `json:"email"`
	AccountID *string `json:"account_id,omitempty"`
}

// runQuery asks how the run of a campaign stands.
type runQuery struct {
	Account  uint64 `json:"account"`
	Campaign string `json:"campaign"`
}

// Answer answers a question that another node asks, for accounts of the
// partitions.
func (a *API) Answer(ctx context.Context, name string, partitions []int, args []byte) (any, error) {
	accounts := slices.DeleteFunc(a.accounts(), func(n uint64) bool { return !slices.Contains(partitions, a.opts.Node.PartitionOf(n)) })
	switch name {
	case askCompanies:
		return answered(name, args, func(q companiesQuery) (any, error) { return a.companiesOf(ctx, accounts, q) })
	case askUsers:
		return answered(name, args, func(q usersQuery) (any, error) { return a.usersOf(ctx, accounts, q) })
	case askRun:
		return answered(name, args, func(q runQuery) (any, error) { return a.runOf(ctx, q) })
	}
	return nil, fmt.Errorf("there is no question %q; are the nodes of one version?", name)
}

// answered reads what is asked and answers it.
func answered[Q any](name string, args []byte, answer func(Q) (any, error)) (any, error) {
	var q Q
	if err := json.Unmarshal(args, &q); err != nil {
		return nil, fmt.Errorf("question %s: %w", name, err)
	}
	return answer(q)
}

// accounts are those that are here, in order.
func (a *API) accounts() []uint64 {
	accounts := a.opts.Node.Accounts()
	slices.Sort(accounts)
	return accounts
}

// gather asks all nodes; each answer is a list.
func gather[T any](ctx context.Context, a *API, name string, q any) (out []T, err error) {
	replies, err := a.opts.Peers.Ask(ctx, a.Answer, name, q)
	if err != nil {
		return nil, err
	}
	for _, reply := range replies {
		var list []T
		if err := json.Unmarshal(reply, &list); err != nil {
			return nil, fmt.Errorf("answer to %s: %w", name, err)
		}
		out = append(out, list...)
	}
	return out, nil
}

// CampaignRun is the newest run of a campaign, from the owner of its account:
// there must be peers. Of a campaign that was not sent, or is none, it is the zero
// value.
func (a *API) CampaignRun(ctx context.Context, account uint64, campaign string) (r campaigns.Run, err error) {
	reply, err := a.opts.Peers.AskOwner(ctx, a.opts.Node.PartitionOf(account), a.Answer, askRun, runQuery{account, campaign})
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(reply, &r)
}

func (a *API) runOf(ctx context.Context, q runQuery) (r campaigns.Run, err error) {
	err = a.opts.Node.Read(ctx, q.Account, func(v *resolver.View) error {
		r, _ = v.Campaigns().Run(q.Campaign)
		return nil
	})
	return r, err
}

// companies are those of all nodes.
func (a *API) companies(ctx context.Context, q companiesQuery) ([]view.CompanyState, error) {
	if a.opts.Peers == nil {
		return a.companiesOf(ctx, a.accounts(), q)
	}
	list, err := gather[view.CompanyState](ctx, a, askCompanies, q)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(x, y view.CompanyState) int { return cmp.Compare(x.Account, y.Account) })
	return list[:min(len(list), q.Limit)], nil
}

// HasCompany reports whether there is a company on any node.
func (a *API) HasCompany(ctx context.Context) (bool, error) {
	list, err := a.companies(ctx, companiesQuery{Limit: 1})
	return len(list) > 0, err
}

// HasAccount reports whether there is the account of this number on any node.
func (a *API) HasAccount(ctx context.Context, account uint64) (bool, error) {
	list, err := a.companies(ctx, companiesQuery{Account: &account, Limit: 1})
	return len(list) > 0, err
}

// companiesOf are those of some accounts, which are in order.
func (a *API) companiesOf(ctx context.Context, accounts []uint64, q companiesQuery) ([]view.CompanyState, error) {
	list := []view.CompanyState{}
	for _, n := range accounts {
		switch {
		case len(list) == q.Limit:
			return list, nil
		case q.Account != nil && *q.Account != n, q.After != nil && n <= *q.After:
			continue
		}
		var s view.CompanyState
		err := a.opts.Node.Read(ctx, n, func(v *resolver.View) error {
			s = v.CompanyState()
			return nil
		})
		if err != nil {
			return nil, err
		}
		if q.ID == "" || q.ID == s.ID {
			list = append(list, s)
		}
	}
	return list, nil
}

// company reads the company of an account, wherever that is.
func (a *API) company(c *handler.Call, account uint64) (s view.CompanyState, err error) {
	err = a.opts.Node.Read(c.Ctx, account, func(v *resolver.View) error {
		s = v.CompanyState()
		return nil
	})
	if !errors.Is(err, resolver.ErrNotOwner) || a.opts.Peers == nil {
		return s, err
	}
	list, err := a.companies(c.Ctx, companiesQuery{Account: &account, Limit: 1})
	switch {
	case err != nil:
		return s, err
	case len(list) == 0:
		return s, resolver.ErrNoAccount
	}
	return list[0], nil
}

// candidate is a user whose password it may be.
type candidate struct {
	Account uint64      `json:"account"`
	User    access.User `json:"user"`
}

// signInAccounts is in how many accounts with the same e-mail a password is
// tried; the account_id of one leads to any other.
const signInAccounts = 8

// usersByEmail looks through all active accounts of all nodes, whether or not it
// finds users early. An e-mail may be known in several.
func (a *API) usersByEmail(ctx context.Context, q usersQuery) ([]candidate, error) {
	if a.opts.Peers == nil {
		return a.usersOf(ctx, a.accounts(), q)
	}
	list, err := gather[candidate](ctx, a, askUsers, q)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(x, y candidate) int { return cmp.Compare(x.Account, y.Account) })
	return list[:min(len(list), signInAccounts)], nil
}

// usersOf looks through some accounts, which are in order.
func (a *API) usersOf(ctx context.Context, accounts []uint64, q usersQuery) ([]candidate, error) {
	out := []candidate{}
	for _, n := range accounts {
		err := a.opts.Node.Read(ctx, n, func(v *resolver.View) error {
			u, ok := v.Access().UserByEmail(q.Email)
			if ok && v.Active() && len(out) < signInAccounts && (q.AccountID == nil || *q.AccountID == resolver.AccountID(n)) {
				out = append(out, candidate{n, u})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
