package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/cluster/peer"
)

// selfTime is how long the answer to a call of this process to itself may take.
const selfTime = 2 * time.Second

// selfCall answers the call of a process to itself, at a path that no other has.
type selfCall struct {
	path string
	tls  bool // the listener speaks TLS
}

func newSelfCall(tls bool) selfCall { return selfCall{peer.Prefix + "self/" + rand.Text(), tls} }

// before stands before the handler of everything else.
func (s selfCall) before(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(rc *fasthttp.RequestCtx) {
		if string(rc.Request.Header.RequestURI()) == s.path {
			rc.SetStatusCode(http.StatusNoContent)
			return
		}
		next(rc)
	}
}

// url is where the process answers itself, and nobody else, at an address.
func (s selfCall) url(addr string) string {
	if s.tls {
		return "https://" + addr + s.path
	}
	return "http://" + addr + s.path
}

// check looks whether an address leads to this process. The error says that it leads
// to another one; when nothing is found out, since an address may be one that this
// machine does not reach or not yet, unreached says why.
func (s selfCall) check(ctx context.Context, addr string) (unreached, err error) {
	ctx, cancel := context.WithTimeout(ctx, selfTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url(addr), nil)
	if err != nil {
		return nil, fmt.Errorf("--advertise %s: %w", addr, err)
	}
	// That the answer is this process's shows by its path, not by a certificate.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return err, nil
	}
	defer res.Body.Close()
	io.Copy(io.Discard, io.LimitReader(res.Body, 4096)) //nolint:errcheck // what it says does not matter
	switch {
	case res.StatusCode == http.StatusNoContent:
		return nil, nil
	case res.StatusCode >= 500: // of a proxy, before this process is known to be ready
		return fmt.Errorf("it answers %s", res.Status), nil
	}
	return nil, fmt.Errorf("--advertise %s leads to another server, which answers %s; give the address where other nodes reach this process, and no other", addr, res.Status)
}
