package keyapi

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/api/keyapi/internal/analytics"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
)

// variantFields are what a variant of an A/B test has in place of the campaign's own.
type variantFields struct {
	Subject    *string `json:"subject"`
	Body       *string `json:"body"`
	SenderName *string `json:"sender_name"`
}

// titled are the channels whose messages have a subject or a title.
var titled = []string{analytics.MediumEmail, "push", "in_app"}

// check says what of a variant its channel does not have; field is the variant's own.
func (f *variantFields) check(x *campaigns.Campaign, field string) error {
	given := func(s *string) bool { return s != nil && *s != "" }
	switch medium := x.Medium(); {
	case given(f.Body) && x.WhatsApp != nil:
		return keycall.Fail("%s.body Input should be left out: the campaign sends a template of WhatsApp, whose text is fixed; to compare texts, empty whatsapp", field)
	case given(f.Subject) && !slices.Contains(titled, medium):
		return keycall.Fail("%s.subject Input should be left out: messages by %s have no subject; give each variant a body", field, medium)
	case given(f.SenderName) && medium != analytics.MediumEmail:
		return keycall.Fail("%s.sender_name Input should be left out: it is of e-mails alone; give each variant a body", field)
	}
	return nil
}

// apply is a content with what the variant has in its place. The text that a template has beside
// its markup does not go with another body.
func (f *variantFields) apply(c campaigns.Content) campaigns.Content {
	set(&c.Subject, f.Subject)
	set(&c.SenderName, f.SenderName)
	if f.Body != nil {
		c.HTML, c.Text = *f.Body, ""
	}
	return c
}

// fault names the variant where a fault of a content is of a field that it has.
func (f *variantFields) fault(err error, field string) error {
	var fault *compose.ContentError
	if !errors.As(err, &fault) {
		return err
	}
	for name, own := range map[string]bool{"subject": f.Subject != nil, "title": f.Subject != nil, "body": f.Body != nil, "sender_name": f.SenderName != nil} {
		at := field + "." + strings.Replace(name, "title", "subject", 1)
		rest, begins := strings.CutPrefix(fault.Err.Error(), name+" ")
		switch {
		case !own:
		case fault.Field == name:
			return contentFault(&compose.ContentError{Field: at, Err: fault.Err})
		case fault.Field == "" && begins: // its own words begin with the field
			return contentFault(&compose.ContentError{Err: fmt.Errorf("%s %s", at, rest)})
		}
	}
	return contentFault(err)
}

// prepareVariants makes the contents of an A/B test of a campaign from what it sends by itself.
func (k campaignCalls) prepareVariants(c *keycall.Call, x *campaigns.Campaign, base campaigns.Content, variants []variantFields) (out []campaigns.Content, err error) {
	for i := range variants {
		f, field := &variants[i], fmt.Sprintf("variants[%d]", i)
		if err := f.check(x, field); err != nil {
			return nil, err
		}
		with := *x
		set(&with.Body, f.Body) // where its text stands, in the words of a fault
		content, err := compose.PrepareCampaign(&with, f.apply(base))
		if err == nil {
			err = c.Read(func(v *resolver.View) error {
				return k.sender.CheckProviders(v, &with, []campaigns.Content{content})
			})
		}
		if err != nil {
			return nil, f.fault(err, field)
		}
		out = append(out, content)
	}
	return out, nil
}

// testMetric is by what the winner of an A/B test is chosen. No opens of an SMS are known.
func testMetric(x *campaigns.Campaign, metric string, given bool) (string, error) {
	switch {
	case x.Medium() != "sms":
		if !given {
			metric = "opens"
		}
	case metric == "opens":
		return "", keycall.Fail("metric Input should be clicks: no opens of an SMS are known; its clicks are counted with track_links")
	default:
		metric = "clicks"
	}
	return metric, nil
}
