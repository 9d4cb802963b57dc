package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/operation"
)

// The web page keeps its session in a cookie that scripts cannot read. Other
// sites cannot make a browser send it (SameSite), and as a second guard calls
// that change something need a token that they cannot know.
const (
	sessionCookie = "muster_session"
	cookiePath    = "/console"
	headerCSRF    = "X-CSRF-Token"
)

// sessionToken is the token of a request's session. A header goes before a
// cookie: what a program sends on purpose wins.
func sessionToken(rc *fasthttp.RequestCtx) (token string, inCookie, ok bool) {
	if header := rc.Request.Header.Peek(fasthttp.HeaderAuthorization); len(header) > 0 {
		token, ok = bearer(header)
		return token, false, ok
	}
	token = string(rc.Request.Header.Cookie(sessionCookie))
	return token, true, token != ""
}

// csrfToken derives a session's token from the session's own, which cannot be
// found out from it. So nothing has to be stored.
func csrfToken(token string) string {
	sum := sha256.Sum256([]byte("muster csrf\x00" + token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

var errCSRF = &problem{status: http.StatusForbidden,
	message: "the header " + headerCSRF + " is missing or wrong; send the csrf_token that GET " + operation.SurfaceConsole.Prefix + "/session answers"}

// checkCSRF refuses a call that changes something without the token.
func (c *call) checkCSRF() error {
	if c.IsGet() || c.IsHead() {
		return nil
	}
	if subtle.ConstantTimeCompare(c.Request.Header.Peek(headerCSRF), []byte(c.csrf)) != 1 {
		return errCSRF
	}
	return nil
}

func setSessionCookie(rc *fasthttp.RequestCtx, token string, ttl time.Duration) {
	k := newCookie(rc, sessionCookie)
	defer fasthttp.ReleaseCookie(k)
	k.SetValue(token)
	k.SetMaxAge(int(ttl.Seconds()))
	rc.Response.Header.SetCookie(k)
}

func dropSessionCookie(rc *fasthttp.RequestCtx) {
	k := newCookie(rc, sessionCookie)
	defer fasthttp.ReleaseCookie(k)
	k.SetExpire(fasthttp.CookieExpireDelete)
	rc.Response.Header.SetCookie(k)
}

func newCookie(rc *fasthttp.RequestCtx, name string) *fasthttp.Cookie {
	k := fasthttp.AcquireCookie()
	k.SetKey(name)
	k.SetPath(cookiePath)
	k.SetHTTPOnly(true)
	k.SetSameSite(fasthttp.CookieSameSiteStrictMode)
	// Behind a proxy that ends TLS the connection itself is plain.
	k.SetSecure(rc.IsTLS() || string(rc.Request.Header.Peek("X-Forwarded-Proto")) == "https")
	return k
}
