package api

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/password"
	"github.com/musterhq/muster/resolver"
)

// A token is this prefix, the account's number in 16 hexadecimal digits, an
// underscore and 256 random bits.
const (
	tokenPrefix = "ses_"
	tokenRandom = 32
)

// tokenAccount reads the account out of a token.
func tokenAccount(token string) (account uint64, ok bool) {
	rest, ok := strings.CutPrefix(token, tokenPrefix)
	if !ok || len(rest) != 16+1+base64.RawURLEncoding.EncodedLen(tokenRandom) || rest[16] != '_' {
		return 0, false
	}
	account, err := strconv.ParseUint(rest[:16], 16, 64)
	return account, err == nil
}

const (
	maxEmailBytes    = 512
	maxPasswordBytes = 1024
)

// The results of signing in, for metrics.
const (
	signInOK = iota
	signInRefused
	signInPaused
	signInResults
)

var errWrongPassword = &problem{status: http.StatusUnauthorized, message: "email or password is wrong"}

// signIn answers POST /session.
func (a *API) signIn(c *call) (any, error) {
	var in struct {
		Email    *string `json:"email"`
		Password *string `json:"password"`
	}
	if err := a.decode(c, &in); err != nil {
		return nil, err
	}
	switch {
	case in.Email == nil || *in.Email == "":
		return nil, badField("email", "email is missing; send the e-mail you sign in with")
	case in.Password == nil || *in.Password == "":
		return nil, badField("password", "password is missing")
	case len(*in.Email) > maxEmailBytes:
		return nil, badField("email", "email is longer than %d bytes", maxEmailBytes)
	case len(*in.Password) > maxPasswordBytes:
		return nil, badField("password", "password is longer than %d bytes", maxPasswordBytes)
	}
	attempt, wait := a.guesses.begin(*in.Email, c.RemoteIP())
	if wait > 0 {
		a.signIns[signInPaused].Inc()
		wait = retryAfter(wait)
		return nil, &problem{status: http.StatusTooManyRequests, retryAfter: wait,
			message: fmt.Sprintf("too many failed attempts to sign in; try again in %d seconds", int(wait.Seconds()))}
	}
	account, user, err := a.userByEmail(c.ctx, *in.Email)
	if err != nil {
		attempt.undo()
		return nil, err
	}
	release, err := a.passwords.acquire(c.ctx)
	if err != nil {
		attempt.undo()
		return nil, err
	}
	hash := a.decoy
	if account != 0 {
		hash = user.PasswordHash
	}
	right, err := password.Verify(hash, *in.Password)
	release()
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", user.ID, err)
	}
	if !right || account == 0 {
		a.signIns[signInRefused].Inc()
		return nil, errWrongPassword
	}
	attempt.succeeded()
	a.signIns[signInOK].Inc()
	return a.createSession(c.ctx, account, user)
}

func (a *API) createSession(ctx context.Context, account uint64, user resolver.User) (any, error) {
	token, err := randomText(a.opts.Rand, fmt.Sprintf("%s%016x_", tokenPrefix, account), tokenRandom)
	if err != nil {
		return nil, err
	}
	expires := a.opts.Now().Add(a.opts.SessionTTL).UnixMilli()
	_, err = a.opts.Node.Command(ctx, account, resolver.CommandSessionCreate,
		resolver.SessionCreate{UserID: user.ID, TokenHash: hashText(token), ExpiresMs: expires})
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"token":       token,
		"expires_at":  timeText(expires),
		"account_id":  resolver.AccountID(account),
		"app_id":      resolver.AppID(account),
		"email":       user.Email,
		"permissions": user.Permissions,
	}, nil
}

// userByEmail looks through all accounts, whether or not it finds the user
// early. account is 0 when there is none.
func (a *API) userByEmail(ctx context.Context, email string) (account uint64, user resolver.User, err error) {
	accounts := a.opts.Node.Accounts()
	slices.Sort(accounts)
	for _, n := range accounts {
		err := a.opts.Node.Read(ctx, n, func(v *resolver.View) error {
			if u, ok := v.UserByEmail(email); ok && account == 0 {
				account, user = n, u
			}
			return nil
		})
		if err != nil {
			return 0, resolver.User{}, err
		}
	}
	return account, user, nil
}

// signOut answers DELETE /session.
func (a *API) signOut(c *call) (any, error) {
	_, err := a.opts.Node.Command(c.ctx, c.account, resolver.CommandSessionDelete, resolver.SessionDelete{TokenHash: c.tokenHash})
	return nil, err
}
