package exchange

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// ErrPrivateAddress is in the chain when a name led to an address that is not public.
var ErrPrivateAddress = errors.New("the address is not public")

// TransportOptions choose how a client connects. The zero value suits providers
// on the Internet.
type TransportOptions struct {
	// AllowPrivate permits loopback, private and link-local addresses.
	AllowPrivate bool
	// RootCAs are trusted instead of the system's; for tests and private providers.
	RootCAs *x509.CertPool
	// MaxConns bounds the connections per host. Default 8.
	MaxConns int
}

// NewClient returns a client of its own connections that never follows
// redirects. Close it with CloseIdleConnections.
func NewClient(o TransportOptions) *http.Client {
	if o.MaxConns <= 0 {
		o.MaxConns = 8
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	if !o.AllowPrivate {
		// Judged here, after name resolution: a name cannot answer publicly
		// when checked and privately when used.
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%w: %s", ErrPrivateAddress, address)
			}
			if !Public(ap.Addr()) {
				return fmt.Errorf("%w: %s; allow private addresses in the configuration if it is meant", ErrPrivateAddress, ap.Addr())
			}
			return nil
		}
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    10 * time.Second,
			ForceAttemptHTTP2:      true,
			MaxConnsPerHost:        o.MaxConns,
			MaxIdleConns:           64,
			MaxIdleConnsPerHost:    o.MaxConns,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			// A peer that vanished is noticed before every request behind it timed out.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// notPublic are ranges that netip's own predicates do not name.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),   // shared by carriers
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"),   // IPv4 behind a translator
	netip.MustParsePrefix("64:ff9b:1::/48"), // the same, locally
	netip.MustParsePrefix("2002::/16"),      // IPv4 in 6to4
	netip.MustParsePrefix("2001::/23"),      // Teredo and other assignments
	netip.MustParsePrefix("2001:db8::/32"),  // documentation
	netip.MustParsePrefix("100::/64"),       // discard
}

// Public reports whether a is an address of the open Internet.
func Public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
