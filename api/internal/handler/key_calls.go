package handler

import (
	"bytes"
	"strings"

	"github.com/fasthttp/router"

	"github.com/musterhq/muster/api/operation"
)

// KeyGroup is the calls of a noun that signed-in people have because API keys have
// them.
type KeyGroup struct {
	operation.Group
	Calls []KeyCall
}

// KeyCall is a call of API keys as signed-in people have it: the same permission, body
// and answer, and the same code behind it.
type KeyCall struct {
	operation.Operation
	// Answer answers the call. What the caller did wrong is a [*Refusal]; other errors
	// are those of the state and of history.
	Answer func(*Caller) (Shared, error)
}

// RegisterKeyCalls adds the calls that people have because keys have them. The chain of
// the console's calls runs before each: session, permission, body and query.
func (h *Chain) RegisterKeyCalls(r *router.Router, groups []KeyGroup) {
	for _, g := range groups {
		for i := range g.Calls {
			k := &g.Calls[i]
			r.Handle(k.Method, g.Surface.Prefix+k.Path, h.Serve(&Route{keyCall(k), k.Operation}))
		}
	}
}

func keyCall(k *KeyCall) func(*Call) (any, error) {
	return func(c *Call) (any, error) {
		out, err := k.Answer(&Caller{
			RequestCtx: c.RequestCtx, Context: c.Ctx, Account: c.Account, Email: c.User.Email, UserID: c.User.ID, Params: c.params(), Payload: bytes.TrimSpace(c.Payload),
			Holds: func() (bool, error) { return c.findSession() },
		})
		switch {
		case err != nil:
			return nil, err
		case out.Streamed:
			return Streaming, nil
		}
		return Page{out.Data, out.Next, out.Message}, nil
	}
}

// params are the texts in place of the parts of the path in braces, by name.
func (c *Call) params() map[string]string {
	out := map[string]string{}
	for part := range strings.SplitSeq(c.op.Path, "/") {
		if name, is := strings.CutPrefix(part, "{"); is {
			name = strings.TrimSuffix(name, "}")
			out[name] = c.Param(name)
		}
	}
	return out
}

// PathOfPeople is the path of the console for a path of Surface A or C.
func PathOfPeople(path string) string {
	noun, rest, deeper := strings.Cut(path[1:], "/")
	for people, keys := range keyNouns {
		if keys == noun {
			noun = people
			break
		}
	}
	if deeper {
		noun += "/" + rest
	}
	return "/" + noun
}
