package providers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/push"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/credentials"
)

// credentialGroup is one kind of keys: to push services, to providers of texts,
// or of providers to us. They are taken in and used, and never shown again.
type credentialGroup struct {
	name string
	// prepare checks what a person sent and says what is stored, and what is shown
	// of it this once.
	prepare func(a *API, c *handler.Call, name string, body map[string]json.RawMessage) (config any, once map[string]any, err error)
	// show is what may be seen of it at any time: nothing that is secret.
	show func(c *handler.Call, name string, config json.RawMessage) map[string]any
}

var (
	pushCredentials  = &credentialGroup{credentials.Push, preparePushCredential, showPushCredential}
	messageProviders = &credentialGroup{credentials.Message, prepareMessageProvider, showMessageProvider}
	inboundProviders = &credentialGroup{credentials.Inbound, prepareInboundProvider, showInboundProvider}
)

// Credential is one as it is answered.
type Credential struct {
	Kind      string         `json:"kind"`
	UpdatedAt string         `json:"updated_at"`
	Details   map[string]any `json:"details"`
	// Once is what is shown when it is set and never again.
	Once map[string]any `json:"once,omitempty"`
}

// listCredentials answers GET: which are set, and nothing that is secret.
func (a *API) listCredentials(g *credentialGroup) func(*handler.Call) (any, error) {
	return func(c *handler.Call) (any, error) {
		list := []Credential{}
		err := c.Read(func(v *resolver.View) error {
			for _, x := range v.Credentials().Of(g.name) {
				list = append(list, Credential{Kind: x.Name, UpdatedAt: record.Time(x.UpdatedMs), Details: g.show(c, x.Name, x.Config)})
			}
			return nil
		})
		return list, err
	}
}

// setCredential answers PUT, which takes them whole.
func (a *API) setCredential(g *credentialGroup) func(*handler.Call) (any, error) {
	return func(c *handler.Call) (any, error) {
		body := map[string]json.RawMessage{}
		if err := c.Decode(&body); err != nil {
			return nil, err
		}
		if err := g.known(c.PathID()); err != nil {
			return nil, err
		}
		config, once, err := g.prepare(a, c, c.PathID(), body)
		if err != nil {
			return nil, err
		}
		raw, err := json.Marshal(config)
		if err != nil {
			return nil, err
		}
		if err := c.Command(credentials.CommandSet, credentials.Credential{Group: g.name, Name: c.PathID(), Config: raw}, nil); err != nil {
			return nil, err
		}
		return Credential{Kind: c.PathID(), UpdatedAt: record.Time(a.opts.Now().UnixMilli()), Details: g.show(c, c.PathID(), raw), Once: once}, nil
	}
}

// deleteCredential answers DELETE.
func (a *API) deleteCredential(g *credentialGroup) func(*handler.Call) (any, error) {
	return func(c *handler.Call) (any, error) {
		if err := g.known(c.PathID()); err != nil {
			return nil, err
		}
		return nil, c.Command(credentials.CommandDelete, credentials.Credential{Group: g.name, Name: c.PathID()}, nil)
	}
}

func (g *credentialGroup) known(name string) error {
	names := credentials.Names(g.name)
	for _, x := range names {
		if x == name {
			return nil
		}
	}
	return &handler.Problem{Status: http.StatusNotFound, Message: fmt.Sprintf("there is no provider %q here; it is one of %v", name, names)}
}

// asStruct reads a body's fields into v, known fields only.
func asStruct(body map[string]json.RawMessage, v any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return handler.Decode(raw, v)
}

// preparePushCredential takes credentials as the services give them. With
// generate, a pair of VAPID keys is made; its public half is shown always.
func preparePushCredential(a *API, _ *handler.Call, name string, body map[string]json.RawMessage) (any, map[string]any, error) {
	kind, _ := messaging.PushKind(name)
	if name == "webpush" {
		var in struct {
			push.WebCredentials
			Generate bool `json:"generate"`
		}
		if err := asStruct(body, &in); err != nil {
			return nil, nil, err
		}
		if in.Generate {
			keys, err := push.GenerateWebCredentials(in.Subject)
			if err != nil {
				return nil, nil, handler.BadField("subject", "%s", err)
			}
			in.WebCredentials = keys
		}
		raw, err := json.Marshal(in.WebCredentials)
		if err != nil {
			return nil, nil, err
		}
		if err := push.Validate(kind, raw, a.opts.AllowPrivate); err != nil {
			return nil, nil, handler.BadField("", "%s", err)
		}
		return in.WebCredentials, nil, nil
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, nil, err
	}
	if err := push.Validate(kind, raw, a.opts.AllowPrivate); err != nil {
		return nil, nil, handler.BadField("", "%s", err)
	}
	return body, nil, nil
}

func showPushCredential(_ *handler.Call, name string, config json.RawMessage) map[string]any {
	return pick(config, map[string][]string{
		"webpush": {"public_key", "subject"}, "fcm": {"project_id", "client_email", "base_url"}, "apns": {"key_id", "team_id", "topic", "sandbox", "base_url"},
	}[name]...)
}

// pick takes the named fields out of a JSON object.
func pick(config json.RawMessage, names ...string) map[string]any {
	all := map[string]any{}
	_ = json.Unmarshal(config, &all) // it was checked when it came in
	out := map[string]any{}
	for _, n := range names {
		if v, ok := all[n]; ok {
			out[n] = v
		}
	}
	return out
}

// prepareMessageProvider takes a configuration of its own, or one of the presets
// with what it needs.
func prepareMessageProvider(a *API, _ *handler.Call, name string, body map[string]json.RawMessage) (any, map[string]any, error) {
	config, err := messageConfig(name, body)
	if err != nil {
		return nil, nil, err
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, nil, err
	}
	if err := messaging.CheckProvider(raw, text.Options{AllowPrivate: a.opts.AllowPrivate}); err != nil {
		return nil, nil, handler.BadField("", "%s", err)
	}
	return config, nil, nil
}

func messageConfig(name string, body map[string]json.RawMessage) (c text.Config, err error) {
	if _, ok := body["preset"]; !ok {
		err = asStruct(body, &c)
		return c, err
	}
	var in struct {
		Preset        string `json:"preset"`
		AccountSID    string `json:"account_sid"`
		AuthToken     string `json:"auth_token"`
		From          string `json:"from"`
		Version       string `json:"version"`
		PhoneNumberID string `json:"phone_number_id"`
		Token         string `json:"token"`
		BaseURL       string `json:"base_url"`
	}
	if err := asStruct(body, &in); err != nil {
		return c, err
	}
	switch in.Preset {
	case "twilio":
		c, err = text.Twilio(in.AccountSID, in.AuthToken, in.From, in.BaseURL, name == "whatsapp")
	case "whatsapp_cloud":
		c, err = text.WhatsAppCloud(in.Version, in.PhoneNumberID, in.Token, in.BaseURL)
	default:
		return c, handler.BadField("preset", "preset must be twilio or whatsapp_cloud; leave it out to describe another provider")
	}
	if err != nil {
		return c, handler.BadField("preset", "%s", err)
	}
	return c, nil
}

// showMessageProvider shows where texts go. The rest of the URL, headers and
// fields may hold keys.
func showMessageProvider(_ *handler.Call, _ string, config json.RawMessage) map[string]any {
	out := pick(config, "from", "format")
	var c text.Config
	if json.Unmarshal(config, &c) == nil {
		if u, err := url.Parse(c.URL); err == nil {
			out["host"] = u.Host
		}
	}
	return out
}
