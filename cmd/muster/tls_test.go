package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/internal/tlspair/tlspairtest"
)

// TestTLS follows a server with a certificate of its own through every command that
// calls it, and through a new certificate.
func TestTLS(t *testing.T) {
	testlevel.SkipQuick(t, "waits for certificates to be reloaded")
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := tlspairtest.Files(t, dir, "127.0.0.1")
	s := serve(t, dir, "--tls-cert", certFile, "--tls-key", keyFile)
	if !strings.HasPrefix(s.origin, "https://127.0.0.1:") || s.creds.BaseURL != s.origin+"/api/v1" || s.creds.ConsoleURL != s.origin+"/console" {
		t.Errorf("the server is at %s, its credentials lead to %s", s.origin, s.creds.BaseURL)
	}
	at := strings.TrimPrefix(s.origin, "https://")
	client := func() *http.Client {
		roots := x509.NewCertPool()
		b, err := os.ReadFile(certFile)
		ok(t, err)
		roots.AppendCertsFromPEM(b)
		return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
	}
	res, err := client().Post(s.origin+api.Prefix+"/session", "application/json", strings.NewReader(fmt.Sprintf(`{"email":%q,"password":%q,"cookie":true}`, s.creds.ConsoleEmail, s.creds.ConsolePassword)))
	ok(t, err)
	io.Copy(io.Discard, res.Body) // it is not looked at
	res.Body.Close()
	cookies := res.Header.Values("Set-Cookie")
	if res.StatusCode != 200 || len(cookies) != 2 || res.Proto != "HTTP/1.1" || res.TLS.Version < tls.VersionTLS12 {
		t.Errorf("%s %s %d cookies", res.Status, res.Proto, len(cookies))
	}
	for _, c := range cookies {
		if !strings.Contains(c, "; secure") {
			t.Errorf("over TLS the cookie is %s", c)
		}
	}
	if res, err := http.Get("http://" + at + "/healthz"); err == nil {
		t.Errorf("plain HTTP is answered %s", res.Status)
	}

	file := filepath.Join(dir, "events.jsonl")
	ok(t, os.WriteFile(file, []byte(`{"event_type":"seen","user":{"email":"a@x.io"},"timestamp":"2024-05-01T00:00:00Z"}`+"\n"), 0o600))
	credentials := filepath.Join(dir, "credentials.json")
	plain := serve(t, t.TempDir())
	defer plain.stop()
	for _, x := range []struct {
		code int
		says string
		args []string
	}{
		{exitOK, "ready", []string{"health", "--listen", at, "--tls-cert", certFile}},
		{exitFailed, "", []string{"health", "--listen", at}},
		{exitFailed, "with --ca", []string{"import", "--to", s.origin, "--credentials", credentials, file}},
		{exitFailed, "plain HTTP", []string{"import", "--to", strings.Replace(plain.origin, "http://", "https://", 1), "--credentials", credentials, file}},
		{exitUsage, "no certificate in PEM", []string{"import", "--to", s.origin, "--ca", file, "--credentials", credentials, file}},
		{exitUsage, "--ca", []string{"admin", "--ca", file + "x", "--credentials", credentials, "key", "list"}},
		{exitOK, "1 accepted", []string{"import", "--to", s.origin, "--ca", certFile, "--credentials", credentials, file}},
		{exitFailed, "certificate", []string{"admin", "--credentials", credentials, "key", "list"}},
		{exitOK, "first key", []string{"admin", "--ca", certFile, "--credentials", credentials, "key", "list"}},
		{exitOK, "a@x.io", []string{"export", "--to", s.origin, "--ca", certFile, "--credentials", credentials, "profiles"}},
	} {
		if code, out, errs := muster(t, "", x.args...); code != x.code || !strings.Contains(out+errs, x.says) {
			t.Errorf("%q: %d %s%s, want %d %s", x.args, code, out, errs, x.code, x.says)
		}
	}

	// A broken pair keeps the old one; a new one is used without a restart.
	seen := func() string {
		t.Helper()
		c, err := tls.Dial("tcp", at, &tls.Config{InsecureSkipVerify: true})
		ok(t, err)
		defer c.Close()
		return string(c.ConnectionState().PeerCertificates[0].Raw)
	}
	old := seen()
	ok(t, os.WriteFile(keyFile, []byte("broken"), 0o600))
	until := func(what string, is func() bool) {
		t.Helper()
		eventually.Succeeds(t, func() error {
			if !is() {
				return fmt.Errorf("%s:\n%s", what, s.log())
			}
			return nil
		})
	}
	until("a broken key is not noticed", func() bool { seen(); return strings.Contains(s.log(), "the old pair stays in use") })
	if seen() != old {
		t.Error("the old certificate is gone")
	}
	tlspairtest.Files(t, dir, "127.0.0.1")
	until("the new certificate is not used", func() bool { return seen() != old })
	res, err = client().Get(s.origin + "/readyz")
	ok(t, err)
	res.Body.Close()
	s.stop()

	for _, x := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--tls-cert", certFile}, exitUsage, "--tls-cert needs --tls-key"},
		{[]string{"--tls-key", keyFile}, exitUsage, "--tls-key needs --tls-cert"},
		{[]string{"--tls-cert", certFile, "--tls-key", file}, exitFailed, file},
		{[]string{"--tls-cert", dir + "/none", "--tls-key", keyFile}, exitFailed, "none"},
	} {
		if code, _, errs := muster(t, "", append([]string{"serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "unused")}, x.args...)...); code != x.code || !strings.Contains(errs, x.says) {
			t.Errorf("%q: %d %s", x.args, code, errs)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "unused")); err == nil {
		t.Error("a start that is refused makes a directory")
	}
}
