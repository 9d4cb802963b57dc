package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Headers of Standard Webhooks.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// Tolerance is how far a message's time may be from the reader's clock, either way.
const Tolerance = 5 * time.Minute

// signatureVersion names HMAC-SHA256 over id.timestamp.body.
const signatureVersion = "v1,"

// Bounds of what Verify looks at.
const (
	maxIDBytes        = 128
	maxSignatures     = 16
	maxSignatureBytes = 4096
)

// ErrSignature reports that a message is not signed by any of the secrets, or not
// recently. The text around it says which header is wrong, never what would be right.
var ErrSignature = errors.New("signature not accepted")

// Sign returns the value of webhook-signature: one signature per secret, parted
// by spaces. Several secrets are used while an old one is rotated out. No
// secrets give the empty string.
func Sign(id string, at time.Time, body []byte, secrets []Secret) string {
	var b strings.Builder
	stamp := strconv.FormatInt(at.Unix(), 10)
	for i, s := range secrets {
		if i > 0 {
			b.WriteByte(' ')
		}
		sum := mac(s, id, stamp, body)
		b.WriteString(signatureVersion)
		b.WriteString(base64.StdEncoding.EncodeToString(sum[:]))
	}
	return b.String()
}

// Verify checks a message against the secrets that may have signed it; header
// answers the value of the named header. Time spent does not depend on how much
// of a signature is right. now is the reader's clock.
func Verify(header func(name string) string, body []byte, secrets []Secret, now time.Time) error {
	id := header(HeaderID)
	if err := checkID(id); err != nil {
		return fmt.Errorf("header %s: %w: %w", HeaderID, err, ErrSignature)
	}
	stamp := header(HeaderTimestamp)
	sec, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || sec < 0 || sec > 1<<40 || strconv.FormatInt(sec, 10) != stamp {
		return fmt.Errorf("header %s must be whole seconds since 1970: %w", HeaderTimestamp, ErrSignature)
	}
	if d := now.Sub(time.Unix(sec, 0)); d > Tolerance || d < -Tolerance {
		return fmt.Errorf("header %s is more than %v from now; sign each attempt again and check the clock: %w", HeaderTimestamp, Tolerance, ErrSignature)
	}
	text := header(HeaderSignature)
	if text == "" || len(text) > maxSignatureBytes {
		return fmt.Errorf("header %s is missing or too long: %w", HeaderSignature, ErrSignature)
	}
	given := strings.SplitN(text, " ", maxSignatures+1)
	if len(given) > maxSignatures {
		return fmt.Errorf("header %s holds more than %d signatures: %w", HeaderSignature, maxSignatures, ErrSignature)
	}
	ok := false
	for _, s := range secrets {
		if s.IsZero() {
			continue
		}
		want := mac(s, id, stamp, body)
		for _, g := range given {
			enc, known := strings.CutPrefix(g, signatureVersion)
			if !known {
				continue // another version of signature: not ours to judge
			}
			got, err := base64.StdEncoding.DecodeString(enc)
			if err == nil && hmac.Equal(got, want[:]) {
				ok = true
			}
		}
	}
	if !ok {
		return fmt.Errorf("header %s matches no secret of this endpoint: %w", HeaderSignature, ErrSignature)
	}
	return nil
}

// checkID refuses what would make the signed text ambiguous (a dot) or break a header.
func checkID(id string) error {
	if id == "" || len(id) > maxIDBytes {
		return fmt.Errorf("must have 1 to %d characters", maxIDBytes)
	}
	for i := 0; i < len(id); i++ {
		if c := id[i]; c <= ' ' || c >= 0x7f || c == '.' {
			return errors.New("must be printable ASCII without spaces and dots")
		}
	}
	return nil
}

func mac(s Secret, id, stamp string, body []byte) (sum [sha256.Size]byte) {
	h := hmac.New(sha256.New, []byte(s.key))
	h.Write([]byte(id))
	h.Write([]byte{'.'})
	h.Write([]byte(stamp))
	h.Write([]byte{'.'})
	h.Write(body)
	h.Sum(sum[:0])
	return sum
}
