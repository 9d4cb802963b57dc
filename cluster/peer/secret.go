package peer

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"
	"time"
)

// MinSecretBytes is the least length of a cluster's secret.
const MinSecretBytes = 16

// maxSkew is how far the clocks of two nodes may be apart.
const maxSkew = time.Minute

// Secret is what the nodes of a cluster share. The zero value signs nothing and
// accepts no call.
type Secret struct {
	key   []byte
	seals *sync.Pool // *sealer, of calls
}

// sealer makes the MACs of calls, one after the other. It has taken in the key, which is
// half of the work of a short MAC.
type sealer struct {
	hash hash.Hash
	text []byte
}

// NewSecret makes the secret of its text.
func NewSecret(text string) (Secret, error) {
	if len(text) < MinSecretBytes {
		return Secret{}, fmt.Errorf("the cluster's secret has %d bytes; give at least %d, such as those of `openssl rand -hex 32`", len(text), MinSecretBytes)
	}
	key := mac([]byte(text), "muster: calls between nodes")
	return Secret{key, &sync.Pool{New: func() any { return &sealer{hash: hmac.New(sha256.New, key)} }}}, nil
}

// String hides the secret.
func (Secret) String() string { return "cluster secret" }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return "cluster secret" }

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.key == nil }

// Fingerprint tells secrets apart that nodes of a topic were given, and nothing
// else about them. That of no secret is "".
func (s Secret) Fingerprint(topic string) string {
	if s.IsZero() {
		return ""
	}
	return hex.EncodeToString(mac(s.key, "fingerprint", topic)[:8])
}

// mac is the HMAC-SHA256 of the parts, each behind its length.
func mac(key []byte, parts ...string) []byte {
	s := sealer{hash: hmac.New(sha256.New, key)}
	return s.seal(parts...)
}

func (s *sealer) seal(parts ...string) []byte {
	s.text = s.text[:0]
	for _, p := range parts {
		s.text = append(append(strconv.AppendInt(s.text, int64(len(p)), 10), ':'), p...)
	}
	s.hash.Reset()
	s.hash.Write(s.text)
	return s.hash.Sum(nil)
}

// call is what is signed of a call between nodes.
type call struct {
	method, uri string
	client      string // address of the client whose request is forwarded, "" for none
	body        string // SHA-256 of the body in hexadecimal; of a client's request what is wrong with it, or ""
}

// headers of calls between nodes.
const (
	headerSigned = "Muster-Cluster"
	headerClient = "Muster-Client"
	headerBody   = "Muster-Body"
)

// stamp is what makes a call one of its own.
type stamp struct {
	ms     int64  // when it was signed, in Unix milliseconds
	to     string // the process it is meant for, "" as long as that is not known
	from   string // the process that makes it
	number uint64 // counts the calls of from
}

// sign is the value of headerSigned.
func (s Secret) sign(c call, t stamp) string {
	b := make([]byte, 0, 160)
	b = strconv.AppendInt(b, t.ms, 10)
	b = append(append(b, ' '), t.to...)
	b = append(append(b, ' '), t.from...)
	b = strconv.AppendUint(append(b, ' '), t.number, 10)
	mac := s.seal(c, string(b))
	return string(hex.AppendEncode(append(b, ' '), mac))
}

func (s Secret) seal(c call, stamp string) []byte {
	if s.IsZero() {
		return mac(nil, c.method, c.uri, stamp, c.client, c.body)
	}
	w := s.seals.Get().(*sealer)
	defer s.seals.Put(w)
	return w.seal(c.method, c.uri, stamp, c.client, c.body)
}

// verify reports whether a call was signed with the secret within a minute of now, and
// what its stamp is.
func (s Secret) verify(c call, signed string, now time.Time) (t stamp, ok bool) {
	end := strings.LastIndexByte(signed, ' ')
	if s.IsZero() || end < 0 {
		return t, false
	}
	have, err := hex.DecodeString(signed[end+1:])
	if err != nil || !hmac.Equal(have, s.seal(c, signed[:end])) {
		return t, false
	}
	fields := strings.Split(signed[:end], " ") // ours, so that they are as sign writes them
	if len(fields) != 4 {
		return t, false
	}
	t.to, t.from = fields[1], fields[2]
	var errs [2]error
	t.ms, errs[0] = strconv.ParseInt(fields[0], 10, 64)
	t.number, errs[1] = strconv.ParseUint(fields[3], 10, 64)
	off := now.Sub(time.UnixMilli(t.ms))
	return t, errs == [2]error{} && -maxSkew <= off && off <= maxSkew
}

func bodyHash(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
