package keyapi

import (
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/internal/handler"
)

// sharedOperations are the calls that keys have because people have them: see
// [api.API.SharedGroups].
func (a *API) sharedOperations() (out []group) {
	console := a.opts.Console
	if console == nil {
		console = new(api.API) // of a zero API, which answers nothing
	}
	for _, s := range console.SharedGroups() {
		g := group{Group: s.Group}
		for i := range s.Calls {
			g.routes = append(g.routes, route{shared(&s.Calls[i]), s.Calls[i].Operation})
		}
		out = append(out, g)
	}
	return out
}

// streamed is what a handler returns that writes its own answer.
var streamed any = &struct{ int }{}

// shared answers a call that the console has as well.
func shared(s *handler.SharedCall) func(*call) (any, error) {
	return func(c *call) (any, error) {
		a, account, hash := c.api, c.key.Account, sha256.Sum256([]byte(bearer(c.Request.Header.Peek(fasthttp.HeaderAuthorization))))
		out, err := s.Run(&handler.Caller{
			RequestCtx: c.RequestCtx, Context: c.ctx, Account: account, KeyID: c.key.KeyID, Params: c.params, Payload: c.payload,
			Holds: func() (bool, error) {
				access, ok, err := a.opts.Node.KeyAccess(account, hash)
				return ok && slices.Contains(access.Permissions, s.Permission), err
			},
		})
		switch {
		case err != nil:
			return nil, err
		case out.Streamed:
			return streamed, nil
		}
		return reply{data: out.Data, message: out.Message, next: out.Next}, nil
	}
}

// ofConsole is a refusal of a shared call. Surface A names the field in the message.
func ofConsole(r *handler.Refusal) *failure {
	f := &failure{code: codeInvalid, message: r.Message, retryAfter: int((r.RetryAfter + time.Second - 1) / time.Second)}
	if r.Field != "" && !strings.HasPrefix(r.Message, r.Field) {
		f.message = r.Field + ": " + r.Message
	}
	for _, known := range codes {
		if known.status == r.Status {
			f.code = known
		}
	}
	return f
}
