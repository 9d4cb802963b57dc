package keyapi

import (
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/resolver"
)

// keyCalls are the calls about the key in use.
type keyCalls struct{ uses *uses }

func (k keyCalls) operations() keycall.Group {
	return keycall.Group{Group: operation.Group{Surface: operation.SurfaceA, Tag: "The key", Title: "The key", About: "What the key in use may do. Keys are made, listed and revoked by people."}, Routes: []keycall.Route{
		{Handle: k.get, Operation: operation.Operation{Method: "GET", Path: "/key", Permission: operation.AnyKey, ID: "getKey", Summary: "Read the key in use",
			About: "`effective_permissions` are what the key may do now. They narrow when its creator's permissions are reduced.", Data: shapes.Key}},
	}}
}

// get answers GET /key: the key that the request was made with.
func (k keyCalls) get(c *keycall.Call) (any, error) {
	var out record.Key
	err := c.Read(func(v *resolver.View) error {
		key, ok := v.Access().APIKey(c.Key.KeyID)
		if !ok {
			return errUnauthorized // its record made room meanwhile
		}
		out = record.NewKey(v, &key, k.uses.last(keyRef{c.Key.Account, key.ID}))
		return nil
	})
	return out, err
}
