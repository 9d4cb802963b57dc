package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/musterhq/muster/cmd/muster/internal/cli"
)

// health asks a server on this machine whether it serves, and fails if it does
// not: for images that have no other program to ask with.
func (p *process) health(ctx context.Context) error {
	f := cli.New("muster health", "muster health ends with status 0 if the server on this machine serves, with 1 if it does not.", p.stderr)
	listen := f.String("listen", "127.0.0.1:8080", "`HOST:PORT` that serve listens on")
	cert := f.String("tls-cert", "", "`FILE` that serve was given as --tls-cert; the server is asked over TLS then. It is this machine's own, so any certificate is taken")
	alive := f.Bool("alive", false, "ask whether it answers at all, also while it starts or stops")
	timeout := f.Duration("timeout", 3*time.Second, "longest `TIME` to wait")
	f.Range("timeout", int64(time.Millisecond), int64(mostTime))
	rest, err := f.Parse(p.args, p.env)
	switch {
	case err != nil:
		return usageError{err}
	case len(rest) > 0:
		return wrongUsage("health takes no arguments, have %q", rest)
	}
	host, port, err := checkHostPort("listen", *listen, "127.0.0.1:8080")
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	scheme := "http://"
	if *cert != "" {
		scheme = "https://"
	}
	path := "/readyz"
	if *alive {
		path = "/healthz"
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+net.JoinHostPort(host, port)+path, nil)
	if err != nil {
		return wrongUsage("--listen: %s", err)
	}
	// Not http.DefaultClient: a proxy of the environment is not for this machine.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	res, err := client.Do(req)
	if err != nil {
		return unreachable("the server at "+*listen, "listen", err)
	}
	defer res.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10)) // for the message alone
	if res.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(fmt.Sprintf("%s: %s", res.Status, said)))
	}
	fmt.Fprintln(p.stdout, strings.TrimSpace(string(said)))
	return nil
}
