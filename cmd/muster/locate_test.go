package main

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/keyapi"
	"github.com/musterhq/muster/api/openapi"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
)

// located tells requests of an account from those of none.
type located struct {
	subject api.Subject
	// good makes a request name the account, bad names that none could have.
	good []string
	bad  [][]string
}

// TestEveryRouteIsLocated: each call of the document is about the account that
// its credentials or its path name, or about none, or is signing in; and one
// whose credentials are missing or no account's is about none, so that any node
// refuses it.
func TestEveryRouteIsLocated(t *testing.T) {
	const account = 0x1234567890abcdef
	key, err := api.NewAPIKey(rand.Reader, account)
	ok(t, err)
	session := fmt.Sprintf("ses_%016x_%s", uint64(account), strings.Repeat("A", 43))
	token := (tracking.Key{}).Token(tracking.Claims{Kind: tracking.Click, Account: account})
	withKey := located{api.Account, []string{"Authorization", "Bearer " + key}, [][]string{nil, {"Authorization", "Bearer svc_live_x"}, {"Authorization", "Basic " + key}, {"X-App-Id", resolver.AppID(account)}}}
	withApp := located{api.Account, []string{"X-App-Id", resolver.AppID(account)}, [][]string{nil, {"X-App-Id", "app_1"}, {"Authorization", "Bearer " + key}}}
	withSession := located{api.Account, []string{"Authorization", "Bearer " + session}, [][]string{nil, {"Authorization", "Bearer ses_1"}, {"Cookie", "muster_session=x"}, {"Authorization", "Bearer " + key}}}
	anybody := located{subject: api.Nobody}
	byPath := located{subject: api.Account}
	person := "Bearer " + personToken("secret", resolver.AccountID(account), "ann", time.Hour)
	withPerson := located{api.Account, []string{"Authorization", person}, [][]string{nil, {"Authorization", "Bearer a.b.c"}, {"Authorization", person[:40]}, {"Authorization", "Bearer " + personToken("secret", "acc_1", "ann", time.Hour)}}}
	paths := map[string]located{ // longest first where one begins another
		"/api/v1/events": withApp, "/api/v1/events/batch": withApp, "/api/v1/events/import": withApp,
		"/healthz": anybody, "/readyz": anybody, "/metrics": anybody, "/openapi.json": anybody, "/reference": anybody,
		"/t/{token}": byPath, "/preferences/{token}": byPath, "/forms/{id}": byPath,
		"/in-app/inbox": withPerson, "/in-app/stream": withPerson, "/in-app/inbox/{id}/seen": withPerson, "/in-app/inbox/{id}/clicked": withPerson, "/in-app/inbox/{id}/dismissed": withPerson, "/in-app/muster-inapp.js": anybody,
	}
	subjects := map[api.Subject]int{}
	for _, g := range append(operations(new(keyapi.API), new(ingest.Handler), new(api.API)), openapi.Operations()) {
		for i := range g.Operations {
			method, path := g.Operations[i].Method, g.Surface.Prefix+g.Operations[i].Path
			want, known := paths[path]
			switch {
			case known:
			case method == "POST" && (path == api.Prefix+"/session" || path == api.Prefix+"/session/link"):
				want = located{subject: api.Everybody}
			case strings.HasPrefix(path, api.Prefix+"/"):
				want = withSession
			case strings.HasPrefix(path, "/api/v1/"), strings.HasPrefix(path, "/v1/"):
				want = withKey
			case strings.HasPrefix(path, "/inbound/"):
				want = byPath
			default:
				t.Errorf("%s %s: say here how it names its account, and have Locate find it", method, path)
				continue
			}
			if path == "/forms/{id}" {
				path = fmt.Sprintf("/forms/frm_%016x%s", uint64(account), strings.Repeat("0", 32))
			}
			concrete := strings.NewReplacer("{account}", resolver.AccountID(account), "{token}", token, "{provider}", "ses", "{", "", "}", "").Replace(path)
			subject, have := locate(method, concrete, want.good)
			if subject != want.subject || subject == api.Account && have != account || subject != api.Account && have != 0 {
				t.Errorf("%s %s: %v %x, want %v", method, path, subject, have, want.subject)
			}
			for _, bad := range want.bad {
				if subject, _ := locate(method, concrete, bad); subject != api.Nobody {
					t.Errorf("%s %s with %q: %v", method, path, bad, subject)
				}
			}
			subjects[subject]++
		}
	}
	if subjects[api.Account] < 125 || subjects[api.Everybody] != 2 || subjects[api.Nobody] < 5 {
		t.Errorf("%v", subjects)
	}
	for path, want := range map[string]api.Subject{
		"/t/" + token[:16]: api.Nobody, "/t/" + strings.Repeat("!", len(token)): api.Nobody, "/t/": api.Nobody,
		"/forms/frm_1": api.Nobody, "/forms/": api.Nobody, "/forms/frm_" + strings.Repeat("g", 48): api.Nobody,
		"/preferences/" + token[:16]: api.Nobody, "/preferences/": api.Nobody,
		"/inbound/acc_1/ses": api.Nobody, "/inbound/app_1234567890abcdef/ses": api.Nobody, "/inbound/": api.Nobody,
		"/nothing": api.Nobody, "/": api.Nobody, "/api/v10/x": api.Nobody,
	} {
		if have, _ := locate("GET", path, withKey.good); have != want {
			t.Errorf("%s: %v, want %v", path, have, want)
		}
	}
	var event fasthttp.RequestCtx
	event.Request.Header.SetMethod("POST")
	event.Request.SetRequestURI("/api/v1/events")
	event.Request.Header.Set("X-App-Id", resolver.AppID(account))
	if n := testing.AllocsPerRun(100, func() { api.Locate(&event) }); n > 0 {
		t.Errorf("locating an event allocates %v times", n)
	}
	if have, n := locate("GET", api.Prefix+"/users", []string{"Cookie", "muster_session=" + session}); have != api.Account || n != account {
		t.Errorf("a session in a cookie: %v %x", have, n)
	}
}

func locate(method, path string, headers []string) (api.Subject, uint64) {
	var rc fasthttp.RequestCtx
	rc.Request.Header.SetMethod(method)
	rc.Request.SetRequestURI(path)
	for i := 0; i < len(headers); i += 2 {
		rc.Request.Header.Set(headers[i], headers[i+1])
	}
	return api.Locate(&rc)
}
