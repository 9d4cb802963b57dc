package accounts

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/internal/tokens"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
)

// APIKeys are the calls about API keys.
func (a *API) APIKeys() handler.Group {
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: API keys", Title: "API keys", About: "A key is shown once, when it is made; only its hash is kept."}, Routes: []handler.Route{
		{Handle: a.listAPIKeys, Operation: operation.Operation{Method: "GET", Path: "/api-keys", Permission: "api_keys:read", ID: "listAPIKeys", Summary: "List API keys", About: "The oldest first, also those revoked.", Data: shape.List(shapes.Key, ""), Paged: true}},
		{Handle: a.createAPIKey, Operation: operation.Operation{Method: "POST", Path: "/api-keys", Permission: "api_keys:write", ID: "createAPIKey", Summary: "Create an API key",
			Body: shape.Object(shape.Req("name", shape.Text("Shop", "What it is for.").Bytes(1, 200)), shape.Opt("permissions", shapes.Permissions("What it may do; left out, all that you may do and keys may hold.").Entries(1, 100))),
			Data: shapes.Key.Plus(shape.Req("key", shape.Text("svc_live_Zm9v…", "The key itself, this once.")))}},
		{Handle: a.revokeAPIKey, Operation: operation.Operation{Method: "DELETE", Path: "/api-keys/{id}", Permission: "api_keys:write", ID: "revokeAPIKey", Summary: "Revoke an API key", About: "It stops working at once.", Data: shapes.Key}},
	}}
}

// apiKey is an API key as it is answered.
type apiKey struct {
	record.Key
	// Secret is the key itself, at its creation only.
	Secret string `json:"key,omitempty"`
}

func (a *API) newAPIKey(v *resolver.View, account uint64, k *access.APIKey) apiKey {
	return apiKey{Key: record.NewKey(v, k, a.opts.KeyLastUsed(account, k.ID))}
}

// listAPIKeys answers GET /api-keys, the oldest first, also those revoked.
func (a *API) listAPIKeys(c *handler.Call) (any, error) {
	return handler.OldestFirst(c, func(v *resolver.View) []access.APIKey { return v.Access().APIKeys() }, func(k *access.APIKey) paging.Age { return paging.Age{CreatedMs: k.CreatedMs, ID: k.ID} },
		func(v *resolver.View, k *access.APIKey) apiKey { return a.newAPIKey(v, c.Account, k) })
}

// createAPIKey answers POST /api-keys.
func (a *API) createAPIKey(c *handler.Call) (any, error) {
	var in struct {
		Name        *string   `json:"name"`
		Permissions *[]string `json:"permissions"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	known := operation.KeyPermissions()
	switch {
	case in.Name == nil || strings.TrimSpace(*in.Name) == "":
		return nil, handler.BadField("name", "name is missing; name what the key is for")
	case in.Permissions == nil:
		all := slices.DeleteFunc(known, func(p string) bool { return !c.User.Can(p) })
		in.Permissions = &all
	case len(*in.Permissions) == 0:
		return nil, handler.BadField("permissions", "permissions is empty; list what the key may do, or leave it out for all that you may do")
	default:
		if err := checkPermissions(*in.Permissions, known, "cannot be held by an API key"); err != nil {
			return nil, err
		}
	}
	key, err := NewAPIKey(a.opts.Rand, c.Account)
	if err != nil {
		return nil, err
	}
	id, err := c.CommandID(access.CommandAPIKeyCreate,
		access.APIKeyCreate{ActorID: c.User.ID, Name: *in.Name, Hash: tokens.Hash(key), Permissions: *in.Permissions})
	if err != nil {
		return nil, err
	}
	out, err := a.apiKey(c, id)
	out.Secret = key
	return out, err
}

// revokeAPIKey answers DELETE /api-keys/{id} with the record, which stays.
func (a *API) revokeAPIKey(c *handler.Call) (any, error) {
	err := c.Command(access.CommandAPIKeyRevoke, access.APIKeyRevoke{ActorID: c.User.ID, ID: c.PathID()}, nil)
	if err != nil {
		return nil, err
	}
	return a.apiKey(c, c.PathID())
}

// apiKey reads a key.
func (a *API) apiKey(c *handler.Call, id string) (out apiKey, err error) {
	err = c.Read(func(v *resolver.View) error {
		k, ok := v.Access().APIKey(id)
		if !ok {
			return handler.NotFound("there is no API key with this id")
		}
		out = a.newAPIKey(v, c.Account, &k)
		return nil
	})
	return out, err
}
