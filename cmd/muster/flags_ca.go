package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"

	"github.com/musterhq/muster/cmd/muster/internal/cli"
)

// addCA adds the flag of commands that call a server.
func addCA(f *cli.Flags) *string {
	return f.String("ca", "", "`FILE` of certificates (PEM) that are trusted beside those of the system when --to is https://")
}

// clientTransport returns how a server is called. file is that of --ca, empty for
// the system's certificates alone. A server that does not answer is noted in notes.
func clientTransport(file string, notes io.Writer) (http.RoundTripper, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	dialWithin(t)
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if file == "" {
		return &patient{RoundTripper: t, after: answerTime, to: notes}, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, wrongUsage("--ca: %s cannot be read: %w; name a file of certificates in PEM", file, cause(err))
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(b) {
		return nil, wrongUsage("--ca: %s has no certificate in PEM", file)
	}
	t.TLSClientConfig.RootCAs = roots
	return &patient{RoundTripper: t, after: answerTime, to: notes}, nil
}
