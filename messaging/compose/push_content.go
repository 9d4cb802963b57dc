package compose

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/musterhq/muster/messaging/push"
	"github.com/musterhq/muster/resolver/campaigns"
)

// PreparePush checks a push message: its title is the subject. A fault is a
// [*ContentError].
func PreparePush(c campaigns.Content) (campaigns.Content, error) {
	if strings.TrimSpace(c.Subject) == "" {
		return c, &ContentError{"title", fault("Field required")}
	}
	if err := checkText(c); err != nil {
		return c, err
	}
	if err := checkPushLink(c.Link); err != nil {
		return c, err
	}
	if o := c.Push; o != nil {
		n := &push.Notification{Title: "x", Image: o.Image, Collapse: o.Collapse, TTL: time.Duration(o.TTLSeconds) * time.Second}
		if err := push.CheckNotification(n); err != nil {
			return c, &ContentError{"", err}
		}
	}
	// Merge tags become longer or shorter; each message is checked again.
	if strings.Contains(c.Subject+c.Text+c.Link, "{{") {
		return c, nil
	}
	n := &push.Notification{Title: c.Subject, Body: c.Text, Link: c.Link, ID: strings.Repeat("x", 49), Collapse: strings.Repeat("x", 32)}
	if c.Push != nil {
		n.Image = c.Push.Image
	}
	over := []push.Kind{push.KindFCM, push.KindAPNs}
	if !IsAppLink(c.Link) {
		over = append(over, push.KindWeb)
	}
	if err := push.CheckNotification(n, over...); err != nil {
		return c, &ContentError{"", err}
	}
	return c, nil
}

// checkPushLink says what is wrong with the link of a push message. One with merge tags is
// checked again in each message.
func checkPushLink(link string) error {
	if link != "" && !IsWebLink(link) && !IsAppLink(link) {
		return &ContentError{"link", fault("Input should be an absolute http or https URL, or a link into an app, such as myapp://sale")}
	}
	if IsWebLink(link) && !strings.Contains(link, "{{") {
		if err := push.CheckNotification(&push.Notification{Title: "x", Link: link}); err != nil {
			return &ContentError{"", err}
		}
	}
	return nil
}

// checkPushImage says what is wrong with the address of a picture that the state machine,
// which has its own words for what it refuses, lets pass.
func checkPushImage(o *campaigns.PushOptions) error {
	if o == nil || o.Check() != nil {
		return nil
	}
	if err := push.CheckNotification(&push.Notification{Title: "x", Image: o.Image}); err != nil {
		return &ContentError{"", fmt.Errorf("push.%w", err)}
	}
	return nil
}

// IsWebLink reports whether a link leads to a page.
func IsWebLink(link string) bool {
	return strings.HasPrefix(link, "http://") || strings.HasPrefix(link, "https://")
}

var schemes = regexp.MustCompile(`^[a-z][a-z0-9+.-]{1,63}$`)

// IsAppLink reports whether a link opens an app: its scheme is the app's own.
func IsAppLink(link string) bool {
	scheme, _, ok := strings.Cut(link, "://")
	switch scheme {
	case "http", "https", "javascript", "data", "vbscript", "file", "blob":
		return false
	}
	return ok && schemes.MatchString(scheme)
}
