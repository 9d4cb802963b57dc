package compose

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver/campaigns"
)

// The merge tags that stand for a recipient's own links.
const (
	TagOpen  = "muster_open"
	TagClick = "muster_click"
	// TagUnsubscribe is for authors: the recipient's link to unsubscribe.
	TagUnsubscribe = "unsubscribe_url"
	// TagPreferences is for authors: the recipient's link to the preference page.
	TagPreferences = "preferences_url"
	// TagCompany is the company's name, in messages that ask for a confirmation.
	TagCompany = "company_name"
)

// ContentError says what is wrong with a text, by the field it stands in; without
// one the fault's own words name it.
type ContentError struct {
	Field string
	Err   error
}

// Error names the field and the fault.
func (e *ContentError) Error() string {
	if e.Field == "" {
		return e.Err.Error()
	}
	return e.Field + ": " + e.Err.Error()
}

// Unwrap is the fault.
func (e *ContentError) Unwrap() error { return e.Err }

// fault is a fault in the words of the API, which follow the field's name.
type fault string

func (f fault) Error() string { return string(f) }

// PrepareEmail checks the texts and addresses of an e-mail and takes its links
// out, so that opens and clicks can be recorded. A fault is a [*ContentError].
func PrepareEmail(c campaigns.Content) (campaigns.Content, error) {
	for _, f := range [...]struct{ field, address string }{{"sender", c.Sender}, {"reply_to", c.ReplyTo}} {
		if f.address == "" {
			continue
		}
		if _, err := email.CheckAddress(f.address); err != nil {
			return c, &ContentError{"", fmt.Errorf("%s %w", f.field, err)}
		}
	}
	c, err := TakeLinks(c)
	if err == nil {
		err = checkText(c)
	}
	return c, err
}

// CheckCampaign says what keeps a campaign's own texts and addresses from being
// sent to anybody, as far as it has them yet. A fault is a [*ContentError].
func CheckCampaign(x *campaigns.Campaign) error {
	parts := x.Parts()
	for i := range parts {
		if err := checkPart(&parts[i]); err != nil {
			return ofChannel(x, i, err)
		}
	}
	return nil
}

func checkPart(x *campaigns.Campaign) error {
	c := ownTexts(x)
	if x.Medium() != MediumEmail {
		c.HTML, c.Text = "", x.Body // as it is
		_, err := PrepareText(c)
		if strings.TrimSpace(c.Subject) == "" { // not written yet, or a template's
			c.Subject = "x"
		}
		switch {
		case err != nil:
		case x.WhatsApp != nil:
			if f := x.WhatsApp.CheckHost(); f != nil {
				err = &ContentError{"", fault("whatsapp." + f.Field + " Input " + f.Text)}
			}
		case x.Medium() == MediumPush:
			if err = cmp.Or(checkPushLink(c.Link), checkPushImage(c.Push)); err == nil {
				c.Push = nil // the state machine has its own words for options
				_, err = PreparePush(c)
			}
		case x.Medium() == MediumInApp:
			err = checkInApp(&card.Card{Title: c.Subject, Body: c.Text, Link: c.Link}, nil) // likewise
		}
		var f *ContentError
		if errors.As(err, &f) && f.Field == "text" {
			f.Field = "body"
		}
		return err
	}
	_, err := PrepareEmail(c)
	return err
}

// CheckTemplate says what is wrong with the texts of a template: a
// [*ContentError] by the template's own fields.
func CheckTemplate(t *campaigns.Template) error {
	x, err := Compile(campaigns.Content{Subject: t.Subject, HTML: t.HTML, Text: t.Text})
	if err == nil {
		err = x.check(templateTags())
	}
	var fault *ContentError
	if errors.As(err, &fault) && fault.Field == "body" {
		fault.Field = "html"
	}
	return err
}

// TakeLinks puts merge tags in place of the links of an HTML body, and adds the
// one of the picture that records opens.
func TakeLinks(c campaigns.Content) (campaigns.Content, error) {
	if c.HTML == "" {
		return c, nil
	}
	body, links, err := tracking.Rewrite(c.HTML)
	if err != nil {
		return c, &ContentError{"body", err}
	}
	c.Links = links
	c.HTML = body.Template(func(s tracking.Slot) string {
		if s.Kind == tracking.Open {
			return "{{" + TagOpen + "}}"
		}
		return "{{" + TagClick + "." + strconv.Itoa(int(s.Link)) + "}}"
	})
	return c, nil
}

// PrepareText checks the text of a message without markup.
func PrepareText(c campaigns.Content) (campaigns.Content, error) {
	return c, checkText(c)
}

// Compiled is a content whose texts are parsed.
type Compiled struct {
	campaigns.Content
	SubjectTemplate, name, html, TextTemplate, LinkTemplate *merge.Template
	links                                                   []*merge.Template
	// whatsApp are the values of the template that is sent by WhatsApp.
	whatsApp []templateValue
}

// templateValue is a value of a WhatsApp template by its field.
type templateValue struct {
	field string
	t     *merge.Template
}

func Compile(c campaigns.Content) (*Compiled, error) {
	out := &Compiled{Content: c}
	for _, f := range []struct {
		field string
		text  string
		mode  merge.Mode
		dst   **merge.Template
	}{
		{"subject", c.Subject, merge.Header, &out.SubjectTemplate}, {"sender_name", c.SenderName, merge.Header, &out.name},
		{"body", c.HTML, merge.HTML, &out.html}, {"text", c.Text, merge.Text, &out.TextTemplate}, {"link", c.Link, merge.URL, &out.LinkTemplate},
	} {
		t, err := merge.Parse(f.text, f.mode)
		if err != nil {
			return nil, &ContentError{f.field, err}
		}
		*f.dst = t
	}
	for _, link := range c.Links {
		t, err := merge.Parse(link, merge.URL)
		if err != nil {
			return nil, &ContentError{"body", fmt.Errorf("link %q: %w", link, err)}
		}
		out.links = append(out.links, t)
	}
	if c.WhatsApp == nil {
		return out, nil
	}
	_, err := c.WhatsApp.Map(func(field, value string, mode merge.Mode) (string, error) {
		t, err := merge.Parse(value, mode)
		if err != nil {
			return "", &ContentError{"whatsapp." + field, err}
		}
		out.whatsApp = append(out.whatsApp, templateValue{"whatsapp." + field, t})
		return value, nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
