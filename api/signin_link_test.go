package api

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/api/internal/accounts"
)

// link makes a sign-in link of the first user and returns its token.
func (s *service) link() string {
	s.t.Helper()
	link, err := s.creds.SignInLink(s.t.Context(), s.node, rand.Reader, s.clock.Now())
	ok(s.t, err)
	page, token, found := strings.Cut(link, "#sign-in=")
	if !found || page != "http://muster.test/console" {
		s.t.Fatalf("the link is %s", link)
	}
	return token
}

func TestASignInLinkWorksOnce(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	token := s.link()
	// It is no token of a session.
	if status, _ := s.do("GET", "/session", "", "Authorization", "Bearer "+token); status != 401 {
		t.Errorf("a call with the link's token: %d", status)
	}
	var d struct {
		Token string
		Email string
	}
	s.want("POST", "/session/link", fmt.Sprintf(`{"token":%q}`, token), &d)
	if d.Email != s.creds.ConsoleEmail {
		t.Errorf("signed in as %q", d.Email)
	}
	var mine struct{ Email, Company string }
	status, a := s.do("GET", "/session", "", "Authorization", "Bearer "+d.Token)
	a.into(t, &mine)
	if status != 200 || mine.Email != s.creds.ConsoleEmail || mine.Company != "My company" {
		t.Errorf("the new session: %d %s", status, a.Data)
	}
	if status, a := s.do("POST", "/session/link", fmt.Sprintf(`{"token":%q}`, token)); status != 401 || !strings.Contains(a.Message, "used or has expired") {
		t.Errorf("the second use: %d %s", status, a.Message)
	}
}

func TestASignInLinkEnds(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	use := func(token string) int {
		status, _ := s.do("POST", "/session/link", fmt.Sprintf(`{"token":%q,"cookie":true}`, token))
		return status
	}
	for _, token := range []string{"lnk_", "ses_" + strings.TrimPrefix(s.link(), "lnk_"), s.link()[:60], s.link() + "x", strings.Replace(s.link(), "lnk_", "lnk_f", 1), "lnk_00000000000000ff_" + strings.Repeat("A", 43)} {
		if status := use(token); status != 401 {
			t.Errorf("%s: %d", token, status)
		}
	}
	late := s.link()
	s.clock.Advance(accounts.SignInLinkTTL)
	if status := use(late); status != 401 {
		t.Errorf("after an hour: %d", status)
	}
	s.token = s.signIn()
	before := s.link()
	s.want("PUT", "/password", fmt.Sprintf(`{"current_password":%q,"password":"another good password"}`, s.creds.ConsolePassword), nil)
	if status := use(before); status != 401 {
		t.Errorf("after a new password: %d", status)
	}
	s.clock.Advance(time.Second)
	if status := use(s.link()); status != 200 {
		t.Errorf("a new link: %d", status)
	}
}

// TestOneOfManyUsesOfALink: of uses at the same time one is let in.
func TestOneOfManyUsesOfALink(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	body := fmt.Sprintf(`{"token":%q}`, s.link())
	var in sync.Map
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			if status, _ := s.do("POST", "/session/link", body); status == 200 {
				in.Store(i, true)
			}
		})
	}
	all.Wait()
	n := 0
	in.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d were let in", n)
	}
}
