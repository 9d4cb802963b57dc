package importer

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"time"
)

const (
	// connectTime bounds how long the first connection may take.
	connectTime = 5 * time.Second
	// connectAgain is the pause between attempts to make it.
	connectAgain = 250 * time.Millisecond
)

// do sends the body. Until there was a connection it tries to make one for
// connectTime, and then says that there is no server: a wrong address must not look
// like a slow import. cancel ends ctx.
func (t *httpTarget) do(ctx context.Context, cancel context.CancelFunc) (*http.Response, error) {
	if t.connected.Load() {
		return t.request(ctx)
	}
	began := time.Now()
	late := time.AfterFunc(connectTime, cancel)
	defer late.Stop()
	outer := ctx
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		late.Stop()
		t.connected.Store(true)
	}})
	for {
		res, err := t.request(ctx)
		switch {
		case err == nil || t.connected.Load() || hopeless(err) != "":
			return res, err
		case time.Since(began) >= connectTime-connectAgain:
			return nil, fmt.Errorf("no connection to %s within %s; start the server, or give its URL with --to (%w)", t.url, connectTime, err)
		}
		select {
		case <-time.After(connectAgain):
		case <-outer.Done(): // before connectTime: the import is stopped
			return nil, outer.Err()
		}
	}
}

// hopeless returns what to do about an error that stays however often one tries, empty for
// others.
func hopeless(err error) (remedy string) {
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		return "name the file of its certificate, or of the authority that signed it, with --ca"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "it speaks plain HTTP, so give --to http://"
	}
	return ""
}

// request sends the body once.
func (t *httpTarget) request(ctx context.Context) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(t.body.Bytes()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-App-Id", t.appID)
	req.Header.Set("X-App-Secret", t.appSecret)
	return t.client.Do(req)
}
