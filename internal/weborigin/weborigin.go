// Package weborigin reads lists of the origins whose pages may use something, such as
// https://shop.example or https://*.shop.example.
package weborigin

import (
	"net/url"
	"strings"
)

// Any among allowed origins allows them all.
const Any = "*"

// MaxBytes is how long an origin can be.
const MaxBytes = 300

// Parse reads an entry of allowed origins: [Any], or a scheme and a host in lower case whose
// first label may be *.
func Parse(text string) (origin string, ok bool) {
	if text == Any {
		return text, true
	}
	if len(text) > MaxBytes {
		return "", false
	}
	text = strings.ToLower(text)
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Scheme+"://"+u.Host != text {
		return "", false
	}
	host := strings.TrimPrefix(u.Host, "*.")
	return text, host != "" && !strings.ContainsAny(host, "*\"<>\\ ,;'")
}

// Allowed reports whether a list of origins, as [Parse] returned them, allows an origin.
func Allowed(list []string, origin string) bool {
	origin = strings.ToLower(origin)
	for _, allowed := range list {
		if allowed == Any || allowed == origin {
			return true
		}
		scheme, domain, wild := strings.Cut(allowed, "://*.")
		if rest, same := strings.CutPrefix(origin, scheme+"://"); wild && same && strings.HasSuffix(rest, "."+domain) {
			return true
		}
	}
	return false
}
