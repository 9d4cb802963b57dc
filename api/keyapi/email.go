package keyapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/view"
)

func emailOperations() keycall.Group {
	return keycall.Group{Group: operation.Group{Surface: operation.SurfaceC, Tag: "E-mail (v1)", Title: "E-mail", About: "Single e-mails from templates."}, Routes: []keycall.Route{
		{Handle: sendEmail, Operation: operation.Operation{Method: "POST", Path: "/email/send", Permission: "campaigns:write", ID: "sendEmail", Summary: "Send an e-mail",
			About: "The message is queued durably and tried for 12 hours; what becomes of it is an event of the profile. An address that is not on file becomes a profile, without a consent. " +
				"It does not go to addresses that bounced, complained or are suppressed. People who have unsubscribed get it only when its template is marked `transactional`: " +
				"a receipt, a new password, whatever they asked for or must be told. Any other template is refused for them (`conflict`, field `to`), and nothing is queued. " +
				"A merge tag that has a value neither in `data` nor in the profile, and no default, refuses the message by its name.",
			BodyRules: operation.BodyRules{NoNull: []string{"idempotency_key"}, Instead: toEmail}, Body: shape.Object(
				shape.Req("to", shape.Text("ann@example.com", "The address.").Bytes(1, 512)),
				shape.Req("template_id", shape.TemplateID("The template.")),
				shape.Opt("data", shape.FreeObject(shape.Pairs("order", "1001"), "Values of the template's merge tags. At most 128 KiB.")),
				shape.Opt("subject", shape.Text("Your order", "Instead of the template's.").Bytes(0, 998)),
				shape.Opt("sender", shape.Text("shop@muster.local", "An address of a verified domain; left out, `no-reply@` the first of them.")),
				shape.Opt("sender_name", shape.Text("Example", "Name of the sender.")),
				shape.Opt("idempotency_key", shape.Text("order-1001", "Makes a repeat harmless: it gets the first answer.").Bytes(0, 256)),
			), Data: shape.Object(
				shape.Req("message_id", shape.MessageID("The message's id, as the events of the profile about it have it.")),
				shape.Req("status", shape.Word("", "queued")),
				shape.Req("to", shape.Text("ann@example.com", "")),
				shape.Req("template_id", shape.TemplateID("")),
				shape.Req("profile_id", shape.ProfileID("The profile of the address.")),
			)}},
	}}
}

// sendEmail answers POST /email/send of Surface C: one e-mail from a template to
// one address. The message is queued; what becomes of it is an event of the
// profile.
func sendEmail(c *keycall.Call) (any, error) {
	var in struct {
		To         string          `json:"to"`
		TemplateID string          `json:"template_id"`
		Data       json.RawMessage `json:"data"`
		// The rest is our own.
		Subject        string `json:"subject"`
		Sender         string `json:"sender"`
		SenderName     string `json:"sender_name"`
		IdempotencyKey string `json:"idempotency_key"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	in.To = strings.TrimSpace(in.To)
	switch {
	case in.To == "":
		return nil, keycall.Fail("to Field required")
	case in.TemplateID == "":
		return nil, keycall.Fail("template_id Field required")
	}
	// What the message would be refused for later is refused now.
	if err := checkRecipient(in.To, c.Now); err != nil {
		return nil, keycall.Fail("to Input should be a valid e-mail address: %s", err)
	}
	var err error
	if in.Data, err = keycall.Object("data", in.Data); err != nil {
		return nil, err
	}
	if in.Sender != "" {
		if _, err := email.CheckAddress(in.Sender); err != nil {
			return nil, keycall.Fail("sender %s", err)
		}
	}
	var t campaigns.Template
	p := &view.Profile{}
	err = c.Read(func(v *resolver.View) error {
		if o, _, ok := v.Profiles().Person("", in.To); ok {
			var err error
			if p, err = v.Profiles().Get(o); err != nil {
				return err
			}
		}
		var ok bool
		var err error
		if t, ok, err = v.Campaigns().WholeTemplate(in.TemplateID); err != nil || !ok {
			return cmp.Or(err, keycall.FailWith(keycall.CodeNotFound, "template_id: there is no such template"))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var content *compose.ContentError
	err = compose.CheckMail(t, in.Subject, in.SenderName, in.Data)
	if err == nil {
		err = compose.MailHole(t, in.Subject, in.SenderName, in.Data, p)
	}
	var unfit error
	if errors.As(err, &content) {
		unfit = keycall.Fail("template_id: the template cannot be sent: %s", content)
	} else if err != nil {
		return nil, err
	}
	if unfit != nil && in.IdempotencyKey == "" {
		return nil, unfit
	}
	// A repeat gets the first answer, whatever the template or the person lacks by now.
	args := messages.EmailSend{Key: in.IdempotencyKey, Unfit: unfit != nil, Mail: messages.Mail{
		To: in.To, TemplateID: in.TemplateID, Subject: in.Subject, Sender: in.Sender, SenderName: in.SenderName, Data: in.Data,
	}}
	var out messages.EmailSendReply
	if err := c.Command(messages.CommandEmailSend, args, &out); err != nil {
		var refusal *resolver.Refusal
		if unfit != nil && errors.As(err, &refusal) && refusal.Field == "template_id" {
			return nil, unfit
		}
		return nil, err
	}
	return map[string]string{
		"message_id": out.MessageID, "status": "queued", "to": in.To, "template_id": in.TemplateID, "profile_id": out.Profile,
	}, nil
}
