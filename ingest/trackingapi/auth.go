package trackingapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/bit"
	"github.com/musterhq/muster/internal/jsonscan"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/sources"
)

// headerKey is the write key in the header Authorization, as the name of Basic or as a
// bearer token; "" where there is none.
func headerKey(header *fasthttp.RequestHeader) string {
	scheme, rest, _ := bytes.Cut(header.Peek(fasthttp.HeaderAuthorization), []byte{' '})
	rest = bytes.TrimSpace(rest)
	switch {
	case bytes.EqualFold(scheme, []byte("bearer")):
		return string(rest)
	case bytes.EqualFold(scheme, []byte("basic")):
		text, err := base64.StdEncoding.AppendDecode(nil, rest)
		if err != nil {
			if text, err = base64.RawStdEncoding.AppendDecode(nil, rest); err != nil {
				return ""
			}
		}
		name, _, _ := bytes.Cut(text, []byte{':'})
		return string(name)
	}
	return ""
}

// authenticate finds the source of a write key.
func (h *Handler) authenticate(key string) (*sources.Access, *failure) {
	account, ours := ParseKey(key)
	if !ours {
		account = 0 // which no account has
	}
	hash := sha256.Sum256([]byte(key))
	var access sources.Access
	good := 0
	for _, exactly := range []bool{false, true} {
		if h.opts.Current != nil && ours {
			if err := h.opts.Current(context.Background(), account, exactly); err != nil && !errors.Is(err, resolver.ErrNoAccount) {
				return nil, h.submitFailure(err)
			}
		}
		found := false
		access, found = h.opts.Node.WriteKey(account, hash)
		good = subtle.ConstantTimeCompare(access.KeyHash[:], hash[:]) & bit.Of(found) & bit.Of(ours) & bit.Of(access.AccountAlive)
		if good == 1 || h.opts.Current == nil {
			break
		}
	}
	switch {
	case good != 1:
		return nil, errInvalidKey
	case !access.Enabled:
		return &access, errDisabled
	}
	return &access, nil
}

// Locate returns the account that a request of the tracking API is about. Some SDKs have the
// write key in the body alone: then it is read, and a handler that comes later finds it read
// already. ok is false where no account is named.
func Locate(ctx *fasthttp.RequestCtx, memory *ingest.Memory, limit int) (account uint64, ok bool) {
	if key, is := settingsKey(string(ctx.Path())); is {
		return ParseKey(key)
	}
	if key := headerKey(&ctx.Request.Header); key != "" {
		return ParseKey(key)
	}
	if !ctx.IsPost() {
		return 0, false
	}
	streamed := ctx.RequestBodyStream() != nil
	packed, err := ingest.ReceiveBody(ctx, memory, limit)
	if err != nil {
		if f := ingest.FaultOf(err); !ingest.FailBody(ctx, f) {
			// There was no memory: the handler that answers finds none either.
			ingest.FailBody(ctx, ingest.BodyBroken)
		}
		return 0, false
	}
	if streamed {
		ctx.Request.SetBodyRaw(packed)
	}
	body := packed
	if isGzip(packed) {
		var bad *failure
		if body, bad = unpack(ctx, memory, packed, limit); bad != nil {
			return 0, false
		}
	}
	var e envelope
	s := jsonscan.New(scanDepth, scanBytes)
	if _, reason := readEnvelope(s, body, &e); reason != "" {
		return 0, false
	}
	return ParseKey(keyIn(s, &e))
}

// scanDepth and scanBytes bound the values that are looked at for a key.
const (
	scanDepth = 32
	scanBytes = 64 << 10
)

// key is the write key that a message names, "" for none.
func (m *message) key() (key string, given bool) {
	for _, v := range [][]byte{m.writeKey, m.apiKey, m.token} {
		if text, ok := unquote(v); ok && len(text) > 0 {
			return string(text), true
		}
	}
	return "", false
}

// keyIn is the write key in a body: that of the batch, else of its first event, "" for none.
func keyIn(s *jsonscan.Scanner, e *envelope) string {
	if key, given := e.key(); given {
		return key
	}
	if text, ok := unquote(member(e.properties, "token")); ok {
		return string(text) // PostHog's
	}
	if e.events >= 0 {
		return firstKey(s, e.events)
	}
	return ""
}

// firstKey is the write key of the first event of an array at i.
func firstKey(s *jsonscan.Scanner, i int) string {
	if i = s.Space(i + 1); s.Byte(i) != '{' {
		return ""
	}
	var m message
	readMessage(s, i, &m)
	key, _ := m.key()
	s.ClearFault()
	if key == "" {
		// PostHog's array of events has it among the properties.
		text, _ := unquote(member(m.properties, "token"))
		key = string(text)
	}
	return key
}
