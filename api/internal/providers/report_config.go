package providers

import (
	"encoding/json"
	"errors"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/tokens"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/inbound"
	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/resolver"
)

// minInboundSecret is the least length, in bytes, of a secret of our own.
const minInboundSecret = 16

// inboundConfig is how one provider proves itself, as it is stored.
type inboundConfig struct {
	// Secrets sign webhooks of the generic form: whsec_ and base64.
	Secrets []string `json:"secrets,omitempty"`
	// Token lets in who hands over mail.
	Token string `json:"token,omitempty"`
	// User, Password and Secret are for providers that do not sign.
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
	Secret   string `json:"secret,omitempty"`
	// SigningKey is Mailgun's, PublicKey SendGrid's, Topics are those of SES.
	SigningKey string   `json:"signing_key,omitempty"`
	PublicKey  string   `json:"public_key,omitempty"`
	Topics     []string `json:"topics,omitempty"`
	// AuthToken is Twilio's; AppSecret, VerifyToken and PhoneNumberID are WhatsApp's.
	AuthToken     string `json:"auth_token,omitempty"`
	AppSecret     string `json:"app_secret,omitempty"`
	VerifyToken   string `json:"verify_token,omitempty"`
	PhoneNumberID string `json:"phone_number_id,omitempty"`
	// What is answered to keywords in texts.
	replies
}

// prepareInboundProvider takes what a provider shows, or makes a secret of ours,
// which is then shown once.
func prepareInboundProvider(a *API, _ *handler.Call, name string, body map[string]json.RawMessage) (any, map[string]any, error) {
	var in struct {
		inboundConfig
		Generate bool `json:"generate"`
	}
	if err := asStruct(body, &in); err != nil {
		return nil, nil, err
	}
	once := map[string]any{}
	if in.Generate {
		switch name {
		case "generic":
			s, err := webhook.NewSecret(a.opts.Rand)
			if err != nil {
				return nil, nil, err
			}
			in.Secrets = []string{s.Text()}
			once["secrets"] = in.Secrets
		case "mail", "postmark", "whatsapp":
			s, err := tokens.Random(a.opts.Rand, "", tokens.SecretRandom)
			if err != nil {
				return nil, nil, err
			}
			switch name {
			case "mail":
				in.Token, once["token"] = s, s
			case "postmark":
				in.Secret, once["secret"] = s, s
			default:
				in.VerifyToken, once["verify_token"] = s, s
			}
		default:
			return nil, nil, handler.BadField("generate", "generate is for generic, mail, postmark and whatsapp; give the keys that %s shows", name)
		}
	}
	if _, err := a.inboundProvider(name, &in.inboundConfig); err != nil {
		return nil, nil, err
	}
	for _, f := range []struct{ field, text string }{{"stop_reply", in.Stop}, {"start_reply", in.Start}, {"help_reply", in.Help}} {
		if f.text == "" {
			continue
		}
		if name != "twilio" && name != "whatsapp" && name != "generic" {
			return nil, nil, handler.BadField(f.field, "%s is for twilio, whatsapp and generic; %s brings no texts", f.field, name)
		}
		if len(f.text) > maxReplyBytes {
			return nil, nil, handler.BadField(f.field, "%s must have at most %d bytes", f.field, maxReplyBytes)
		}
		if err := compose.CheckText(f.text); err != nil {
			return nil, nil, handler.BadField(f.field, "%s: %s", f.field, err)
		}
	}
	return in.inboundConfig, once, nil
}

// showInboundProvider shows where the provider is to send.
func showInboundProvider(c *handler.Call, name string, config json.RawMessage) map[string]any {
	out := pick(config, "topics", "user", "phone_number_id", "stop_reply", "start_reply", "help_reply")
	out["path"] = ReportPath + resolver.AccountID(c.Account) + "/" + name
	return out
}

// inboundProvider is the reader of a provider's webhooks, nil for mail. The error
// names the field that is missing.
func (a *API) inboundProvider(name string, c *inboundConfig) (inbound.Provider, error) {
	password := inbound.Password{User: c.User, Password: c.Password, Secret: c.Secret}
	strong := len(c.Secret) >= minInboundSecret || c.User != "" && len(c.Password) >= minInboundSecret
	switch name {
	case "generic":
		if len(c.Secrets) == 0 || len(c.Secrets) > webhook.MaxSecrets {
			return nil, handler.BadField("secrets", "secrets must have 1 to %d signing secrets (whsec_…); set generate to have one made", webhook.MaxSecrets)
		}
		var g inbound.Generic
		for _, s := range c.Secrets {
			secret, err := webhook.ParseSecret(s)
			if err != nil {
				return nil, handler.BadField("secrets", "secrets: %s", err)
			}
			g.Secrets = append(g.Secrets, secret)
		}
		return g, nil
	case "mail":
		if len(c.Token) < minInboundSecret {
			return nil, handler.BadField("token", "token must have at least %d characters; set generate to have one made", minInboundSecret)
		}
		return nil, nil
	case "mailgun":
		if c.SigningKey == "" {
			return nil, handler.BadField("signing_key", "signing_key is missing: the account's HTTP webhook signing key")
		}
		return inbound.Mailgun{SigningKey: c.SigningKey}, nil
	case "postmark":
		if !strong {
			return nil, handler.BadField("secret", "secret, or user and password, must be set, with at least %d characters; set generate to have a secret made", minInboundSecret)
		}
		return inbound.Postmark{Password: password}, nil
	case "sendgrid":
		p, err := inbound.NewSendGrid(c.PublicKey)
		if err != nil {
			return nil, handler.BadField("public_key", "public_key: %s", err)
		}
		return p, nil
	case "twilio":
		if c.AuthToken == "" {
			return nil, handler.BadField("auth_token", "auth_token is missing: the account's auth token, which signs webhooks")
		}
		return inbound.Twilio{AuthToken: c.AuthToken}, nil
	case "whatsapp":
		if c.AppSecret == "" {
			return nil, handler.BadField("app_secret", "app_secret is missing: the secret of the app at Meta, which signs webhooks")
		}
		if len(c.VerifyToken) < minInboundSecret {
			return nil, handler.BadField("verify_token", "verify_token must have at least %d characters; set generate to have one made", minInboundSecret)
		}
		return inbound.WhatsApp{AppSecret: c.AppSecret, PhoneNumberID: c.PhoneNumberID}, nil
	case "ses":
		if len(c.Topics) == 0 && !strong {
			return nil, handler.BadField("topics", "topics must list the ARNs of the account's topics; raw delivery needs secret, or user and password, of at least %d characters", minInboundSecret)
		}
		return inbound.SES{SNS: a.opts.SNS, Topics: c.Topics, Password: password}, nil
	}
	return nil, errors.New("no reader of webhooks of " + name)
}
