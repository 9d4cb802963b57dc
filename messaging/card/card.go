// Package card is what an in-app message shows: its texts, its picture, what it opens, and how
// it is shown. It knows neither campaigns nor the state.
package card

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How a message is shown. All of them are in the inbox as well.
const (
	Inbox  = "inbox"  // in the inbox alone
	Banner = "banner" // on the page, beside what the person does
	Modal  = "modal"  // on top of the page, until the person closes it
)

// Displays are all of them.
var Displays = []string{Inbox, Banner, Modal}

// The bounds of a message.
const (
	MaxTitleBytes = 200
	MaxBodyBytes  = 2000
	MaxURLBytes   = 2048
	MaxPriority   = 10
	// MaxTTLHours is 90 days, DefaultTTLHours 30.
	MaxTTLHours     = 90 * 24
	DefaultTTLHours = 30 * 24
)

// Options are what a message has beside its texts and its link.
type Options struct {
	// Display is one of [Displays]; "" is [Inbox].
	Display string `json:"display,omitempty"`
	Image   string `json:"image,omitempty"` // https URL of a picture; "" for none
	// Priority is from 0 to [MaxPriority]; messages of a higher one come first.
	Priority int `json:"priority,omitempty"`
	// TTLHours is how long the message stays in the inbox; 0 is [DefaultTTLHours].
	TTLHours int `json:"ttl_hours,omitempty"`
}

// Card is a message as one person sees it.
type Card struct {
	Title string `json:"title"`
	Body  string `json:"body,omitempty"` // plain text; a line break begins another line
	Link  string `json:"link,omitempty"` // that a click opens: a page, or a place in an app
	Options
}

// Fault is what is wrong with a message, by the name of its field.
type Fault struct{ Field, Text string }

func (f *Fault) Error() string { return f.Field + " " + f.Text }

func fault(field, format string, args ...any) *Fault {
	return &Fault{field, fmt.Sprintf(format, args...)}
}

// Check says what is wrong with the options; nil for nothing.
func (o *Options) Check() *Fault {
	switch {
	case o.Display != "" && !slices.Contains(Displays, o.Display):
		return fault("display", "should be inbox, banner or modal")
	case o.Image != "" && (len(o.Image) > MaxURLBytes || !isWeb(o.Image, false)):
		return fault("image", "should be an https URL of at most %d bytes", MaxURLBytes)
	case o.Priority < 0 || o.Priority > MaxPriority:
		return fault("priority", "should be from 0 to %d", MaxPriority)
	case o.TTLHours < 0 || o.TTLHours > MaxTTLHours:
		return fault("ttl_hours", "should be from 1 to %d, which is 90 days; left out it is %d", MaxTTLHours, DefaultTTLHours)
	}
	return nil
}

// Check says what is wrong with a message that is to be shown; nil for nothing. Merge tags
// are filled in.
func (c *Card) Check() *Fault {
	switch {
	case strings.TrimSpace(c.Title) == "" || len(c.Title) > MaxTitleBytes || !isText(c.Title, false):
		return fault("title", "should have 1 to %d bytes of UTF-8 text, in one line", MaxTitleBytes)
	case len(c.Body) > MaxBodyBytes || !isText(c.Body, true):
		return fault("body", "should have at most %d bytes of UTF-8 text", MaxBodyBytes)
	case c.Link != "" && (len(c.Link) > MaxURLBytes || !isWeb(c.Link, true) && !isApp(c.Link)):
		return fault("link", "should be an https URL (http for localhost only), or a link into an app, such as myapp://sale, of at most %d bytes", MaxURLBytes)
	}
	return c.Options.Check()
}

// ExpiresMs is when a message ends that was made at an instant; both are Unix ms.
func (o *Options) ExpiresMs(madeMs int64) int64 {
	return madeMs + int64(cmp.Or(o.TTLHours, DefaultTTLHours))*60*60*1000
}

func isText(text string, lines bool) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && (!lines || r != '\n' && r != '\r' && r != '\t')
	}) < 0
}

func clean(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) || r == '\\' })
}

// isWeb reports whether a link leads to a page by https, or where that is allowed by http to
// the same machine.
func isWeb(link string, local bool) bool {
	u, err := url.Parse(link)
	if err != nil || !clean(link) || u.Hostname() == "" || u.User != nil {
		return false
	}
	if u.Scheme == "http" && local {
		ip := net.ParseIP(u.Hostname())
		return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	}
	return u.Scheme == "https"
}

var schemes = regexp.MustCompile(`^[a-z][a-z0-9+.-]{1,63}$`)

// notApps are schemes that no app has, and that a page must not open.
var notApps = []string{"http", "https", "javascript", "data", "vbscript", "file", "blob", "about", "view-source"}

// isApp reports whether a link opens an app: its scheme is the app's own.
func isApp(link string) bool {
	scheme, _, ok := strings.Cut(link, "://")
	return ok && clean(link) && schemes.MatchString(scheme) && !slices.Contains(notApps, scheme)
}
