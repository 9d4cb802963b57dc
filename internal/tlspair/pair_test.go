package tlspair

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/tlspair/tlspairtest"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shake does a handshake over loopback and returns the certificate that the client saw.
func shake(t *testing.T, server, client *tls.Config) ([]byte, error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer ln.Close()
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		s := tls.Server(conn, server)
		s.Handshake()          // the client tells
		io.Copy(io.Discard, s) // until the client is gone
	}()
	conn, err := net.Dial("tcp", ln.Addr().String())
	ok(t, err)
	defer conn.Close()
	c := tls.Client(conn, client)
	ok(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	if err := c.Handshake(); err != nil {
		return nil, err
	}
	if p := c.ConnectionState().NegotiatedProtocol; p != "http/1.1" {
		t.Errorf("the protocol is %q", p)
	}
	return c.ConnectionState().PeerCertificates[0].Raw, nil
}

func anyone() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}}
}

func TestReload(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	certFile, keyFile := tlspairtest.Files(t, dir, "a.test")
	var log bytes.Buffer
	p, err := Open(Options{CertFile: certFile, KeyFile: keyFile, Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	ok(t, err)
	seen := func() string {
		t.Helper()
		raw, err := shake(t, p.Server(), anyone())
		ok(t, err)
		return string(raw)
	}
	first := seen()
	cert, key := tlspairtest.Make(t, "a.test")
	ok(t, os.WriteFile(certFile, cert, 0o600))
	if seen() != first {
		t.Error("the files are read at each handshake")
	}
	// One half is there, the other is not yet: the old pair stays, and one line says so.
	for range 3 {
		now = now.Add(CheckEvery)
		if seen() != first {
			t.Fatal("a certificate without its key is used")
		}
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), "the old pair stays in use") {
		t.Errorf("%d errors:\n%s", n, &log)
	}
	ok(t, os.WriteFile(keyFile, key, 0o600))
	now = now.Add(CheckEvery)
	second := seen()
	if second == first {
		t.Error("the new pair is not used")
	}
	for name, break_ := range map[string]func() error{
		"no file": func() error { return os.Remove(keyFile) },
		"no PEM":  func() error { return os.WriteFile(keyFile, []byte("x"), 0o600) },
		"endless": func() error { return os.WriteFile(certFile, make([]byte, maxFileBytes+1), 0o600) },
		"empty":   func() error { return os.WriteFile(certFile, nil, 0o600) },
	} {
		log.Reset()
		ok(t, break_())
		now = now.Add(CheckEvery)
		if seen() != second || strings.Count(log.String(), "level=ERROR") != 1 {
			t.Errorf("%s: %s", name, &log)
		}
	}
	ok(t, os.WriteFile(certFile, cert, 0o600))
	ok(t, os.WriteFile(keyFile, key, 0o600))
	now = now.Add(CheckEvery)
	if seen() != second {
		t.Error("the pair is broken for good")
	}
	// TLS 1.1 is not spoken.
	old := anyone()
	old.MaxVersion = tls.VersionTLS11
	if _, err := shake(t, p.Server(), old); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	now = now.Add(48 * time.Hour)
	log.Reset()
	_, err = Open(Options{CertFile: certFile, KeyFile: keyFile, Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil || !strings.Contains(log.String(), "is not valid now") {
		t.Errorf("a certificate that has run out: %v %s", err, &log)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := tlspairtest.Files(t, dir, "a.test")
	otherDir := t.TempDir()
	otherCert, _ := tlspairtest.Files(t, otherDir, "a.test")
	for _, x := range []struct{ cert, key, says string }{
		{filepath.Join(dir, "none"), keyFile, "none"}, {certFile, filepath.Join(dir, "none"), "none"},
		{otherCert, keyFile, "does not match"}, {keyFile, certFile, keyFile},
	} {
		if _, err := Open(Options{CertFile: x.cert, KeyFile: x.key, Now: time.Now}); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s %s: %v", x.cert, x.key, err)
		}
	}
}

// TestPeer: a node takes the certificate that it has itself, now or before, and none
// that is a stranger's.
func TestPeer(t *testing.T) {
	dir, otherDir, now := t.TempDir(), t.TempDir(), time.Now()
	clock := func() time.Time { return now }
	certFile, keyFile := tlspairtest.Files(t, dir, "cluster.test")
	p, err := Open(Options{CertFile: certFile, KeyFile: keyFile, Now: clock})
	ok(t, err)
	before := p.Server()
	frozen, err := before.GetCertificate(nil)
	ok(t, err)
	slow := &tls.Config{Certificates: []tls.Certificate{*frozen}, NextProtos: []string{"http/1.1"}} // a node that has not noticed yet
	if _, err := shake(t, p.Server(), p.Peer("10.1.2.3")); err != nil {
		t.Errorf("a node with the same certificate: %v", err)
	}
	strangerCert, strangerKey := tlspairtest.Files(t, otherDir, "10.1.2.3", "cluster.test")
	stranger, err := Open(Options{CertFile: strangerCert, KeyFile: strangerKey, Now: clock})
	ok(t, err)
	if _, err := shake(t, stranger.Server(), p.Peer("10.1.2.3")); err == nil || !strings.Contains(err.Error(), "does not trust for 10.1.2.3") {
		t.Errorf("a stranger: %v", err)
	}
	tlspairtest.Files(t, dir, "cluster.test")
	now = now.Add(CheckEvery)
	if _, err := shake(t, p.Server(), p.Peer("10.1.2.3")); err != nil {
		t.Errorf("after the change: %v", err)
	}
	if _, err := shake(t, slow, p.Peer("10.1.2.3")); err != nil {
		t.Errorf("a node that has not noticed the change: %v", err)
	}
}
