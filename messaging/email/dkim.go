package email

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/emersion/go-msgauth/dkim"
	"golang.org/x/net/idna"
)

// Key signs messages for a sender domain.
type Key struct {
	domain, selector string
	signer           crypto.Signer
}

// signedHeaders are part of every signature, present or not: a header added on
// the way breaks it. RFC 8058 wants the List-Unsubscribe pair among them.
var signedHeaders = []string{
	"From", "Reply-To", "To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type", "Content-Transfer-Encoding",
	"List-Unsubscribe", "List-Unsubscribe-Post", "Feedback-ID", SendIDHeader,
}

// ParseKey reads a private key in PEM (PKCS#8, or PKCS#1 for RSA) that signs for
// domain under selector. RSA keys have at least 1024 bits.
func ParseKey(domain, selector string, privatePEM []byte) (*Key, error) {
	domain, err := checkDomain(domain)
	if err != nil {
		return nil, err
	}
	if selector == "" || len(selector) > 63 || strings.Trim(selector, headerNameBytes+"_.") != "" {
		return nil, errors.New("email: DKIM selector must be up to 63 letters, digits, - and _, for example muster1")
	}
	block, _ := pem.Decode(privatePEM)
	if block == nil {
		return nil, errors.New("email: DKIM private key is not PEM; paste the whole block with its BEGIN and END lines")
	}
	var key any
	if block.Type == "RSA PRIVATE KEY" {
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	} else {
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, fmt.Errorf("email: DKIM private key cannot be read: %w", err)
	}
	k := &Key{domain: domain, selector: selector}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		if key.N.BitLen() < 1024 {
			return nil, fmt.Errorf("email: DKIM RSA key has %d bits; receivers want 1024 at least, better 2048", key.N.BitLen())
		}
		k.signer = key
	case ed25519.PrivateKey:
		k.signer = key
	default:
		return nil, fmt.Errorf("email: DKIM signs with RSA or Ed25519, not %T", key)
	}
	return k, nil
}

// GenerateKeys makes the two keys of a sender domain: a 2048-bit RSA key, which
// every receiver understands, and an Ed25519 key. Both come as PKCS#8 PEM.
func GenerateKeys() (rsaPEM, ed25519PEM []byte, err error) {
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, fmt.Errorf("email: generating an RSA key: %w", err)
	}
	_, e, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("email: generating an Ed25519 key: %w", err)
	}
	if rsaPEM, err = encodeKey(r); err == nil {
		ed25519PEM, err = encodeKey(e)
	}
	return rsaPEM, ed25519PEM, err
}

func encodeKey(key any) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("email: encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Domain is the domain the key signs for.
func (k *Key) Domain() string { return k.domain }

// Record returns the TXT record receivers look the public key up in.
func (k *Key) Record() (Record, error) {
	var value string
	switch pub := k.signer.Public().(type) {
	case *rsa.PublicKey:
		der, err := x509.MarshalPKIXPublicKey(pub)
		if err != nil {
			return Record{}, fmt.Errorf("email: encoding a key: %w", err)
		}
		value = "v=DKIM1; k=rsa; p=" + base64.StdEncoding.EncodeToString(der)
	case ed25519.PublicKey:
		value = "v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(pub)
	}
	return Record{Type: "TXT", Name: k.selector + "._domainkey." + k.domain, Value: value, Purpose: "dkim", Required: true}, nil
}

// sign puts one signature per key before msg. The signing time in them is the
// wall clock's: the library offers no other.
func sign(msg []byte, keys []*Key) ([]byte, error) {
	for _, k := range keys {
		var b bytes.Buffer
		b.Grow(len(msg) + 1024)
		err := dkim.Sign(&b, bytes.NewReader(msg), &dkim.SignOptions{
			Domain: k.domain, Selector: k.selector, Signer: k.signer, Hash: crypto.SHA256,
			HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
			HeaderKeys: signedHeaders,
		})
		if err != nil {
			return nil, fmt.Errorf("email: signing for %s: %w", k.domain, err)
		}
		msg = b.Bytes()
	}
	return msg, nil
}

func checkDomain(domain string) (string, error) {
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(strings.TrimSpace(domain), "."))
	if err != nil || !strings.Contains(ascii, ".") || len(ascii) > 253 || strings.Trim(ascii, headerNameBytes+".") != "" {
		return "", fmt.Errorf("email: %q is no domain; write it as example.com", domain)
	}
	return strings.ToLower(ascii), nil
}
