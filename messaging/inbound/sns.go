package inbound

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fetcher gets a URL of Amazon SNS: a signing certificate, or a confirmation. The URL has
// been checked before it is asked.
type Fetcher interface {
	Fetch(ctx context.Context, url string) ([]byte, error)
}

// Bounds of what is fetched and kept.
const (
	maxFetchBytes = 64 << 10
	maxCerts      = 16
	fetchTimeout  = 10 * time.Second
)

// HTTPFetcher is the Fetcher of production. It follows no redirects.
type HTTPFetcher struct{ client *http.Client }

// NewHTTPFetcher makes a Fetcher over a transport; nil means the default one.
func NewHTTPFetcher(t http.RoundTripper) *HTTPFetcher {
	return &HTTPFetcher{&http.Client{
		Transport:     t,
		Timeout:       fetchTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Fetch is Fetcher's.
func (f *HTTPFetcher) Fetch(ctx context.Context, u string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, err
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered %d", resp.StatusCode)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxFetchBytes))
}

// snsHost are the hosts that serve certificates and confirmations.
var snsHost = regexp.MustCompile(`^sns\.[a-z]{2}(-[a-z]+)+-[0-9]{1,2}\.amazonaws\.com(\.cn)?$`)

// SNS authenticates messages of Amazon SNS. It is safe for concurrent use; one serves
// all accounts of a process.
type SNS struct {
	fetcher Fetcher

	mu struct {
		sync.Mutex
		certs map[string]*x509.Certificate // by URL
	}
}

// NewSNS makes an SNS.
func NewSNS(f Fetcher) *SNS {
	s := &SNS{fetcher: f}
	s.mu.certs = make(map[string]*x509.Certificate)
	return s
}

type snsMessage struct {
	Type             string
	MessageID        string `json:"MessageId"`
	Token            string
	TopicArn         string
	Subject          *string
	Message          string
	SubscribeURL     string
	Timestamp        string
	SignatureVersion string
	Signature        string
	SigningCertURL   string
}

// signed is the text that the signature covers.
func (m *snsMessage) signed() (string, error) {
	var b strings.Builder
	add := func(name, value string) { b.WriteString(name + "\n" + value + "\n") }
	add("Message", m.Message)
	add("MessageId", m.MessageID)
	switch m.Type {
	case "Notification":
		if m.Subject != nil {
			add("Subject", *m.Subject)
		}
	case "SubscriptionConfirmation", "UnsubscribeConfirmation":
		add("SubscribeURL", m.SubscribeURL)
	default:
		return "", fmt.Errorf("type %.40q is not known: %w", m.Type, ErrMalformed)
	}
	add("Timestamp", m.Timestamp)
	if m.Type != "Notification" {
		add("Token", m.Token)
	}
	add("TopicArn", m.TopicArn)
	add("Type", m.Type)
	return b.String(), nil
}

// verify checks that SNS signed the message for one of the topics. Anyone can have SNS
// sign a message for a topic of theirs: the list of topics is what binds it to an
// account.
func (s *SNS) verify(ctx context.Context, now time.Time, m *snsMessage, topics []string) error {
	if !slices.Contains(topics, m.TopicArn) {
		return fmt.Errorf("the message's TopicArn is not among the account's topics: %w", ErrUnauthorised)
	}
	at := instant(m.Timestamp)
	if at.IsZero() {
		return fmt.Errorf("the message's Timestamp must be RFC 3339: %w", ErrMalformed)
	}
	if err := checkAge("Timestamp", at, now); err != nil {
		return err
	}
	text, err := m.signed()
	if err != nil {
		return err
	}
	sig, err := base64.StdEncoding.DecodeString(m.Signature)
	if err != nil {
		return fmt.Errorf("the message's Signature must be base64: %w", ErrUnauthorised)
	}
	var hash crypto.Hash
	var sum []byte
	switch m.SignatureVersion {
	case "1":
		// The default of topics that were never set to version 2.
		h := sha1.Sum([]byte(text))
		hash, sum = crypto.SHA1, h[:]
	case "2":
		h := sha256.Sum256([]byte(text))
		hash, sum = crypto.SHA256, h[:]
	default:
		return fmt.Errorf("the message's SignatureVersion must be 1 or 2: %w", ErrUnauthorised)
	}
	cert, err := s.cert(ctx, now, m.SigningCertURL)
	if err != nil {
		return err
	}
	key, ok := cert.PublicKey.(*rsa.PublicKey)
	if !ok || rsa.VerifyPKCS1v15(key, hash, sum, sig) != nil {
		return fmt.Errorf("the message's Signature does not match the certificate: %w", ErrUnauthorised)
	}
	return nil
}

// checkSNSURL admits URLs of SNS only.
func checkSNSURL(name, raw string) error {
	u, err := url.Parse(raw)
	if err != nil || len(raw) > 2048 || u.Scheme != "https" || u.User != nil || u.Opaque != "" || !snsHost.MatchString(u.Host) {
		return fmt.Errorf("%s is no https URL of sns.<region>.amazonaws.com: %w", name, ErrUnauthorised)
	}
	return nil
}

func (s *SNS) cert(ctx context.Context, now time.Time, raw string) (*x509.Certificate, error) {
	if err := checkSNSURL("SigningCertURL", raw); err != nil {
		return nil, err
	}
	if u, err := url.Parse(raw); err != nil || !strings.HasSuffix(u.Path, ".pem") || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the message's SigningCertURL does not end in .pem: %w", ErrUnauthorised)
	}
	s.mu.Lock()
	cert := s.mu.certs[raw]
	s.mu.Unlock()
	if cert == nil {
		body, err := s.fetcher.Fetch(ctx, raw)
		if err != nil {
			return nil, fmt.Errorf("the signing certificate: %w: %w", err, ErrUnavailable)
		}
		block, _ := pem.Decode(body)
		if block == nil {
			return nil, fmt.Errorf("the signing certificate is no PEM: %w", ErrUnavailable)
		}
		if cert, err = x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("the signing certificate: %w: %w", err, ErrUnavailable)
		}
		s.mu.Lock()
		if len(s.mu.certs) >= maxCerts {
			clear(s.mu.certs)
		}
		s.mu.certs[raw] = cert
		s.mu.Unlock()
	}
	if now.Before(cert.NotBefore) || now.After(cert.NotAfter) {
		return nil, fmt.Errorf("the signing certificate is not valid now: %w", ErrUnauthorised)
	}
	return cert, nil
}

// Confirm fetches Batch.ConfirmURL, by which SNS begins to deliver.
func (s *SNS) Confirm(ctx context.Context, confirmURL string) error {
	if err := checkSNSURL("SubscribeURL", confirmURL); err != nil {
		return fmt.Errorf("sns: %w", err)
	}
	if _, err := s.fetcher.Fetch(ctx, confirmURL); err != nil {
		return fmt.Errorf("sns: confirming: %w", errors.Join(err, ErrUnavailable))
	}
	return nil
}
