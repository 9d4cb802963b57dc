package api

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
)

func (a *API) profileOperations() handler.Group {
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: profiles", Title: "Profiles", About: "People: who they are, what they did, what they consented to."}, Routes: []handler.Route{
		{Handle: a.findProfile, Operation: operation.Operation{Method: "GET", Path: "/profiles", Permission: "contacts:read", ID: "findProfile", Summary: "Find a profile", About: "By exactly one identifier. To list profiles, or to search by the beginning of an identifier or a name, see `/profiles/search`.",
			Query: []operation.Parameter{operation.Query("email", shape.Text("ann@example.com", "")), operation.Query("external_id", shape.Text("42", "")), operation.Query("phone", shape.Text("+491701234567", ""))}, Data: profileShape, Also: []int{404}}},
		a.searchRoute(),
		{Handle: a.getProfile, Operation: operation.Operation{Method: "GET", Path: "/profiles/{id}", Permission: "contacts:read", ID: "getProfile", Summary: "Read a profile", Data: profileShape}},
		{Handle: a.updateProfile, Operation: operation.Operation{Method: "PATCH", Path: "/profiles/{id}", Permission: "contacts:write", ID: "updateProfile", Summary: "Change a profile",
			About: "What is given is changed: identifiers are added, names removed by an empty text, keys of `geo` and `attributes` by null.",
			Body:  shape.Object(append(shapes.ContactChanges(), shape.Opt("geo", shape.Geo("Merged into what is there.")), shape.Opt("attributes", shape.Attributes("Merged into what is there.")))...), Data: profileShape}},
		{Handle: a.eraseProfile, Operation: operation.Operation{Method: "DELETE", Path: "/profiles/{id}", Permission: "contacts:write", ID: "eraseProfile", Summary: "Erase a profile", About: "Deletes its events, too. Hashes of its identifiers are kept, so that they do not come back."}},
		{Handle: a.timeline, Operation: operation.Operation{Method: "GET", Path: "/profiles/{id}/events", Permission: "events:read", ID: "profileEvents", Summary: "List a profile's events", About: "The newest first.", Query: operation.PageQuery(),
			Data: shape.Object(shape.Req("events", shape.List(shapes.ProfileEvent, "")), shape.Req("next", shape.NextCursor.OrNull()))}},
		a.timelineRoute(),
		{Handle: a.setConsent, Operation: operation.Operation{Method: "POST", Path: "/profiles/{id}/consent", Permission: "contacts:write", ID: "setConsent", Summary: "Record a consent", About: "A consent lifts no suppression: of a channel on which the person is suppressed, the message of the answer says that nothing is sent.",
			Body: shape.Object(shape.Req("channel", shape.Channel("")), shape.Req("status", shape.Word("", "subscribed", "unsubscribed")), shape.Opt("source", shape.Text("form", "Where it comes from; left out, `console`, or `api` by an API key.").Bytes(0, 100))), Data: profileShape}},
		{Handle: a.suppress, Operation: operation.Operation{Method: "POST", Path: "/profiles/{id}/suppression", Permission: "contacts:write", ID: "suppress", Summary: "Block a channel",
			Body: shape.Object(shape.Req("channel", shape.Channel("")), shape.Opt("reason", shape.Word("", "suppressed", "bounced", "complained").Default("suppressed"))), Data: profileShape}},
		{Handle: a.unsuppress, Operation: operation.Operation{Method: "DELETE", Path: "/profiles/{id}/suppression", Permission: "contacts:write", ID: "unsuppress", Summary: "Lift the block of a channel",
			Query: []operation.Parameter{operation.Must("channel", shape.Channel("The channel."))}, Data: profileShape}},
	}}
}

// profile is a profile as it is answered.
type profile struct {
	ProfileID  string              `json:"profile_id"`
	MergedIDs  []string            `json:"merged_ids"`
	Identities map[string][]string `json:"identities"` // by kind, the newest first
	// AnonymousIDs are what SDKs made up for the person's devices, the newest first.
	AnonymousIDs []string           `json:"anonymous_ids"`
	FirstName    string             `json:"first_name"`
	LastName     string             `json:"last_name"`
	Geo          json.RawMessage    `json:"geo"`
	Attributes   json.RawMessage    `json:"attributes"`
	Tags         []string           `json:"tags"`    // those in Attributes
	Consent      map[string]consent `json:"consent"` // by channel
	Lists        []string           `json:"lists"`
	// Segments are the ids of the segments that hold the profile at AsOf; null
	// when that could not be found out, which the message then explains.
	Segments []string `json:"segments"`
	// Flows are the ids of the flows that the profile is or was in.
	Flows []string `json:"flows"`
	AsOf  string   `json:"as_of"`
	// Statuses are by channel; one that was never subscribed to has none.
	Statuses        map[string]string `json:"statuses"`
	Suppressions    map[string]string `json:"suppressions"` // reasons by channel
	EngagementScore int               `json:"engagement_score"`
	Devices         int               `json:"devices"`
	IsContact       bool              `json:"is_contact"`
	Conflicts       []conflict        `json:"conflicts"`
	CreatedAt       string            `json:"created_at"`
	// LastEventAt is the time of the latest event, null before the first.
	LastEventAt *string `json:"last_event_at"`
}

type consent struct {
	Status string  `json:"status"`
	Source string  `json:"source"`
	Since  *string `json:"since"`
}

// conflict is an identifier seen with the profile that is not its own.
type conflict struct {
	Kind           string  `json:"kind"`
	Value          string  `json:"value"`
	Reason         string  `json:"reason"`
	OtherProfileID *string `json:"other_profile_id"`
	At             string  `json:"at"`
}

var channels = []string{"email", "sms", "push", "whatsapp", "im", "in_app"}

var identityKinds = []resolver.IdentityKind{resolver.IdentityEmail, resolver.IdentityExternalID, resolver.IdentityPhone}

// answer is the profile as it is answered, with the segments that hold it.
func (x *person) answer(segments []string) profile {
	p, asOfMs := x.Profile, x.atMs
	out := profile{
		ProfileID: p.ID.String(), FirstName: p.FirstName, LastName: p.LastName,
		Geo: record.Object(p.Geo), Attributes: record.Object(p.Attributes), Tags: record.Tags(p.Attributes),
		MergedIDs: []string{}, Identities: map[string][]string{}, Consent: map[string]consent{},
		Lists: []string{}, Segments: segments, Flows: x.flows, Statuses: map[string]string{}, Suppressions: map[string]string{}, Conflicts: []conflict{},
		AsOf: record.Time(asOfMs), CreatedAt: record.Time(p.CreatedMs),
	}
	for _, k := range identityKinds {
		out.Identities[k.String()] = []string{}
	}
	for i := len(p.Identities) - 1; i >= 0; i-- {
		id := p.Identities[i]
		out.Identities[id.Kind.String()] = append(out.Identities[id.Kind.String()], id.Value)
	}
	out.AnonymousIDs = append([]string{}, p.AnonymousIDs...)
	slices.Reverse(out.AnonymousIDs)
	for _, m := range p.Merged {
		out.MergedIDs = append(out.MergedIDs, m.ID.String())
	}
	for _, ch := range channels {
		out.Consent[ch] = consent{Status: "never_subscribed"}
	}
	for _, c := range p.Consents {
		since := record.Time(c.SinceMs)
		out.Consent[c.Channel] = consent{c.Status, c.Source, &since}
	}
	out.Lists = append(out.Lists, p.Lists...)
	for _, ch := range channels {
		if s := p.Status(ch, asOfMs); s != "" {
			out.Statuses[ch] = s
		}
	}
	for _, b := range p.Blocks {
		out.Suppressions[b.Channel] = b.Reason
	}
	out.EngagementScore, out.Devices, out.IsContact = p.Score(asOfMs), len(p.Devices), p.IsContact
	for _, c := range p.Conflicts {
		x := conflict{Kind: c.Kind.String(), Value: c.Value, Reason: c.Reason, At: record.Time(c.AtMs)}
		if c.Other != nil {
			id := c.Other.String()
			x.OtherProfileID = &id
		}
		out.Conflicts = append(out.Conflicts, x)
	}
	if p.HasEvent() {
		at := record.Time(p.LastEventMs)
		out.LastEventAt = &at
	}
	return out
}

// maxIdentifierBytes is the longest identifier that is looked for.
const maxIdentifierBytes = 512

// findProfile answers GET /profiles with one identifier.
func (a *API) findProfile(c *handler.Call) (any, error) {
	var kind resolver.IdentityKind
	var value string
	given := 0
	for _, k := range identityKinds {
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
	return a.answerProfile(c, func(v *resolver.View) (uint32, bool) { return v.Find(kind, value) }, handler.NotFound("no profile has this %s", kind))
}

// getProfile answers GET /profiles/{id}; the id of a merged profile finds the
// one it was merged into.
func (a *API) getProfile(c *handler.Call) (any, error) {
	return a.answerProfile(c, func(v *resolver.View) (uint32, bool) { return v.ResolveText(c.PathID()) }, handler.ErrNoProfile)
}
