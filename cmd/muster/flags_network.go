package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/cmd/muster/internal/cli"
	"github.com/musterhq/muster/internal/clientaddr"
	"github.com/musterhq/muster/internal/tlspair"
)

// networkFlags are the trusted proxies and the TLS certificate.
type networkFlags struct{ proxies, cert, key *string }

func (n *networkFlags) add(f *cli.Flags) {
	n.proxies = f.String("trusted-proxies", "", "`NETWORKS` of your load balancers, such as 10.0.0.0/8,192.0.2.7; only their X-Forwarded-For headers are believed")
	n.cert = f.String("tls-cert", "", "certificate chain `FILE` (PEM), reloaded when it changes; with --tls-key the server accepts only TLS")
	n.key = f.String("tls-key", "", "private key `FILE` of --tls-cert (PEM)")
}

// networkConfig is the flags of the network.
type networkConfig struct {
	proxies clientaddr.Proxies
	pair    *tlspair.Pair // nil: plain HTTP
}

func (n *networkFlags) read(log *slog.Logger) (c networkConfig, err error) {
	if c.proxies, err = clientaddr.Parse(*n.proxies); err != nil {
		return c, wrongUsage("--trusted-proxies: %w", err)
	}
	switch {
	case *n.cert == "" && *n.key == "":
		return c, nil
	case *n.key == "":
		return c, wrongUsage("--tls-cert needs --tls-key, the file of its private key")
	case *n.cert == "":
		return c, wrongUsage("--tls-key needs --tls-cert, the file of its certificate")
	}
	if c.pair, err = tlspair.Open(tlspair.Options{CertFile: *n.cert, KeyFile: *n.key, Now: time.Now, Logger: log}); err != nil {
		return c, fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	return c, nil
}

// before stands before all handlers: they see the client's address.
func (c *networkConfig) before(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return c.proxies.Handler(next)
}

// listener adds TLS to a listener where that is configured. It is the outermost:
// requests are to see that they came over TLS.
func (c *networkConfig) listener(ln net.Listener) net.Listener {
	if c.pair == nil {
		return ln
	}
	return tls.NewListener(ln, c.pair.Server())
}

// origin is where a listener is reached from this machine.
func (c *networkConfig) origin(addr net.Addr) string {
	if c.pair == nil {
		return origin(addr)
	}
	return "https://" + strings.TrimPrefix(origin(addr), "http://")
}

// peers is how other nodes are called, nil for plain HTTP.
func (c *networkConfig) peers() func(host string) *tls.Config {
	if c.pair == nil {
		return nil
	}
	return c.pair.Peer
}

// origin is where a listener without TLS is reached from this machine.
func origin(addr net.Addr) string {
	host, port := "127.0.0.1", 0
	if a, ok := addr.(*net.TCPAddr); ok {
		port = a.Port
		if !a.IP.IsUnspecified() {
			host = a.IP.String()
		}
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(port))
}
