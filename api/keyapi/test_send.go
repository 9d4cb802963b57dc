package keyapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/musterhq/muster/api/keyapi/internal/analytics"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/view"
)

// The bounds of tests of campaigns.
const (
	maxTestAddresses = 5
	// testsPerMinute is how many tests an account may send in any 60 seconds.
	testsPerMinute  = 6
	testSendTimeout = time.Minute
)

// testCalls are the calls that send tests of campaigns.
type testCalls struct {
	sender  Campaigns
	rand    io.Reader
	limiter *limiter // of accounts
}

// operation is the call that sends a test of a campaign.
func (t testCalls) operation() keycall.Route {
	return keycall.Route{Handle: t.run, Operation: operation.Operation{Method: "POST", Path: "/campaign/{id}/test-send", Permission: "campaigns:write", Timeout: testSendTimeout, ID: "testSendCampaign", Summary: "Send a test of a campaign",
		About: "The message goes to the addresses alone, at once and once: with `[Test]` before its subject (a text message: before its text; a template of WhatsApp: nowhere) and the header `X-Muster-Test`. Fields of the campaign that are given here take the place of those that are saved, and are not saved. " +
			"Nothing is counted: no statistics, no credit, no event. Links are as they were written, and `{{unsubscribe_url}}` is `#unsubscribe`, `{{preferences_url}}` `#preferences`. People who unsubscribed, are suppressed or were erased get no test, either, and by WhatsApp a text goes only to numbers that wrote in the last 24 hours. Push campaigns go to devices and have no test. At most 6 tests a minute.",
		Body: shape.Object(append([]shape.Field{
			shape.Opt("to", shape.List(shape.Text("ann@example.com", "").Bytes(1, 512), "The addresses: e-mails, or phones for a campaign of texts. Left out by a person who is signed in, their own e-mail; API keys must name them.").Entries(1, maxTestAddresses)),
			viaShape("its first"),
			shape.Opt("profile_id", shape.ProfileID("The person for whom the message is rendered. Without this and `email` it is rendered without a person: merge tags have their defaults.")),
			shape.Opt("email", shape.Text("ann@example.com", "An e-mail of that person.").Bytes(1, 512)),
		}, testContentShape()...)...), BodyRules: operation.BodyRules{Optional: true}, Data: testSendShape, Fails: []string{"to Field required", "There is no campaign with this id"}}}
}

// testContentShape are the fields of a campaign that a test can change.
func testContentShape() (out []shape.Field) {
	for _, f := range campaignFieldsShape(false) {
		switch f.Name() {
		case "subject", "body", "sender", "sender_name", "reply_to", "link", "template_id", "whatsapp", "channels":
			out = append(out, f)
		}
	}
	return out
}

var testSendShape = shape.Named("TestSend", shape.Object(
	shape.Req("channel", analytics.ChannelShape("On which the campaign is sent.")),
	shape.Req("subject", shape.Text("[Test] Our January sale", "As it was sent; of a text message empty.")),
	shape.Req("results", shape.List(shape.Object(
		shape.Req("to", shape.Text("ann@example.com", "")),
		shape.Req("status", shape.Word("`sent` when the provider took it, `skipped` when it may not be sent there.", "sent", "failed", "skipped")),
		shape.Req("reason", shape.Text("unsubscribed", "Why it was not sent.").OrNull()),
	), "One entry for each address, in their order.")),
))

type testResult struct {
	To     string  `json:"to"`
	Status string  `json:"status"`
	Reason *string `json:"reason"`
}

// run answers POST /campaign/{id}/test-send.
func (t testCalls) run(c *keycall.Call) (any, error) {
	var in struct {
		campaignFields
		To        []string `json:"to"`
		ProfileID string   `json:"profile_id"`
		Email     string   `json:"email"`
		Via       string   `json:"via"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	x, _, err := campaignOf(c, c.Param("id"))
	if err != nil {
		return nil, err
	}
	if err := in.apply(&x); err != nil {
		return nil, err
	}
	if err := contentFault(compose.CheckCampaign(&x)); err != nil {
		return nil, err
	}
	one, err := part(&x, in.Via)
	if err != nil {
		return nil, err
	}
	x = *one
	to, err := testAddresses(c, x.Medium(), in.To)
	if err != nil {
		return nil, err
	}
	if in.ProfileID != "" && in.Email != "" {
		return nil, keycall.Fail("profile_id Input should be left out where email names the person")
	}
	template := ""
	if x.Body == "" {
		template = x.TemplateID
	}
	var content campaigns.Content
	err = c.Read(func(v *resolver.View) (err error) { content, err = contentOf(v, &x, "", template); return err })
	if err != nil {
		return nil, err
	}
	var test *messaging.Tester
	results := make([]testResult, len(to))
	err = c.Read(func(v *resolver.View) (err error) {
		p := new(view.Profile)
		if in.ProfileID != "" || in.Email != "" {
			o, field, ok := v.Profiles().Person(in.ProfileID, in.Email)
			if !ok {
				return keycall.FailWith(keycall.CodeNotFound, "%s: there is no such person", field)
			}
			if p, err = v.Profiles().Get(o); err != nil {
				return err
			}
		}
		for i := range to {
			results[i].To = to[i]
			reason, err := v.Reach().KeptFrom(x.Medium(), to[i])
			if err != nil {
				return err
			}
			if reason == "" && x.TextOnly() && !v.Reach().MayWriteFreelyTo(to[i], c.Now.UnixMilli()) {
				reason = view.NotInConversation
			}
			if reason != "" {
				results[i].Status, results[i].Reason = "skipped", &reason
			}
		}
		test, err = t.sender.NewTest(v, c.Key.Account, &x, content, p)
		return contentFault(err)
	})
	if err != nil {
		return nil, err
	}
	defer test.Close()
	if wait := t.limiter.take(keyRef{account: c.Key.Account}, testsPerMinute); wait > 0 {
		return nil, keycall.TooMany(wait)
	}
	for i := range results {
		if results[i].Status == "" {
			if err := t.send(c.Ctx, test, &results[i], c.Now); err != nil {
				return nil, err
			}
		}
	}
	return map[string]any{"channel": x.Medium(), "subject": test.Rendered().Subject, "results": results}, nil
}

// testAddresses are those that a test goes to, each once.
func testAddresses(c *keycall.Call, medium string, given []string) (out []string, err error) {
	if given == nil && c.Self != "" && medium == analytics.MediumEmail {
		given = []string{c.Self}
	}
	switch {
	case len(given) == 0:
		return nil, keycall.Fail("to Field required: name the addresses that the test goes to")
	case len(given) > maxTestAddresses:
		return nil, keycall.Fail("to Input should have at most %d addresses", maxTestAddresses)
	}
	seen := map[string]bool{}
	for i, to := range given {
		to = strings.TrimSpace(to)
		if medium == analytics.MediumEmail {
			err = checkRecipient(to, c.Now)
		} else if !strings.ContainsAny(to, "0123456789") {
			err = errors.New("it has no digits")
		}
		if err != nil {
			return nil, keycall.Fail("to[%d] Input should be a valid %s: %s", i, map[bool]string{true: "e-mail address", false: "phone number"}[medium == analytics.MediumEmail], err)
		}
		if key := strings.ToLower(to); !seen[key] {
			seen[key] = true
			out = append(out, to)
		}
	}
	return out, nil
}

// checkRecipient says what keeps an address from being sent an e-mail.
func checkRecipient(to string, at time.Time) error {
	probe := email.Message{
		ID: "x@muster.local", Date: at, From: email.Address{Addr: "x@muster.local"}, To: email.Address{Addr: to}, Subject: "x", Text: "x",
	}
	var recipient *email.RecipientError
	if err := probe.Validate(); errors.As(err, &recipient) {
		return recipient.Err
	} else if err != nil {
		return err
	}
	return nil
}

// send sends a test to one address.
func (t testCalls) send(ctx context.Context, test *messaging.Tester, r *testResult, at time.Time) error {
	var random [15]byte
	if _, err := io.ReadFull(t.rand, random[:]); err != nil {
		return fmt.Errorf("name a test message: %w", err)
	}
	o, err := test.Send(ctx, messages.TestSend(random), r.To, at)
	if err != nil {
		return err
	}
	if o.Class == outcome.Accepted {
		r.Status = "sent"
		return nil
	}
	reason := o.Err().Error()
	r.Status, r.Reason = "failed", &reason
	return nil
}
