package tracking

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// ErrLink reports that a click leads nowhere.
var ErrLink = errors.New("the link leads nowhere")

// origin splits an absolute http or https URL after its host.
func origin(link string) (scheme, host string, ok bool) {
	for _, s := range []string{"http", "https"} {
		if len(link) < len(s)+3 || !strings.EqualFold(link[:len(s)], s) || link[len(s):len(s)+3] != "://" {
			continue
		}
		rest := link[len(s)+3:]
		// A browser takes a backslash for a slash.
		if i := strings.IndexAny(rest, `/?#\`); i >= 0 {
			rest = rest[:i]
		}
		return s, rest, true
	}
	return "", "", false
}

// fixedHost reports whether a link has its scheme and host written out.
func fixedHost(link string) bool {
	_, host, ok := origin(link)
	if !ok || host == "" || strings.ContainsAny(host, "{}@") {
		return false
	}
	_, err := url.Parse("https://" + host)
	return err == nil
}

// Location gives the value of a redirect's Location header for a link of the table.
// rendered is the link with its merge tags filled in, or the link itself when it
// has none. Values must not have been escaped for HTML. What a value brought along is
// percent-encoded where a URL needs it; scheme and host are those that the author
// wrote, or the error is ErrLink.
func Location(link, rendered string) (string, error) {
	scheme, host, ok := origin(link)
	gotScheme, gotHost, gotOK := origin(rendered)
	if !ok || !gotOK || !fixedHost(link) || gotScheme != scheme || gotHost != host || len(rendered) > 2*MaxLinkBytes {
		return "", fmt.Errorf("tracking: %w", ErrLink)
	}
	ascii, err := asciiHost(host)
	if err != nil {
		return "", fmt.Errorf("tracking: %w: %w", ErrLink, err)
	}
	// url.Parse would refuse a stray % or a space in the query; browsers do not, and
	// the author tried the link in one.
	rest := rendered[len(scheme)+3+len(host):]
	var b strings.Builder
	b.Grow(len(rendered) + 16)
	b.WriteString(scheme)
	b.WriteString("://")
	b.WriteString(ascii)
	if rest == "" || rest[0] != '/' {
		b.WriteByte('/')
	}
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\\' && i == 0:
			// Already written as a slash.
		case c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0:
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// asciiHost writes an international name in its xn-- form.
func asciiHost(host string) (string, error) {
	if strings.IndexFunc(host, func(r rune) bool { return r >= 0x80 }) < 0 {
		return host, nil
	}
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		name, port = host[:i], host[i:]
	}
	name, err := idna.Lookup.ToASCII(name)
	return name + port, err
}
