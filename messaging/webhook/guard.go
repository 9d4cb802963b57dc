package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
)

// MaxURLBytes bounds a target's URL.
const MaxURLBytes = 2048

// ErrRefused marks a target or request that will never be sent as it is:
// trying again is of no use.
var ErrRefused = errors.New("refused")

// Guard decides which targets are allowed. Its zero value allows public
// addresses only.
//
// Ports: 80, 443 and those from 1024 on. What else listens below 1024 (mail,
// shells, directories) is no webhook receiver, and some of those protocols act on
// lines within an HTTP request.
type Guard struct {
	// AllowPrivate permits loopback, private, carrier-grade NAT and unique local
	// addresses. Metadata services, link-local, multicast and reserved addresses stay
	// refused: none of them is a receiver someone runs.
	AllowPrivate bool
}

// CheckURL judges a target when it is registered and before every delivery. It
// resolves nothing: an allowed name may still resolve to a refused address, which
// is found at the socket. The error names the field url and the remedy and is
// ErrRefused.
func (g Guard) CheckURL(raw string) error {
	_, err := g.parse(raw)
	return err
}

func (g Guard) parse(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, refuse("url is missing; give an absolute http or https URL")
	}
	if len(raw) > MaxURLBytes {
		return nil, refuse("url has %d bytes; at most %d are allowed", len(raw), MaxURLBytes)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, refuse("url cannot be read; give an absolute http or https URL without spaces")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, refuse("url must begin with https:// or http://")
	}
	if u.User != nil {
		return nil, refuse("url must not hold a user name or password; put credentials into a header")
	}
	host := u.Hostname()
	if u.Opaque != "" || host == "" {
		return nil, refuse("url names no host; give an absolute http or https URL")
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || !allowedPort(uint16(n)) {
			return nil, refuse("url must use port 80, 443 or one from 1024 to 65535")
		}
	} else if strings.HasSuffix(u.Host, ":") {
		return nil, refuse("url names an empty port; leave the colon out")
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if err := g.CheckAddr(addr); err != nil {
			return nil, err
		}
		return u, nil
	}
	if strings.HasPrefix(u.Host, "[") {
		return nil, refuse("url holds no valid IPv6 address between [ and ]")
	}
	if err := g.checkName(host); err != nil {
		return nil, err
	}
	return u, nil
}

// checkName refuses names that cannot be public: a mistake is better told at
// registration than found in failed deliveries.
func (g Guard) checkName(host string) error {
	if len(host) > 253 {
		return refuse("url has a host name of %d characters; at most 253 are allowed", len(host))
	}
	for i := 0; i < len(host); i++ {
		c := host[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"<>\^{|}%`, c) >= 0 {
			return refuse("url has a host name with a character that is not allowed; write international names in their xn-- form")
		}
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	last := name[strings.LastIndexByte(name, '.')+1:]
	if last == "" || numeric(last) {
		// 127.1, 0x7f.0.0.1 and 2130706433 are spellings of an IPv4 address that some
		// resolvers take and others do not.
		return refuse("url must write an IPv4 address as four decimal numbers")
	}
	if g.AllowPrivate {
		return nil
	}
	if !strings.Contains(name, ".") {
		return private("the host name %q of url has no domain", name)
	}
	switch last {
	case "localhost", "local", "internal", "intranet", "lan", "home", "corp", "test", "invalid", "onion":
		return private("the host name of url ends in .%s, which is not public", last)
	}
	if strings.HasSuffix(name, ".home.arpa") {
		return private("the host name of url ends in .home.arpa, which is not public")
	}
	return nil
}

func numeric(label string) bool {
	if h, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(h, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

func allowedPort(p uint16) bool { return p == 80 || p == 443 || p >= 1024 }

// CheckAddr judges an address. The error is ErrRefused.
func (g Guard) CheckAddr(addr netip.Addr) error {
	kind, why := classify(addr, 0)
	switch {
	case kind == kindPublic, kind == kindPrivate && g.AllowPrivate:
		return nil
	case kind == kindPrivate:
		return private("url leads to %v, %s", addr, why)
	}
	return refuse("url leads to %v, %s; use a public address", addr, why)
}

// control is called by the dialer with the address that it is about to connect
// to, after all name resolution. This is the check that counts.
func (g Guard) control(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return refuse("url leads to a socket of type %s", network)
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return refuse("url leads to an address that cannot be read")
	}
	if !allowedPort(ap.Port()) {
		return refuse("url must use port 80, 443 or one from 1024 to 65535")
	}
	return g.CheckAddr(ap.Addr())
}

// refusal carries words for the user; errors.Is(err, ErrRefused) holds for it.
type refusal struct{ text string }

func (r *refusal) Error() string   { return r.text }
func (r *refusal) Is(e error) bool { return e == ErrRefused }

func refuse(format string, args ...any) error {
	return &refusal{fmt.Sprintf(format, args...)}
}

func private(format string, args ...any) error {
	return refuse(format+"; use a public address, or start the server with --allow-private-webhooks", args...)
}
