package console

import (
	"context"
	"net/http"

	"github.com/musterhq/muster/bench/internal/server"
)

// CreateCompany makes a company and returns its credentials, without addresses.
// Only a user of the first company may.
func (c *Client) CreateCompany(ctx context.Context, name, email string) (server.Credentials, error) {
	var made server.Credentials
	err := c.call(ctx, http.MethodPost, "/companies", map[string]string{"name": name, "email": email}, &made)
	return made, err
}
