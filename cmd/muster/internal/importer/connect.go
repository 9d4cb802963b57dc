package importer

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"
)

const (
	// answerTime bounds how long the first answer may take, but for a server that has taken
	// the request and keeps the connection.
	answerTime = 5 * time.Second
	// answerAgain is the pause between attempts to have one.
	answerAgain = 250 * time.Millisecond
)

// do sends the body. Until there was an answer it tries again for answerTime, and then
// says that there is no server: a wrong address must not look like a slow import, nor a
// proxy that takes connections in front of a server that is gone. cancel ends ctx.
func (t *httpTarget) do(ctx context.Context, cancel context.CancelFunc) (*http.Response, error) {
	if t.answered.Load() {
		return t.request(ctx)
	}
	began := time.Now()
	late := time.AfterFunc(answerTime, cancel)
	defer late.Stop()
	outer := ctx
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { late.Stop() }})
	for {
		res, err := t.request(ctx)
		took := time.Since(began)
		switch {
		case err == nil:
			t.answered.Store(true)
			return res, nil
		case hopeless(err) != "":
			return nil, err
		case took >= answerTime-answerAgain:
			return nil, fmt.Errorf("no answer from %s within %s; start the server, or give its URL with --to%s (%w)", t.URL, took.Round(time.Second), t.orTLS(), err)
		}
		select {
		case <-time.After(answerAgain):
		case <-outer.Done(): // before answerTime: the import is stopped
			return nil, outer.Err()
		}
	}
}

// orTLS is a hint for the URL of a server that may speak TLS: it closes the connection.
func (t *httpTarget) orTLS() string {
	if strings.HasPrefix(t.URL, "http:") {
		return ", with https:// where it has --tls-cert"
	}
	return ""
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
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL+"/events/import", bytes.NewReader(t.body.Bytes()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-App-Id", t.AppID)
	req.Header.Set("X-App-Secret", t.AppSecret)
	return t.Client.Do(req)
}
