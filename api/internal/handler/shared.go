package handler

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/resolver/audit"
)

// SharedGroup is the calls of a noun that people and API keys share.
type SharedGroup struct {
	operation.Group
	Calls []SharedCall
}

// SharedCall is a call of the console as API keys have it: the same permission, body
// and answer, and the same code behind it.
type SharedCall struct {
	operation.Operation
	handle func(*Call) (any, error)
	chain  *Chain
}

// Caller is who makes a shared call, and what was read of the request. A caller with a
// key makes a [SharedCall], one with a session a [KeyCall].
type Caller struct {
	*fasthttp.RequestCtx
	Context context.Context // ends with the call's time
	Account uint64
	KeyID   string            // of the API key, for the audit log
	UserID  string            // of the signed-in person, likewise
	Email   string            // of the signed-in user, "" for an API key
	Params  map[string]string // texts in place of the parts of the path in braces
	Payload []byte            // the body, empty where there is none
	// Holds reports whether the caller may still make the call. Streams ask it.
	Holds func() (bool, error)
}

// Shared is the answer of a shared call.
type Shared struct {
	Data    any
	Message string
	Next    string // cursor of the next page, "" at the end
	// Streamed reports that the answer is written already.
	Streamed bool
}

// Refusal is why a shared call did nothing.
type Refusal struct {
	Status  int // of HTTP
	Field   string
	Message string
	// RetryAfter is 0 where repeating the call later does not help.
	RetryAfter time.Duration
	// Data is what was done all the same, nil for nothing.
	Data any
}

func (r *Refusal) Error() string { return r.Message }

// ownOfKeys are the calls of the console for which API keys have one of their own, by
// method and path: the interface describes it, or it has the noun of one that it
// describes. A call that belongs here and is missing makes keyapi.New fail where both
// have the same path.
var ownOfKeys = map[string]string{
	"PATCH /profiles/{id}":  "PATCH /contacts/{id}",
	"DELETE /profiles/{id}": "DELETE /contacts/{id}",

	"GET /profiles/{id}/devices":             "GET /contacts/{id}/devices",
	"POST /profiles/{id}/devices":            "POST /contacts/{id}/devices",
	"DELETE /profiles/{id}/devices/{device}": "DELETE /contacts/{id}/devices/{device}",

	"GET /lists":                           "GET /lists",
	"POST /lists":                          "POST /lists",
	"GET /lists/{id}":                      "GET /lists/{id}",
	"PUT /lists/{id}":                      "PATCH /lists/{id}",
	"DELETE /lists/{id}":                   "DELETE /lists/{id}",
	"DELETE /lists/{id}/members/{profile}": "DELETE /lists/{id}/contacts/{contact}",

	"GET /campaigns":            "GET /campaign",
	"GET /campaigns/{id}":       "GET /campaign/{id}",
	"GET /campaigns/{id}/stats": "GET /campaign/{id}/stats",

	"GET /flows":                 "GET /custom-flows",
	"GET /flows/{id}":            "GET /custom-flows/{id}",
	"PATCH /flows/{id}":          "PATCH /custom-flows/{id}",
	"POST /flows/{id}/pause":     "POST /custom-flows/{id}/pause",
	"POST /flows/{id}/resume":    "POST /custom-flows/{id}/resume",
	"PATCH /flows/{id}/toggle":   "PATCH /custom-flows/{id}/toggle",
	"POST /flows/{id}/duplicate": "POST /custom-flows/{id}/duplicate",
	"POST /flows/{id}/trigger":   "POST /custom-flows/{id}/trigger",
}

// keyNouns are the first parts of paths that Surface A names otherwise.
var keyNouns = map[string]string{"flows": "custom-flows", "campaigns": "campaign"}

// SharedGroups lists the calls of groups that API keys have because people have them:
// all whose permission a key may hold, but for those that keys have one of
// their own for.
func (h *Chain) SharedGroups(groups []Group) (out []SharedGroup) {
	known := operation.KeyPermissions()
	for _, g := range groups {
		s := SharedGroup{Group: g.Group}
		s.Surface, s.Tag = operation.SurfaceA, keyTag(g.Title)
		for i := range g.Routes {
			r := &g.Routes[i]
			if g.Surface == operation.SurfaceConsole && slices.Contains(known, r.Permission) && ownOfKeys[r.Method+" "+r.Path] == "" {
				s.Calls = append(s.Calls, h.share(r))
			}
		}
		if len(s.Calls) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// keyTag is the tag of a noun of Surface A. That of events is Surface B's.
func keyTag(title string) string {
	if title == "Events" {
		return "Events by API key"
	}
	return title
}

// CallOfKeys names the call of Surface A that does what a call of the console does, by
// method and path. Whether keys have it is for the permission to say.
func CallOfKeys(method, path string) string {
	if own := ownOfKeys[method+" "+path]; own != "" {
		return own
	}
	noun, rest, deeper := strings.Cut(path[1:], "/")
	if own := keyNouns[noun]; own != "" {
		noun = own
	}
	if deeper {
		noun += "/" + rest
	}
	return method + " /" + noun
}

// share is a call of the console as keys have it.
func (h *Chain) share(r *Route) SharedCall {
	s := SharedCall{Operation: r.Operation, handle: r.Handle, chain: h}
	_, s.Path, _ = strings.Cut(CallOfKeys(r.Method, r.Path), " ")
	name := strings.TrimPrefix(r.ID, "console")
	s.ID = strings.ToLower(name[:1]) + name[1:] + "ByKey"
	// Surface A answers 200 where the console answers 202, and most failures too.
	if s.Also = nil; s.Data != nil {
		s.Other = nil
	}
	return s
}

// Run makes the call. What the caller did wrong is a [*Refusal]; other errors are
// those of the state and of history.
func (s *SharedCall) Run(who *Caller) (Shared, error) {
	params := who.Params
	if params == nil {
		params = map[string]string{}
	}
	c := &Call{RequestCtx: who.RequestCtx, chain: s.chain, Ctx: who.Context, Account: who.Account, op: &s.Operation, Payload: who.Payload, shared: &sharing{params, who.Holds, who.KeyID}}
	data, err := c.answer(s.handle)
	var p *Problem
	switch {
	case errors.As(err, &p):
		return Shared{}, &Refusal{Status: p.Status, Field: p.Field, Message: p.Message, RetryAfter: p.RetryAfter}
	case err != nil:
		return Shared{}, err
	}
	switch d := data.(type) {
	case Note:
		return Shared{Data: d.Data, Message: d.Message}, nil
	case Accepted:
		return Shared{Data: d.Data, Message: d.Message}, nil
	case Page:
		return Shared{Data: d.Items, Message: d.Message, Next: d.Next}, nil
	}
	if data == Streaming {
		return Shared{Streamed: true}, nil
	}
	return Shared{Data: data}, nil
}

// sharing is a call's data of a caller without a session.
type sharing struct {
	params map[string]string
	holds  func() (bool, error)
	keyID  string
}

// Source is where a call says that what it changes comes from.
func (c *Call) Source() string {
	if c.shared != nil {
		return "api"
	}
	return "console"
}

// ChangedBy is who makes a call, for the audit log.
func (c *Call) ChangedBy() audit.Author {
	if c.shared != nil {
		return audit.Author{Kind: audit.ByKey, ID: c.shared.keyID}
	}
	return audit.Author{Kind: audit.ByUser, ID: c.User.ID}
}

// holds reports whether the caller may still make the call.
func (c *Call) holds() (bool, error) {
	if c.shared != nil {
		return c.shared.holds()
	}
	return c.findSession()
}
