package compose

import (
	"cmp"
	"strings"

	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/resolver/campaigns"
)

// PrepareInApp checks an in-app message: its title is the subject. A fault is a
// [*ContentError].
func PrepareInApp(c campaigns.Content) (campaigns.Content, error) {
	c.Sender, c.SenderName, c.ReplyTo = "", "", "" // of e-mails and texts
	if strings.TrimSpace(c.Subject) == "" {
		return c, &ContentError{"subject", fault("Field required")}
	}
	if err := checkText(c); err != nil {
		return c, err
	}
	return c, checkInApp(&card.Card{Title: c.Subject, Body: c.Text, Link: c.Link}, c.InApp)
}

// checkInApp says what is wrong with an in-app message. Merge tags become longer or
// shorter; each message is checked again.
func checkInApp(x *card.Card, o *card.Options) error {
	if o != nil {
		x.Options = *o
	}
	for _, text := range []*string{&x.Title, &x.Body, &x.Link} {
		if strings.Contains(*text, "{{") {
			*text = map[bool]string{true: "x"}[text == &x.Title]
		}
	}
	if f := x.Check(); f != nil {
		field := map[string]string{"title": "subject", "body": "text", "link": "link"}[f.Field]
		return &ContentError{cmp.Or(field, "in_app."+f.Field), fault("Input " + f.Text)}
	}
	return nil
}
