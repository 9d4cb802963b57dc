package tlspair

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// CheckEvery is the least time between two readings of the files.
const CheckEvery = 5 * time.Second

// maxFileBytes bounds a file; a chain of certificates has some KiB.
const maxFileBytes = 1 << 20

// Options configure a [Pair]. All are required but Logger.
type Options struct {
	// CertFile has the certificate and those between it and its root, KeyFile the
	// private key: PEM.
	CertFile, KeyFile string
	Now               func() time.Time
	Logger            *slog.Logger // nil is silent
}

// Pair is a certificate with its key. It is safe for concurrent use.
type Pair struct {
	opts Options
	// current is used; previous was until the files changed last, nil before.
	current, previous atomic.Pointer[tls.Certificate]
	mu                struct {
		sync.Mutex // held while the files are read
		checked    time.Time
		cert, key  []byte // as they were read last, usable or not
		fault      string // of the last reading
	}
}

// Open reads the files. The error names the one at fault.
func Open(o Options) (*Pair, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Pair{opts: o}
	cert, key, err := p.read()
	if err != nil {
		return nil, err
	}
	c, err := p.parse(cert, key)
	if err != nil {
		return nil, err
	}
	p.mu.cert, p.mu.key, p.mu.checked = cert, key, o.Now()
	p.current.Store(c)
	p.warn(c)
	return p, nil
}

func (p *Pair) read() (cert, key []byte, err error) {
	if cert, err = readFile(p.opts.CertFile); err != nil {
		return nil, nil, fmt.Errorf("certificate: %w", err)
	}
	if key, err = readFile(p.opts.KeyFile); err != nil {
		return nil, nil, fmt.Errorf("key: %w", err)
	}
	return cert, key, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(b) > maxFileBytes {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFileBytes)
	}
	return b, err
}

func (p *Pair) parse(cert, key []byte) (*tls.Certificate, error) {
	c, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", p.opts.CertFile, p.opts.KeyFile, err)
	}
	return &c, nil
}

// warn reports a certificate to the log that clients will refuse.
func (p *Pair) warn(c *tls.Certificate) {
	if now := p.opts.Now(); now.After(c.Leaf.NotAfter) || now.Before(c.Leaf.NotBefore) {
		p.opts.Logger.Warn("the TLS certificate is not valid now; clients refuse it", "file", p.opts.CertFile, "not_before", c.Leaf.NotBefore, "not_after", c.Leaf.NotAfter)
	}
}

// refresh reads the files if that has not been done for some time.
func (p *Pair) refresh() {
	if !p.mu.TryLock() {
		return // another handshake does it
	}
	defer p.mu.Unlock()
	now := p.opts.Now()
	if now.Sub(p.mu.checked) < CheckEvery {
		return
	}
	p.mu.checked = now
	cert, key, err := p.read()
	if err == nil {
		if bytes.Equal(cert, p.mu.cert) && bytes.Equal(key, p.mu.key) {
			return
		}
		p.mu.cert, p.mu.key = cert, key
		var c *tls.Certificate
		if c, err = p.parse(cert, key); err == nil {
			p.mu.fault = ""
			if old := p.current.Load(); !old.Leaf.Equal(c.Leaf) {
				p.previous.Store(old)
			}
			p.current.Store(c)
			p.opts.Logger.Info("the TLS certificate was read again", "file", p.opts.CertFile, "not_after", c.Leaf.NotAfter)
			p.warn(c)
			return
		}
	}
	if p.mu.fault != err.Error() {
		p.mu.fault = err.Error()
		p.opts.Logger.Error("the TLS certificate or key has changed and cannot be used; the old pair stays in use", "err", err)
	}
}

// Server is the configuration of a listener: TLS 1.2 or later, HTTP/1.1.
func (p *Pair) Server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			p.refresh()
			return p.current.Load(), nil
		},
	}
}

// Peer is the configuration of a client that calls another node of the same
// cluster at host. The node may have the same certificate as this one, now or until
// the files changed last, whatever names it has; any other must be one that the
// system trusts for host.
func (p *Pair) Peer(host string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, ServerName: host,
		InsecureSkipVerify: true, // VerifyConnection does it
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errors.New("the node shows no certificate")
			}
			leaf := s.PeerCertificates[0]
			p.refresh() // the other node may have noticed the change before
			for _, own := range []*tls.Certificate{p.current.Load(), p.previous.Load()} {
				if own != nil && own.Leaf.Equal(leaf) {
					return nil
				}
			}
			between := x509.NewCertPool()
			for _, c := range s.PeerCertificates[1:] {
				between.AddCert(c)
			}
			_, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Intermediates: between, CurrentTime: p.opts.Now()})
			if err != nil {
				return fmt.Errorf("the node has another certificate than this one, which the system does not trust for %s: %w", host, err)
			}
			return nil
		},
	}
}
