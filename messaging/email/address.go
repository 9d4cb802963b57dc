package email

import (
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Address is a mailbox with an optional display name.
type Address struct {
	Name string
	Addr string
}

// IsZero reports whether there is no address.
func (a Address) IsZero() bool { return a.Addr == "" }

// CheckAddress returns an address as it is sent on the wire: an internationalised
// domain in its ASCII form. The error says what is wrong with it and follows the
// field's name: "is no e-mail address; …".
func CheckAddress(addr string) (string, error) { return checkAddr(addr) }

// checkAddr returns addr as it is sent on the wire: an internationalised domain in
// its ASCII form.
func checkAddr(addr string) (string, error) {
	if len(addr) > 320 {
		return "", fmt.Errorf("has %d bytes, at most 320 are allowed", len(addr))
	}
	if !utf8.ValidString(addr) || strings.ContainsFunc(addr, func(r rune) bool { return unicode.IsControl(r) || r == ' ' || r == '<' || r == '>' }) {
		return "", errors.New("contains spaces, brackets or control characters; write it as name@example.com")
	}
	at := strings.LastIndexByte(addr, '@')
	if at <= 0 || at == len(addr)-1 {
		return "", errors.New("is no e-mail address; write it as name@example.com")
	}
	local, domain := addr[:at], addr[at+1:]
	if len(local) > 64 {
		return "", fmt.Errorf("has %d bytes before the @, at most 64 are allowed", len(local))
	}
	if !strings.HasPrefix(domain, "[") {
		ascii, err := idna.Lookup.ToASCII(domain)
		if err != nil {
			return "", fmt.Errorf("has an invalid domain: %w", err)
		}
		domain = ascii
	}
	addr = local + "@" + domain
	parsed, err := mail.ParseAddress(addr)
	if err != nil || parsed.Name != "" {
		return "", errors.New("is no e-mail address; write it as name@example.com")
	}
	return addr, nil
}

// BounceAddress returns the envelope sender bounce+<id>@domain, to which
// bounces of the message with that send id return. The id is up to 56 letters,
// digits, ".", "_" and "-".
func BounceAddress(id, domain string) (string, error) {
	if id == "" || len(id) > 56 {
		return "", fmt.Errorf("email: the send id has %d bytes; 1 to 56 fit into a bounce address", len(id))
	}
	if strings.ContainsFunc(id, func(r rune) bool { return r >= utf8.RuneSelf || !bounceByte(byte(r)) }) ||
		strings.Contains(id, "..") || strings.HasSuffix(id, ".") {
		return "", errors.New("email: the send id may hold letters, digits, single dots, _ and - only")
	}
	addr, err := checkAddr(bouncePrefix + id + "@" + domain)
	if err != nil {
		return "", fmt.Errorf("email: bounce domain: the address %w", err)
	}
	return addr, nil
}

const bouncePrefix = "bounce+"

func bounceByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
}

// ParseBounceAddress returns the send id of an address BounceAddress made. The
// domain is the caller's to compare.
func ParseBounceAddress(addr string) (id string, ok bool) {
	local, _, found := strings.Cut(strings.Trim(addr, "<> "), "@")
	if !found || len(local) <= len(bouncePrefix) || len(local) > 64 || !strings.EqualFold(local[:len(bouncePrefix)], bouncePrefix) {
		return "", false
	}
	id = local[len(bouncePrefix):]
	for i := 0; i < len(id); i++ {
		if !bounceByte(id[i]) {
			return "", false
		}
	}
	return id, true
}
