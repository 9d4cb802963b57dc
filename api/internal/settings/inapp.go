package settings

import (
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/tokens"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/inapp"
)

// inAppSecretPrefix begins every secret that signs tokens of people.
const inAppSecretPrefix = "ias_"

// defaultOverlapHours is how long a secret holds beside the one that takes its place.
const defaultOverlapHours = 24

// InApp are the calls about how pages show in-app messages.
func (a *API) InApp() handler.Group {
	settings := []shape.Field{
		shape.Req("issuer", shape.Text("acc_3f9a7c2e5d1b8046", "The account's id: the claim `iss` of tokens.")),
		shape.Req("allowed_origins", shape.List(shape.Text("https://shop.example", ""), "Sites whose pages may show messages.")),
		shape.Req("secrets", shape.List(shape.Object(
			shape.Req("created_at", shape.Instant("")),
			shape.Req("expires_at", shape.Instant("When tokens that it signed do not hold any more; null for the newest.").OrNull()),
		), "Those that hold, the newest first: none before one is made, two while one takes the place of the other.").Entries(0, 2)),
		shape.Req("script_url", shape.Text("https://muster.example/in-app/muster-inapp.js", "Of the script that shows messages.")),
	}
	one := shape.Named("InAppSettings", shape.Object(settings...))
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: in-app messages", Title: "In-app messages",
		About: "How pages of your site show the messages of the person who signed in there. Your server signs a token for that person; see docs/behaviour/in-app.md."}, Routes: []handler.Route{
		{Handle: a.getInApp, Operation: operation.Operation{Method: "GET", Path: "/in-app/settings", Permission: "campaigns:read", ID: "getInAppSettings", Summary: "Read the in-app settings", Data: one}},
		{Handle: a.setInApp, Operation: operation.Operation{Method: "PUT", Path: "/in-app/settings", Permission: "campaigns:write", ID: "setInAppSettings", Summary: "Change the in-app settings",
			Body: shape.Object(shape.Req("allowed_origins", shape.List(shape.Text("https://shop.example", "").Bytes(1, 300), "Scheme and host; `https://*.shop.example` for all below, `*` for all.").Entries(0, inapp.MaxOrigins))), Data: one}},
		{Handle: a.newInAppSecret, Operation: operation.Operation{Method: "POST", Path: "/in-app/secret", Permission: "campaigns:write", ID: "newInAppSecret", Summary: "Make an in-app secret",
			About: "It signs the tokens of people (HS256). The previous secret stays valid for a while, so that servers can be moved to the new one; an older one ends at once.",
			Body:  shape.Object(shape.Opt("overlap_hours", shape.Integer(defaultOverlapHours, "How long the secret of before holds beside the new one; with 0 it ends at once.").Between(0, inapp.MaxOverlapHours).Default(defaultOverlapHours))), BodyRules: operation.BodyRules{Optional: true},
			Data: shape.Named("InAppSecret", shape.Object(append(settings, shape.Req("secret", shape.Text("ias_Zm9v…", "Shown this once.")))...))}},
	}}
}

type inAppSecret struct {
	CreatedAt string  `json:"created_at"`
	ExpiresAt *string `json:"expires_at"`
}

type inAppSettings struct {
	Issuer         string        `json:"issuer"`
	AllowedOrigins []string      `json:"allowed_origins"`
	Secrets        []inAppSecret `json:"secrets"`
	ScriptURL      string        `json:"script_url"`
	// Secret is one that was just made.
	Secret string `json:"secret,omitempty"`
}

func (a *API) inAppSettings(c *handler.Call) (out inAppSettings, err error) {
	out = inAppSettings{Issuer: resolver.AccountID(c.Account), AllowedOrigins: []string{}, Secrets: []inAppSecret{}, ScriptURL: a.opts.PublicURL + "/in-app/muster-inapp.js"}
	err = c.Read(func(v *resolver.View) error {
		s := v.InApp().Settings()
		out.AllowedOrigins = append(out.AllowedOrigins, s.AllowedOrigins...)
		for _, x := range s.Secrets {
			if x.UntilMs == 0 || x.UntilMs > v.LogTimeMs() {
				out.Secrets = append(out.Secrets, inAppSecret{record.Time(x.CreatedMs), record.TimeOrNull(x.UntilMs)})
			}
		}
		return nil
	})
	return out, err
}

// getInApp answers GET /in-app/settings.
func (a *API) getInApp(c *handler.Call) (any, error) { return a.inAppSettings(c) }

// setInApp answers PUT /in-app/settings.
func (a *API) setInApp(c *handler.Call) (any, error) {
	var in inapp.Configure
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.AllowedOrigins == nil {
		return nil, handler.BadField("allowed_origins", "allowed_origins Field required: a list of sites; an empty list takes all away")
	}
	if err := c.Command(inapp.CommandConfigure, in, nil); err != nil {
		return nil, err
	}
	return a.inAppSettings(c)
}

// newInAppSecret answers POST /in-app/secret.
func (a *API) newInAppSecret(c *handler.Call) (any, error) {
	in := struct {
		OverlapHours *int `json:"overlap_hours"`
	}{}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	hours := defaultOverlapHours
	if in.OverlapHours != nil {
		hours = *in.OverlapHours
	}
	secret, err := tokens.Random(a.opts.Rand, inAppSecretPrefix, 32)
	if err != nil {
		return nil, err
	}
	if err := c.Command(inapp.CommandRotate, inapp.Rotate{Secret: secret, OverlapHours: hours}, nil); err != nil {
		return nil, err
	}
	out, err := a.inAppSettings(c)
	out.Secret = secret
	return out, err
}
