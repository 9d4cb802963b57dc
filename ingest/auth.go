package ingest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/internal/bit"
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
func (h *Handler) authenticate(header *fasthttp.RequestHeader) (app resolver.App, ok bool) {
	secret := header.Peek(headerAppSecret)
	hash := sha256.Sum256(secret)
	app, found := h.apps.App(header.Peek(headerAppID))
	equal := subtle.ConstantTimeCompare(hash[:], app.SecretHash[:])
	good := equal & bit.Of(found) & bit.Of(app.Active) & bit.Of(len(secret) > 0)
	return app, good == 1
}

// current checks the credentials of a request against a state that is not out of
// date: a node that was frozen must not accept credentials that another has
// revoked, nor refuse those that another has issued. A refusal is always based on
// the present state.
func (h *Handler) current(header *fasthttp.RequestHeader) (app resolver.App, ok bool, err error) {
	named, is := resolver.ParseAppID(header.Peek(headerAppID))
	if h.opts.Current == nil || !is {
		app, ok = h.authenticate(header)
		return app, ok, nil
	}
	for _, exactly := range []bool{false, true} {
		if err := h.opts.Current(context.Background(), named, exactly); err != nil {
			return app, false, err
		}
		if app, ok = h.authenticate(header); ok {
			break
		}
	}
	return app, ok, nil
}

// hasAPIKey reports whether a request carries an API key where the App ID or the App
// Secret should be, or has no App ID and a bearer token. It depends on the request alone
// and reveals nothing of any account.
func hasAPIKey(header *fasthttp.RequestHeader) bool {
	for _, name := range []string{headerAppID, headerAppSecret} {
		if bytes.HasPrefix(header.Peek(name), []byte(resolver.APIKeyPrefix)) {
			return true
		}
	}
	const bearer = "Bearer "
	auth := header.Peek(fasthttp.HeaderAuthorization)
	return len(header.Peek(headerAppID)) == 0 && len(auth) > len(bearer) && equalFold(auth[:len(bearer)], "bearer ")
}
