package email

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// TLSMode is how the connection to the relay is protected.
type TLSMode string

const (
	// StartTLS connects in the clear and upgrades before anything of value is
	// said; a relay that does not offer it is refused. The default, port 587.
	StartTLS TLSMode = "starttls"
	// ImplicitTLS starts with TLS, port 465.
	ImplicitTLS TLSMode = "tls"
	// NoTLS never encrypts, port 25. For a relay on the same machine.
	NoTLS TLSMode = "none"
)

// Options configure a Sender. The zero value of each field but Host is usable.
type Options struct {
	// Host is the relay's name or address; certificates are checked against it.
	Host string
	// Port defaults by TLS: 587, 465 or 25.
	Port int
	// Username and Password log in with PLAIN or LOGIN, whichever the relay
	// offers. Without a username nothing is asked.
	Username, Password string
	TLS                TLSMode
	// RootCAs are trusted instead of the system's.
	RootCAs *x509.CertPool
	// SkipVerify takes any certificate. For tests only: anyone on the path can
	// read passwords and mails.
	SkipVerify bool
	// PlaintextAuth permits a login without TLS.
	PlaintextAuth bool

	// LocalName is what we call ourselves in EHLO. Default "localhost"; relays
	// on the Internet want a name that resolves.
	LocalName string
	// BounceDomain makes the envelope sender bounce+<SendID>@BounceDomain;
	// without it, it is the From address.
	BounceDomain string

	// Connections bounds the connections open at once. Default 4, at most 64.
	Connections int
	// MessagesPerConnection closes a connection after so many messages, as
	// relays limit them. Default 1000.
	MessagesPerConnection int
	// IdleTimeout closes a connection unused for that long. Default 30 s.
	IdleTimeout time.Duration
	// DialTimeout bounds connecting, TLS and login together; CommandTimeout each
	// command and each write; DataTimeout the wait for the answer to a whole
	// message; SendTimeout all of one Send after it got its connection.
	// Defaults 30 s, 30 s, 2 min and 5 min.
	DialTimeout, CommandTimeout, DataTimeout, SendTimeout time.Duration

	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Dial opens connections. Default a net.Dialer's DialContext.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// withDefaults returns a complete copy or says what is wrong.
func (o Options) withDefaults() (Options, error) {
	o.Host = strings.TrimSpace(o.Host)
	if o.Host == "" || strings.ContainsAny(o.Host, " /\r\n") {
		return o, errors.New("email: smtp host is missing or malformed; give the relay's name, for example smtp.example.com")
	}
	if o.TLS == "" {
		o.TLS = StartTLS
	}
	ports := map[TLSMode]int{StartTLS: 587, ImplicitTLS: 465, NoTLS: 25}
	port, ok := ports[o.TLS]
	if !ok {
		return o, fmt.Errorf("email: smtp tls %q is unknown; use starttls, tls or none", o.TLS)
	}
	if o.Port == 0 {
		o.Port = port
	}
	if o.Port < 1 || o.Port > 65535 {
		return o, fmt.Errorf("email: smtp port %d is out of range 1 to 65535", o.Port)
	}
	if o.Username == "" && o.Password != "" {
		return o, errors.New("email: smtp password is given without a username; give both or none")
	}
	if o.Username != "" && o.TLS == NoTLS && !o.PlaintextAuth {
		return o, errors.New("email: smtp login without TLS would send the password in the clear; use tls starttls, or allow it for a relay on the same machine")
	}
	if o.LocalName == "" {
		o.LocalName = "localhost"
	}
	if strings.ContainsAny(o.LocalName, " \r\n") {
		return o, errors.New("email: smtp local name must be one host name")
	}
	if o.BounceDomain != "" {
		if _, err := BounceAddress("x", o.BounceDomain); err != nil {
			return o, err
		}
	}
	for _, n := range []struct {
		name      string
		value     *int
		def, most int
	}{
		{"connections", &o.Connections, 4, 64},
		{"messages per connection", &o.MessagesPerConnection, 1000, 1 << 20},
	} {
		if *n.value == 0 {
			*n.value = n.def
		}
		if *n.value < 1 || *n.value > n.most {
			return o, fmt.Errorf("email: smtp %s %d is out of range 1 to %d", n.name, *n.value, n.most)
		}
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"idle timeout", &o.IdleTimeout, 30 * time.Second},
		{"dial timeout", &o.DialTimeout, 30 * time.Second},
		{"command timeout", &o.CommandTimeout, 30 * time.Second},
		{"data timeout", &o.DataTimeout, 2 * time.Minute},
		{"send timeout", &o.SendTimeout, 5 * time.Minute},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
		if *d.value < 0 {
			return o, fmt.Errorf("email: smtp %s %v is negative", d.name, *d.value)
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	return o, nil
}
