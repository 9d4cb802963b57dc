package keyapi

import (
	"crypto/sha256"
	"errors"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/resolver"
)

// errUnauthorized is the one answer to a key that does not hold, whatever is
// wrong with it.
var errUnauthorized = &keycall.Failure{Code: keycall.CodeUnauthorized,
	Message: `The API key is missing or not valid. Send it as "Authorization: Bearer <API_KEY>".`}

// authenticate finds the request's key. Whatever is wrong, the same steps are
// taken: hash, look up, compare.
func (a *API) authenticate(c *keycall.Call) error {
	key := bearer(c.Request.Header.Peek(fasthttp.HeaderAuthorization))
	account, ours := api.ParseAPIKey(key)
	if !ours {
		account = 0 // which no account has
	}
	access, ok, err := a.opts.Node.KeyAccess(account, sha256.Sum256([]byte(key)))
	if err != nil && (ours || !errors.Is(err, resolver.ErrNotOwner)) {
		return err // no account is at no node
	}
	if !ok || !ours {
		return errUnauthorized
	}
	c.Key = access
	a.uses.note(keyRef{access.Account, access.KeyID}, c.Now.UnixMilli())
	return nil
}

// bearer is the key in the header, "" where there is none.
func bearer(header []byte) string {
	scheme, key, _ := strings.Cut(string(header), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}
