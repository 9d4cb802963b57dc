package profiles

import (
	"strings"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
)

// Operations are the calls about profiles.
func (a *API) Operations() handler.Group {
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: profiles", Title: "Profiles", About: "People: who they are, what they did, what they consented to."}, Routes: []handler.Route{
		{Handle: a.findProfile, Operation: operation.Operation{Method: "GET", Path: "/profiles", Permission: "contacts:read", ID: "findProfile", Summary: "Find a profile", About: "By exactly one identifier. To list profiles, or to search by the beginning of an identifier or a name, see `/profiles/search`.",
			Query: []operation.Parameter{operation.Query("email", shape.Text("ann@example.com", "")), operation.Query("external_id", shape.Text("42", "")), operation.Query("phone", shape.Text("+491701234567", ""))}, Data: shapes.Profile, Also: []int{404}}},
		a.searchRoute(),
		{Handle: a.getProfile, Operation: operation.Operation{Method: "GET", Path: "/profiles/{id}", Permission: "contacts:read", ID: "getProfile", Summary: "Read a profile", Data: shapes.Profile}},
		{Handle: a.updateProfile, Operation: operation.Operation{Method: "PATCH", Path: "/profiles/{id}", Permission: "contacts:write", ID: "updateProfile", Summary: "Change a profile",
			About: "What is given is changed: identifiers are added, names removed by an empty text, keys of `geo` and `attributes` by null.",
			Body:  shape.Object(append(shapes.ContactChanges(), shape.Opt("geo", shape.Geo("Merged into what is there.")), shape.Opt("attributes", shape.Attributes("Merged into what is there.")))...), Data: shapes.Profile}},
		{Handle: a.eraseProfile, Operation: operation.Operation{Method: "DELETE", Path: "/profiles/{id}", Permission: "contacts:write", ID: "eraseProfile", Summary: "Erase a profile", About: "Deletes its events, too. Hashes of its identifiers are kept, so that they do not come back."}},
		{Handle: a.timeline, Operation: operation.Operation{Method: "GET", Path: "/profiles/{id}/events", Permission: "events:read", ID: "profileEvents", Summary: "List a profile's events", About: "The newest first.", Query: operation.PageQuery(),
			Data: shape.Object(shape.Req("events", shape.List(shapes.ProfileEvent, "")), shape.Req("next", shape.NextCursor.OrNull()))}},
		a.timelineRoute(),
		{Handle: a.setConsent, Operation: operation.Operation{Method: "POST", Path: "/profiles/{id}/consent", Permission: "contacts:write", ID: "setConsent", Summary: "Record a consent", About: "A consent lifts no suppression: of a channel on which the person is suppressed, the message of the answer says that nothing is sent.",
			Body: shape.Object(shape.Req("channel", shape.Channel("")), shape.Req("status", shape.Word("", "subscribed", "unsubscribed")), shape.Opt("source", shape.Text("form", "Where it comes from; left out, `console`, or `api` by an API key.").Bytes(0, 100))), Data: shapes.Profile}},
		{Handle: a.suppress, Operation: operation.Operation{Method: "POST", Path: "/profiles/{id}/suppression", Permission: "contacts:write", ID: "suppress", Summary: "Suppress a channel",
			Body: shape.Object(shape.Req("channel", shape.Channel("")), shape.Opt("reason", shape.Word("", "suppressed", "bounced", "complained").Default("suppressed"))), Data: shapes.Profile}},
		{Handle: a.unsuppress, Operation: operation.Operation{Method: "DELETE", Path: "/profiles/{id}/suppression", Permission: "contacts:write", ID: "unsuppress", Summary: "Lift the suppression of a channel",
			Query: []operation.Parameter{operation.Must("channel", shape.Channel("The channel."))}, Data: shapes.Profile}},
	}}
}

// maxIdentifierBytes is the longest identifier that is looked for.
const maxIdentifierBytes = 512

// findProfile answers GET /profiles with one identifier.
func (a *API) findProfile(c *handler.Call) (any, error) {
	var kind resolver.IdentityKind
	var value string
	given := 0
	for _, k := range record.IdentityKinds {
		if args := c.QueryArgs(); args.Has(k.String()) {
			kind, value = k, string(args.Peek(k.String()))
			given++
		}
	}
	switch {
	case given != 1:
		return nil, handler.BadField("email", "give exactly one of email, external_id and phone in the query")
	case strings.TrimSpace(value) == "":
		return nil, handler.BadField(kind.String(), "%s is empty; give the identifier to look for", kind)
	case len(value) > maxIdentifierBytes:
		return nil, handler.BadField(kind.String(), "%s is longer than %d bytes", kind, maxIdentifierBytes)
	}
	return a.opts.Evaluation.AnswerProfile(c, func(v *resolver.View) (uint32, bool) { return v.Profiles().Find(kind, value) }, handler.NotFound("no profile has this %s", kind))
}

// getProfile answers GET /profiles/{id}; the id of a merged profile finds the
// one it was merged into.
func (a *API) getProfile(c *handler.Call) (any, error) {
	return a.opts.Evaluation.AnswerProfile(c, func(v *resolver.View) (uint32, bool) { return v.Profiles().ResolveText(c.PathID()) }, handler.ErrNoProfile)
}
