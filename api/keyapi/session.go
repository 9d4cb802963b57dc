package keyapi

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/resolver"
)

// onlyOfKeys are the calls that signed-in people do not have, with the reason.
var onlyOfKeys = map[string]string{
	"GET /key": "It describes the key that the request is made with; GET /session describes a session.",
}

// SessionGroups lists the calls that signed-in people have because keys have them: all
// of Surfaces A and C, but for those of which the console has one of its own and those
// of [onlyOfKeys]. The calls of a zero API are the same, but must not be run.
func (a *API) SessionGroups() (out []handler.KeyGroup) {
	own := map[string]bool{}
	for _, g := range new(api.API).Operations() {
		for i := range g.Operations {
			if op := &g.Operations[i]; g.Surface == operation.SurfaceConsole {
				own[handler.CallOfKeys(op.Method, op.Path)] = true
			}
		}
	}
	for _, g := range append(a.groupsA(), a.groupsC()...) {
		s := handler.KeyGroup{Group: g.Group}
		s.Surface, s.Tag = operation.SurfaceConsole, "Console: "+strings.ToLower(g.Title)
		for i := range g.Routes {
			r := &g.Routes[i]
			name := r.Method + " " + r.Path
			if g.Surface == operation.SurfaceA && own[name] || onlyOfKeys[name] != "" {
				continue
			}
			s.Calls = append(s.Calls, a.bySession(r))
		}
		if len(s.Calls) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// SessionOperations lists the operations of [API.SessionGroups].
func (a *API) SessionOperations() (out []operation.Group) {
	for _, g := range a.SessionGroups() {
		for i := range g.Calls {
			g.Operations = append(g.Operations, g.Calls[i].Operation)
		}
		out = append(out, g.Group)
	}
	return out
}

// bySession is a call of keys as signed-in people have it.
func (a *API) bySession(r *keycall.Route) handler.KeyCall {
	k := handler.KeyCall{Operation: r.Operation}
	k.Path = handler.PathOfPeople(r.Path)
	name := strings.TrimPrefix(r.ID, "v1")
	k.ID = "console" + strings.ToUpper(name[:1]) + name[1:]
	k.Also = append(k.Also, 404) // what the body or the query names may not be there
	op := k.Operation
	k.Answer = func(who *handler.Caller) (handler.Shared, error) {
		data, err := r.Handle(&keycall.Call{RequestCtx: who.RequestCtx, Backend: &a.backend, Ctx: who.Context, Key: resolver.KeyAccess{Account: who.Account}, Self: who.Email, UserID: who.UserID,
			Params: who.Params, Now: a.opts.Now(), Op: &op, Payload: who.Payload})
		switch {
		case err != nil:
			return handler.Shared{}, toConsole(err)
		case data == keycall.Streamed:
			return handler.Shared{Streamed: true}, nil
		}
		out := keycall.ToReply(data)
		return handler.Shared{Data: out.Data, Message: out.Message, Next: out.Next}, nil
	}
	return k
}

// toConsole is an error of a call of keys as the console answers it: with the status of
// HTTP that Surface C has for it, and the field apart. Errors that the console knows
// stay as they are.
func toConsole(err error) error {
	var f *keycall.Failure
	var event *ingest.EventError
	if !errors.As(err, &f) {
		if !errors.As(err, &event) && !errors.Is(err, messaging.ErrSendContinues) {
			return err
		}
		f, _ = keycall.Classify(err)
	}
	return &handler.Refusal{Status: f.Code.Status, Field: fieldOf(f.Message), Message: f.Message, RetryAfter: time.Duration(f.RetryAfter) * time.Second, Data: f.Data}
}

// fieldOf is the field that a message of Surface A begins with, "" where it begins with
// none.
func fieldOf(message string) string {
	for _, behind := range []string{" Input ", " Field required", ": "} {
		if name, _, ok := strings.Cut(message, behind); ok && isFieldName(name) {
			return name
		}
	}
	return ""
}

// isFieldName reports whether a text can be the path of a field, such as
// variants[1].subject.
func isFieldName(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_.[]", c) {
			return false
		}
	}
	return s != ""
}

// checkSession refuses calls that the console has already.
func (a *API) checkSession() error {
	seen := map[string]bool{}
	for _, list := range [][]operation.Group{new(api.API).Operations(), a.SessionOperations()} {
		for _, g := range list {
			for i := range g.Operations {
				name := g.Operations[i].Method + " " + g.Surface.Prefix + g.Operations[i].Path
				if seen[name] {
					return fmt.Errorf("keyapi: the console has %s twice", name)
				}
				seen[name] = true
			}
		}
	}
	return nil
}
