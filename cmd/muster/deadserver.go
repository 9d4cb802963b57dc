package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/musterhq/muster/api"
)

// connectTime bounds how long a command waits for a connection to a server, as an
// import does.
const connectTime = 5 * time.Second

// unreachable says of a call that failed before there was an answer which server does
// not answer, why, and what to do about it. flag is that of its address. Other errors
// it returns as they are.
func unreachable(server, flag string, err error) error {
	var failed *url.Error
	if err == nil || !errors.As(err, &failed) || errors.Is(err, context.Canceled) {
		return err
	}
	var unknown *net.DNSError
	var certificate *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	why, remedy := "", "start the server, or give its address with --"+flag
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "nothing listens there"
	case errors.As(err, &unknown):
		why, remedy = "its host is unknown", "give the server's address with --"+flag
	case errors.As(err, &certificate):
		why, remedy = "its certificate is not trusted: "+certificate.Err.Error(), "name the certificate's issuer with --ca"
	case errors.As(err, &plain):
		why, remedy = "it does not speak TLS", "give its address with http:// to --"+flag
	case failed.Timeout():
		why = "no answer in time"
	default:
		why = failed.Err.Error()
	}
	return fmt.Errorf("%s does not answer: %s; %s", server, why, remedy)
}

// loadCredentials reads the file of --credentials.
func loadCredentials(file string) (api.Credentials, error) {
	creds, err := api.LoadCredentials(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return creds, wrongUsage("--credentials: %s does not exist; name the file that muster serve wrote", file)
	case err != nil:
		return creds, fmt.Errorf("--credentials: %s cannot be read: %w; name the file that muster serve wrote", file, cause(err))
	}
	return creds, nil
}

// dialWithin makes a transport give up a connection after connectTime.
func dialWithin(t *http.Transport) {
	t.DialContext = (&net.Dialer{Timeout: connectTime, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout = connectTime
}
