package api

import (
	"context"
	"io"

	"github.com/musterhq/muster/api/internal/accounts"
	"github.com/musterhq/muster/resolver/campaigns"
)

// Credentials are those of a new company, shown once: only hashes are kept.
type Credentials = accounts.Credentials

// Peers asks all nodes of a cluster.
type Peers = accounts.Peers

// NewCredentials draws the credentials of a new company. origin is where its
// service is reached, such as http://127.0.0.1:8080.
func NewCredentials(rand io.Reader, origin string) (Credentials, error) {
	return accounts.NewCredentials(rand, origin)
}

// NewFirstCredentials draws those of the first company, whose account is of the
// first of the log's partitions.
func NewFirstCredentials(rand io.Reader, origin string, partitions int) (Credentials, error) {
	return accounts.NewFirstCredentials(rand, origin, partitions)
}

// LoadCredentials reads credentials that [Credentials.Save] wrote. The error
// wraps [os.ErrNotExist] when there is no such file.
func LoadCredentials(path string) (Credentials, error) { return accounts.LoadCredentials(path) }

// NewAPIKey draws a key of an account.
func NewAPIKey(rand io.Reader, account uint64) (string, error) {
	return accounts.NewAPIKey(rand, account)
}

// ParseAPIKey reads the number of the account out of a key.
func ParseAPIKey(key string) (account uint64, ok bool) { return accounts.ParseAPIKey(key) }

// Answer answers a question that another node asks, for accounts of the
// partitions.
func (a *API) Answer(ctx context.Context, name string, partitions []int, args []byte) (any, error) {
	return a.accounts.Answer(ctx, name, partitions, args)
}

// CampaignRun is the newest run of a campaign, from the owner of its account:
// there must be peers. Of a campaign that was not sent, or is none, it is the zero
// value.
func (a *API) CampaignRun(ctx context.Context, account uint64, campaign string) (campaigns.Run, error) {
	return a.accounts.CampaignRun(ctx, account, campaign)
}

// HasCompany reports whether there is a company on any node.
func (a *API) HasCompany(ctx context.Context) (bool, error) { return a.accounts.HasCompany(ctx) }

// HasAccount reports whether there is the account of this number on any node.
func (a *API) HasAccount(ctx context.Context, account uint64) (bool, error) {
	return a.accounts.HasAccount(ctx, account)
}
