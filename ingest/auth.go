package ingest

import (
	"crypto/sha256"
	"crypto/subtle"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/resolver"
)

const (
	headerAppID     = "X-App-Id"
	headerAppSecret = "X-App-Secret"
)

// Apps finds an account by its App ID. It is asked for every request, also with
// ids that no account has, and must not keep appID.
type Apps interface {
	App(appID []byte) (app resolver.App, ok bool)
}

// authenticate checks the credentials of a request. An unknown id, a wrong or
// missing secret and an inactive account take the same steps: hash, look up,
// compare, whatever came out before.
func (h *Handler) authenticate(header *fasthttp.RequestHeader) (account uint64, ok bool) {
	secret := header.Peek(headerAppSecret)
	hash := sha256.Sum256(secret)
	app, found := h.apps.App(header.Peek(headerAppID))
	equal := subtle.ConstantTimeCompare(hash[:], app.SecretHash[:])
	good := equal & bit(found) & bit(app.Active) & bit(len(secret) > 0)
	return app.Account, good == 1
}

// left tells whether a request names an account that is not answered for here.
func (h *Handler) left(header *fasthttp.RequestHeader) bool {
	if h.opts.Here == nil {
		return false
	}
	account, ok := resolver.ParseAppID(header.Peek(headerAppID))
	return ok && !h.opts.Here(account)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
