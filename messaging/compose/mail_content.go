package compose

import (
	"errors"
	"strings"

	"github.com/musterhq/muster/resolver/campaigns"
)

func compileMail(t campaigns.Template, subject, senderName string) (*Compiled, error) {
	if subject == "" {
		subject = t.Subject
	}
	return Compile(campaigns.Content{Subject: subject, HTML: WithPixel(t.HTML), Text: t.Text, SenderName: senderName})
}

// CheckMail says what is wrong with the texts of a template for a single e-mail with the
// data, an object or nothing: a [*ContentError].
func CheckMail(t campaigns.Template, subject, senderName string, data []byte) error {
	x, err := compileMail(t, subject, senderName)
	if err == nil {
		err = x.check(mailTags(data))
	}
	var fault *ContentError
	if errors.As(err, &fault) {
		fault.Err = missingData(fault.Err)
	}
	return err
}

// WithPixel adds the picture that records opens to a body.
func WithPixel(html string) string {
	if html == "" {
		return ""
	}
	pixel := `<img src="{{` + TagOpen + `}}" width="1" height="1" alt="" style="display:block">`
	const end = "</body>"
	for i := len(html) - len(end); i >= 0; i-- {
		if strings.EqualFold(html[i:i+len(end)], end) {
			return html[:i] + pixel + html[i:]
		}
	}
	return html + pixel
}
