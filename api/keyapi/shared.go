package keyapi

import (
	"crypto/sha256"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
)

// sharedOperations are the calls that keys have because people have them: see
// [api.API.SharedGroups].
func (a *API) sharedOperations() (out []keycall.Group) {
	console := a.opts.Console
	if console == nil {
		console = new(api.API) // of a zero API, which answers nothing
	}
	for _, s := range console.SharedGroups() {
		g := keycall.Group{Group: s.Group}
		for i := range s.Calls {
			g.Routes = append(g.Routes, keycall.Route{Handle: a.shared(&s.Calls[i]), Operation: s.Calls[i].Operation})
		}
		out = append(out, g)
	}
	return out
}

// shared answers a call that the console has as well.
func (a *API) shared(s *handler.SharedCall) func(*keycall.Call) (any, error) {
	return func(c *keycall.Call) (any, error) {
		account, hash := c.Key.Account, sha256.Sum256([]byte(bearer(c.Request.Header.Peek(fasthttp.HeaderAuthorization))))
		out, err := s.Run(&handler.Caller{
			RequestCtx: c.RequestCtx, Context: c.Ctx, Account: account, KeyID: c.Key.KeyID, Params: c.Params, Payload: c.Payload,
			Holds: func() (bool, error) {
				access, ok, err := a.opts.Node.KeyAccess(account, hash)
				return ok && slices.Contains(access.Permissions, s.Permission), err
			},
		})
		switch {
		case err != nil:
			return nil, err
		case out.Streamed:
			return keycall.Streamed, nil
		}
		return keycall.Reply{Data: out.Data, Message: out.Message, Next: out.Next}, nil
	}
}
