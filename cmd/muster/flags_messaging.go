package main

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/musterhq/muster/cmd/muster/internal/cli"
	"github.com/musterhq/muster/messaging/email"
)

// messagingConfig is the flags of serve about messages.
type messagingConfig struct {
	publicURL string
	smtp      email.Options // Host is empty without a relay
	// allowPrivate permits webhooks to private addresses.
	allowPrivate bool
	dns          email.Resolver // nil is the system's
}

// addMessagingFlags adds the flags; read reads them once they are parsed.
func addMessagingFlags(f *cli.Flags) (read func() (messagingConfig, error)) {
	public := f.String("public-url", "", "base `URL` of links in messages, such as https://mail.example.com (default: the --listen address); required with --smtp to another machine")
	relay := f.String("smtp", "", "`HOST:PORT` of the SMTP relay; without it e-mails are kept instead of sent (console: Unsent messages)")
	user := f.String("smtp-user", "", "user `NAME` for the relay")
	password := f.String("smtp-password", "", "`PASSWORD` for the relay; better set as MUSTER_SMTP_PASSWORD")
	mode := f.String("smtp-tls", "starttls", "TLS `MODE` of the relay: starttls, tls or none")
	connections := f.Int("smtp-connections", 4, "maximum `NUMBER` of connections to the relay")
	f.Range("smtp-connections", 1, 64)
	bounces := f.String("bounce-domain", "", "`DOMAIN` that receives bounces, as bounce+<id>@DOMAIN; without it they go to the sender")
	private := f.Bool("allow-private-webhooks", false, "allow webhooks to private and loopback addresses; anyone who may register a webhook can then reach your internal network")
	dns := f.String("dns", "", "`HOST:PORT` of the DNS server that verifies sender domains (default: the system's)")
	return func() (messagingConfig, error) {
		c := messagingConfig{publicURL: strings.TrimSuffix(*public, "/"), allowPrivate: *private}
		if *dns != "" {
			if _, _, err := checkHostPort("dns", *dns, "192.0.2.53:53"); err != nil {
				return c, err
			}
			c.dns = dnsAt(*dns)
		}
		if u, err := url.Parse(c.publicURL); c.publicURL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			return c, wrongUsage("--public-url must be an address such as https://mail.example.com, have %q", *public)
		}
		if err := oneOf("smtp-tls", *mode, string(email.StartTLS), string(email.ImplicitTLS), string(email.NoTLS)); err != nil {
			return c, err
		}
		if strings.ContainsAny(*bounces, "@ /:") {
			return c, wrongUsage("--bounce-domain is %q; use a domain, such as bounces.example.com", *bounces)
		}
		if *relay == "" {
			return c, nil
		}
		host, port, err := checkHostPort("smtp", *relay, "smtp.example.com:587")
		if err != nil {
			return c, err
		}
		if c.publicURL == "" && !email.IsLoopback(host) {
			return c, wrongUsage("--smtp %s sends to people on other machines, and --public-url is missing: the links of their messages would lead to the address listened on. Set it to the URL under which they reach this service, such as https://mail.example.com", *relay)
		}
		if u, err := url.Parse(c.publicURL); err == nil && u.Host != "" && email.IsLoopback(u.Hostname()) && !email.IsLoopback(host) {
			return c, wrongUsage("--smtp %s sends to people on other machines, and --public-url %s is on this one: the links of their messages would lead nowhere. Set it to the URL under which they reach this service, such as https://mail.example.com", *relay, *public)
		}
		c.smtp = email.Options{Host: host, Username: *user, Password: *password, TLS: email.TLSMode(*mode), Connections: *connections, BounceDomain: *bounces}
		if c.smtp.Port, err = strconv.Atoi(port); err != nil {
			return c, wrongUsage("--smtp must be HOST:PORT, have the port %q", port)
		}
		// Now, not when everything is open.
		sender, err := email.NewSender(c.smtp)
		if err != nil {
			return c, usageError{err}
		}
		sender.Close()
		return c, nil
	}
}

// dnsAt asks one DNS server.
func dnsAt(address string) email.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
}
