package handler

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
	SessionCookie = "muster_session"
	cookiePath    = "/console"
	HeaderCSRF    = "X-CSRF-Token"
)

// SessionToken is the token of a request's session. A header goes before a
// cookie: what a program sends on purpose wins.
func SessionToken(rc *fasthttp.RequestCtx) (token string, inCookie, ok bool) {
	if header := rc.Request.Header.Peek(fasthttp.HeaderAuthorization); len(header) > 0 {
		token, ok = Bearer(header)
		return token, false, ok
	}
	token = string(rc.Request.Header.Cookie(SessionCookie))
	return token, true, token != ""
}

// CSRFToken derives a session's token from the session's own, which cannot be
// found out from it. So nothing has to be stored.
func CSRFToken(token string) string {
	sum := sha256.Sum256([]byte("muster csrf\x00" + token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

var errCSRF = &Problem{Status: http.StatusForbidden,
	Message: "the header " + HeaderCSRF + " is missing or wrong; send the csrf_token that GET " + operation.SurfaceConsole.Prefix + "/session answers"}

// checkCSRF refuses a call that changes something without the token.
func (c *Call) checkCSRF() error {
	if c.IsGet() || c.IsHead() {
		return nil
	}
	if subtle.ConstantTimeCompare(c.Request.Header.Peek(HeaderCSRF), []byte(c.CSRF)) != 1 {
		return errCSRF
	}
	return nil
}

// SetSessionCookie keeps the token of a session in a cookie.
func SetSessionCookie(rc *fasthttp.RequestCtx, token string, ttl time.Duration) {
	k := NewCookie(rc, SessionCookie)
	defer fasthttp.ReleaseCookie(k)
	k.SetValue(token)
	k.SetMaxAge(int(ttl.Seconds()))
	rc.Response.Header.SetCookie(k)
}

// DropSessionCookie removes the cookie of a session.
func DropSessionCookie(rc *fasthttp.RequestCtx) {
	k := NewCookie(rc, SessionCookie)
	defer fasthttp.ReleaseCookie(k)
	k.SetExpire(fasthttp.CookieExpireDelete)
	rc.Response.Header.SetCookie(k)
}

// NewCookie returns a cookie of the web page that scripts cannot read. The caller
// releases it.
func NewCookie(rc *fasthttp.RequestCtx, name string) *fasthttp.Cookie {
	k := fasthttp.AcquireCookie()
	k.SetKey(name)
	k.SetPath(cookiePath)
	k.SetHTTPOnly(true)
	k.SetSameSite(fasthttp.CookieSameSiteStrictMode)
	// Behind a proxy that ends TLS the connection itself is plain.
	k.SetSecure(rc.IsTLS() || string(rc.Request.Header.Peek("X-Forwarded-Proto")) == "https")
	return k
}
