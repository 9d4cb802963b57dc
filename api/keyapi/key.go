package keyapi

import (
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/resolver"
)

func (a *API) keyOperations() keycall.Group {
	return keycall.Group{Group: operation.Group{Surface: operation.SurfaceA, Tag: "The key", Title: "The key", About: "What the key in use may do. Keys are made, listed and revoked by people."}, Routes: []keycall.Route{
		{Handle: a.getKey, Operation: operation.Operation{Method: "GET", Path: "/key", Permission: operation.AnyKey, ID: "getKey", Summary: "Read the key in use",
			About: "`effective_permissions` are what the key may do now. They narrow when its creator's permissions are reduced.", Data: shapes.Key}},
	}}
}

// getKey answers GET /key: the key that the request was made with.
func (a *API) getKey(c *keycall.Call) (any, error) {
	var out record.Key
	err := c.Read(func(v *resolver.View) error {
		k, ok := v.Access().APIKey(c.Key.KeyID)
		if !ok {
			return errUnauthorized // its record made room meanwhile
		}
		out = record.NewKey(v, &k, a.LastUsed(c.Key.Account, k.ID))
		return nil
	})
	return out, err
}
