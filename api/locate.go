package api

import (
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/accounts"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/links"
	"github.com/musterhq/muster/api/internal/persontoken"
	"github.com/musterhq/muster/api/internal/providers"
	"github.com/musterhq/muster/api/internal/tokens"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/forms"
)

// Subject is the account that a request is about. In a cluster, it decides which
// node answers.
type Subject int

const (
	// Nobody is the subject of requests that any node answers alike: pages, documents,
	// and requests that name no possible account, which are refused.
	Nobody Subject = iota
	// Account is the subject of requests that name an account; its owner answers.
	Account
	// Everybody is the subject of signing in: the account of the e-mail is not known,
	// and failed attempts are counted in one place, the owner of the directory.
	Everybody
)

func (s Subject) String() string { return [...]string{"nobody", "account", "everybody"}[s] }

// Locate returns the subject of a request, by its path and headers alone. The owner
// checks that the account exists and lets the caller in.
func Locate(rc *fasthttp.RequestCtx) (subject Subject, account uint64) {
	account, ok := uint64(0), false
	switch path := rc.Path(); { // not copied: events come often
	case string(path) == "/api/v1/events", string(path) == "/api/v1/events/batch", string(path) == "/api/v1/events/import":
		account, ok = resolver.ParseAppID(rc.Request.Header.Peek("X-App-Id"))
	case below(path, "/api/v1"), below(path, "/v1"):
		key, isBearer := handler.Bearer(rc.Request.Header.Peek(fasthttp.HeaderAuthorization))
		if account, ok = accounts.ParseAPIKey(key); !isBearer {
			ok = false
		}
	case (string(path) == Prefix+"/session" || string(path) == Prefix+"/session/link") && rc.IsPost():
		// A sign-in link is of the first company, whose account the owner of the
		// directory has.
		return Everybody, 0
	case below(path, Prefix):
		if token, _, has := handler.SessionToken(rc); has {
			account, ok = tokens.Account(token, tokens.Session)
		}
	case begins(path, tracking.Path):
		account, ok = tracking.Account(string(path[len(tracking.Path):]))
	case begins(path, tracking.PreferencesPath):
		account, ok = tracking.Account(string(path[len(tracking.PreferencesPath):]))
	case begins(path, tracking.FormsPath):
		account, ok = forms.AccountOf(string(path[len(tracking.FormsPath):]))
	case begins(path, links.InAppPath):
		if token, isBearer := handler.Bearer(rc.Request.Header.Peek(fasthttp.HeaderAuthorization)); isBearer {
			account, ok = persontoken.Account(token)
		}
	case begins(path, providers.ReportPath):
		id, _, _ := strings.Cut(string(path[len(providers.ReportPath):]), "/")
		account, ok = providers.ParseAccountID(id)
	}
	if !ok {
		return Nobody, 0
	}
	return Account, account
}

func begins(path []byte, prefix string) bool {
	return len(path) >= len(prefix) && string(path[:len(prefix)]) == prefix
}

func below(path []byte, prefix string) bool {
	return begins(path, prefix) && (len(path) == len(prefix) || path[len(prefix)] == '/')
}
