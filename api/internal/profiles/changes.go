package profiles

import (
	"encoding/json"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/erasure"
)

// Erasures are the calls about identifiers that are kept out.
func (a *API) Erasures() handler.Group {
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: erasures", Title: "Erasures", About: "Identifiers of people who were erased are kept out, by their hashes."}, Routes: []handler.Route{
		{Handle: a.listErasures, Operation: operation.Operation{Method: "GET", Path: "/erasures", Permission: "settings:read", ID: "listErasures", Summary: "List erased identifiers",
			Data: shape.List(shape.Object(shape.Req("hash", shape.Text("9f86d081884c7d659a2feaa0c55ad015", "")), shape.Req("kind", shape.Word("", "email", "external_id", "phone", "anonymous_id")), shape.Req("erased_at", shape.Instant(""))), ""), Paged: true}},
		{Handle: a.liftErasure, Operation: operation.Operation{Method: "DELETE", Path: "/erasures/{id}", Permission: "settings:write", ID: "liftErasure", Summary: "Lift the erasure of an identifier"}},
	}}
}

// updateProfile answers PATCH /profiles/{id}: what is given is changed, names
// are removed by "", keys of geo and attributes by null.
func (a *API) updateProfile(c *handler.Call) (any, error) {
	var in struct {
		Email      *string `json:"email"`
		FirstName  *string `json:"first_name"`
		LastName   *string `json:"last_name"`
		Phone      *string `json:"phone"`
		ExternalID *string `json:"external_id"`
		// Raw, so that numbers stay as they were written.
		Geo        json.RawMessage `json:"geo"`
		Attributes json.RawMessage `json:"attributes"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	args := contacts.Update{ID: c.PathID(), Email: in.Email, FirstName: in.FirstName, LastName: in.LastName, Phone: in.Phone, ExternalID: in.ExternalID}
	if field := args.Blank(); field != "" {
		return nil, handler.BadField(field, "%s %s", field, record.BlankIdentifier)
	}
	for _, f := range []struct {
		name string
		src  json.RawMessage
		dst  *json.RawMessage
	}{{"geo", in.Geo, &args.Geo}, {"attributes", in.Attributes, &args.Attributes}} {
		switch {
		case len(f.src) == 0 || string(f.src) == "null":
		case f.src[0] != '{':
			return nil, handler.BadField(f.name, "%s must be an object", f.name)
		default:
			*f.dst = f.src
		}
	}
	if err := c.Command(contacts.CommandUpdate, args, nil); err != nil {
		return nil, err
	}
	return a.getProfile(c)
}

// eraseProfile answers DELETE /profiles/{id}.
func (a *API) eraseProfile(c *handler.Call) (any, error) {
	return nil, c.Command(resolver.CommandContactErase, resolver.ContactErase{ID: c.PathID()}, nil)
}

// setConsent answers POST /profiles/{id}/consent.
func (a *API) setConsent(c *handler.Call) (any, error) {
	var in struct {
		Channel string `json:"channel"`
		Status  string `json:"status"`
		Source  string `json:"source"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.Source == "" {
		in.Source = c.Source()
	}
	if err := c.Command(contacts.CommandConsentSet, contacts.ConsentSet{ID: c.PathID(), Channel: in.Channel, Status: in.Status, Source: in.Source}, nil); err != nil {
		return nil, err
	}
	out, err := a.getProfile(c)
	if err != nil || in.Status != "subscribed" {
		return out, err
	}
	warning := ""
	err = c.Read(func(v *resolver.View) error {
		o, ok := v.Profiles().ResolveText(c.PathID())
		if !ok {
			return handler.ErrNoProfile
		}
		p, err := v.Profiles().Get(o)
		if err == nil {
			warning = record.SuppressedConsent(p, in.Channel)
		}
		return err
	})
	if err != nil || warning == "" {
		return out, err
	}
	if n, has := out.(handler.Note); has {
		out = n.Data
		if n.Message != "" {
			warning += "; " + n.Message
		}
	}
	return handler.Note{Data: out, Message: warning}, nil
}

// suppress answers POST /profiles/{id}/suppression.
func (a *API) suppress(c *handler.Call) (any, error) {
	var in struct {
		Channel string `json:"channel"`
		Reason  string `json:"reason"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.Reason == "" {
		in.Reason = "suppressed"
	}
	return a.setSuppression(c, in.Channel, in.Reason)
}

// unsuppress answers DELETE /profiles/{id}/suppression?channel=.
func (a *API) unsuppress(c *handler.Call) (any, error) {
	return a.setSuppression(c, string(c.QueryArgs().Peek("channel")), "")
}

func (a *API) setSuppression(c *handler.Call, channel, reason string) (any, error) {
	if channel == "" {
		return nil, handler.BadField("channel", "channel is missing; name the channel, such as email")
	}
	if err := c.Command(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: c.PathID(), Channel: channel, Reason: reason, Source: c.Source()}, nil); err != nil {
		return nil, err
	}
	return a.getProfile(c)
}

// listErasures answers GET /erasures: the hashes of identifiers that are kept
// out. A hash is also the cursor of what follows it.
func (a *API) listErasures(c *handler.Call) (any, error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	type erasure struct {
		Hash     string `json:"hash"`
		Kind     string `json:"kind"`
		ErasedAt string `json:"erased_at"`
	}
	out := []erasure{}
	next := ""
	err = c.Read(func(v *resolver.View) error {
		list := v.Erasures().List(string(c.QueryArgs().Peek("cursor")), limit+1)
		for i, x := range list {
			if i == limit {
				next = list[limit-1].Hash
				break
			}
			out = append(out, erasure{x.Hash, x.Kind, record.Time(x.AtMs)})
		}
		return nil
	})
	return handler.Page{Items: out, Next: next}, err
}

// liftErasure answers DELETE /erasures/{hash or identifier}.
func (a *API) liftErasure(c *handler.Call) (any, error) {
	id := c.Param("id")
	err := c.Command(erasure.CommandLift, erasure.Lift{Value: id}, nil)
	if p, _ := handler.Classify(err); err != nil && p.Status == 404 {
		err = c.Command(erasure.CommandLift, erasure.Lift{Hash: id}, nil)
	}
	return nil, err
}
