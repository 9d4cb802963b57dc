package console

import (
	"context"
	"net/http"
)

// CreateServerSource makes a source of the tracking API for a server and returns its
// write key.
func (c *Client) CreateServerSource(ctx context.Context, name string) (writeKey string, err error) {
	var made struct {
		WriteKey string `json:"write_key"`
	}
	err = c.call(ctx, http.MethodPost, "/sources", map[string]string{"name": name, "kind": "server"}, &made)
	return made.WriteKey, err
}
