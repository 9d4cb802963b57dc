package accounts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/tokens"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/node"
)

// A sign-in link signs a person in once, without a password. The state keeps it as a
// session under a hash that no session's token has: so it is stored as a hash alone,
// survives a restart, ends with a new password, and is no token for other calls.
const (
	linkPrefix = "lnk_"
	// linkHash stands before a link's token where it is hashed.
	linkHash = "muster sign-in link\x00"
	// SignInLinkTTL is how long a link can be used.
	SignInLinkTTL = time.Hour
)

// SignInLink makes a link that signs the first user of these credentials in, once,
// within [SignInLinkTTL]. The company exists, and node owns its account.
func (c *Credentials) SignInLink(ctx context.Context, node *node.Node, rand io.Reader, now time.Time) (string, error) {
	account, err := c.Account()
	if err != nil {
		return "", fmt.Errorf("credentials: %w", err)
	}
	var user access.User
	err = node.Read(ctx, account, func(v *resolver.View) error {
		u, ok := v.Access().UserByEmail(c.ConsoleEmail)
		if !ok {
			return errors.New("the account has no user with the credentials' e-mail")
		}
		user = u
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("sign-in link: %w", err)
	}
	token, err := tokens.New(rand, linkPrefix, account)
	if err != nil {
		return "", fmt.Errorf("sign-in link: %w", err)
	}
	_, err = node.Command(ctx, account, access.CommandSessionCreate,
		access.SessionCreate{UserID: user.ID, TokenHash: tokens.Hash(linkHash + token), ExpiresMs: now.Add(SignInLinkTTL).UnixMilli()})
	if err != nil {
		return "", fmt.Errorf("sign-in link: %w", err)
	}
	// Behind #, which browsers do not send: no log of a proxy has it.
	return c.ConsoleURL + "#sign-in=" + token, nil
}

func (a *API) signInLinkRoute(data *shape.Schema) handler.Route {
	return handler.Route{Handle: a.useSignInLink, Operation: operation.Operation{Method: "POST", Path: "/session/link", Permission: operation.Anybody, ID: "useSignInLink", Summary: "Sign in by a link",
		About: "With the token of the link that the first start prints. It works once, within an hour.",
		Body: shape.Object(
			shape.Req("token", shape.Text("lnk_3f9a7c2e5d1b8046_Zm9v…", "What follows `#sign-in=` in the link.").Bytes(1, 128)),
			shape.Opt("cookie", shape.Boolean(false, "Keep the tokens in cookies that scripts cannot read, instead of answering them.").Default(false)),
		),
		Data: data}}
}

// The one answer to a link that does not work, whatever the reason.
var errLinkUsed = &handler.Problem{Status: http.StatusUnauthorized, Message: "this sign-in link was used or has expired; sign in with e-mail and password"}

// useSignInLink answers POST /session/link.
func (a *API) useSignInLink(c *handler.Call) (any, error) {
	var in struct {
		Token  string `json:"token"`
		Cookie bool   `json:"cookie"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.Token == "" {
		return nil, handler.BadField("token", "token is missing; send what follows #sign-in= in the link")
	}
	account, ok := tokens.Account(in.Token, linkPrefix)
	if !ok {
		return nil, errLinkUsed
	}
	hash := tokens.Hash(linkHash + in.Token)
	p := &candidate{Account: account}
	err := a.opts.Node.Read(c.Ctx, account, func(v *resolver.View) error {
		s, ok := v.Access().Session(hash)
		if !ok || s.ExpiresMs <= a.opts.Now().UnixMilli() || !v.Active() {
			return errLinkUsed
		}
		if p.User, ok = v.Access().User(s.UserID); !ok {
			return errLinkUsed
		}
		return nil
	})
	if errors.Is(err, resolver.ErrNoAccount) {
		return nil, errLinkUsed
	}
	if err != nil {
		return nil, err
	}
	// The session takes the link's place: of two uses at once one finds it gone.
	answer, err := a.createSession(c, p, access.SessionCreate{Link: hash}, in.Cookie)
	var refusal *resolver.Refusal
	if errors.As(err, &refusal) {
		return nil, errLinkUsed
	}
	if err == nil {
		a.signIns[signInOK].Inc()
	}
	return answer, err
}
