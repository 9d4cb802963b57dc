package messages

import (
	"encoding/json"
	"errors"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
)

// renderTemplate answers POST /templates/{id}/render.
func (a *API) renderTemplate(c *handler.Call) (any, error) {
	var in struct {
		ProfileID string          `json:"profile_id"`
		Email     string          `json:"email"`
		Data      json.RawMessage `json:"data"`
		Subject   *string         `json:"subject"`
		HTML      *string         `json:"html"`
		Text      *string         `json:"text"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	switch {
	case (in.ProfileID == "") == (in.Email == ""):
		return nil, handler.BadField("profile_id", "name the person by profile_id or email")
	case len(in.Data) > 0 && in.Data[0] != '{' && string(in.Data) != "null":
		return nil, handler.BadField("data", "data must be an object")
	}
	var out struct {
		ProfileID string `json:"profile_id"`
		Subject   string `json:"subject"`
		HTML      string `json:"html"`
		Text      string `json:"text"`
	}
	err := c.Read(func(v *resolver.View) error {
		t, ok, err := v.Campaigns().WholeTemplate(c.PathID())
		switch {
		case err != nil:
			return err
		case !ok:
			return errNoTemplate
		}
		for _, x := range []struct{ given, dst *string }{{in.Subject, &t.Subject}, {in.HTML, &t.HTML}, {in.Text, &t.Text}} {
			if x.given != nil {
				*x.dst = *x.given
			}
		}
		o, field, found := v.Profiles().Person(in.ProfileID, in.Email)
		if !found {
			return &handler.Problem{Status: 404, Field: field, Message: field + ": there is no such person"}
		}
		p, err := v.Profiles().Get(o)
		if err != nil {
			return err
		}
		r, err := compose.Render(campaigns.Content{Subject: t.Subject, HTML: t.HTML, Text: t.Text}, p, v.CompanyState().Name, in.Data)
		var fault *compose.ContentError
		if errors.As(err, &fault) {
			if fault.Field == "body" {
				fault.Field = "html"
			}
			return handler.BadField(fault.Field, "%s", fault)
		}
		out.ProfileID, out.Subject, out.HTML, out.Text = p.ID.String(), r.Subject, r.HTML, r.Text
		return err
	})
	return out, err
}
