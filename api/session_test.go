package api

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/tokens"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/password"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
)

func TestSession(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	var d struct {
		Token     string
		ExpiresAt string   `json:"expires_at"`
		AccountID string   `json:"account_id"`
		AppID     string   `json:"app_id"`
		Email     string   `json:"email"`
		Perms     []string `json:"permissions"`
	}
	// The e-mail is compared trimmed and without regard to case.
	s.want("POST", "/session", fmt.Sprintf(`{"email":"  %s ","password":%q}`, strings.ToUpper(s.creds.ConsoleEmail), s.creds.ConsolePassword), &d)
	if d.ExpiresAt != "2025-03-15T12:00:00.000Z" || d.AccountID != s.creds.AccountID || d.AppID != s.creds.AppID || d.Email != s.creds.ConsoleEmail ||
		!slices.Contains(d.Perms, "segments:write") || len(d.Token) < 60 {
		t.Errorf("have %+v", d)
	}
	first := s.token
	s.token = d.Token
	s.want("GET", "/settings", "", nil)

	s.want("DELETE", "/session", "", nil)
	if status, _ := s.get("/settings"); status != 401 {
		t.Errorf("a session that was ended is answered %d", status)
	}
	s.token = first
	s.want("GET", "/settings", "", nil)
	s.clock.Advance(14*24*time.Hour - time.Millisecond)
	s.want("GET", "/settings", "", nil)
	s.clock.Advance(time.Millisecond)
	if status, _ := s.get("/settings"); status != 401 {
		t.Errorf("a session past its end is answered %d", status)
	}
}

// TestSignInRefusals: what is wrong does not show, whether it is the e-mail or
// the password.
func TestSignInRefusals(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	s.token = ""
	var messages []string
	for _, body := range []string{
		fmt.Sprintf(`{"email":%q,"password":"wrong"}`, s.creds.ConsoleEmail),
		fmt.Sprintf(`{"email":"nobody@muster.local","password":%q}`, s.creds.ConsolePassword),
	} {
		status, a := s.do("POST", "/session", body)
		if status != 401 || a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %d", body, status)
		}
		messages = append(messages, a.Message)
	}
	if messages[0] != messages[1] {
		t.Errorf("the answers differ: %q", messages)
	}
}

// TestSignInConstantWork: an unknown e-mail costs the same password check. It runs alone, since it
// changes the cost of passwords for all.
func TestSignInConstantWork(t *testing.T) {
	slow := password.Params{MemoryKiB: 8 << 10, Iterations: 2, Lanes: 1}
	was := password.Default
	password.Default = slow
	defer func() { password.Default = was }()
	s := newService(t, &memHistory{}, nil)
	s.token = ""
	took := func(email string) time.Duration {
		best := time.Hour
		for range 5 {
			begun := time.Now()
			if status, _ := s.do("POST", "/session", fmt.Sprintf(`{"email":%q,"password":"wrong"}`, email)); status != 401 {
				t.Fatalf("%s: %d", email, status)
			}
			best = min(best, time.Since(begun))
		}
		return best
	}
	known, unknown := took(s.creds.ConsoleEmail), took("nobody@muster.local")
	// Without the computation an answer takes less than a hundredth; how long it
	// takes with it depends on what else the machine does.
	if unknown < known/20 || known < unknown/20 {
		t.Errorf("a known e-mail takes %s, an unknown one %s", known, unknown)
	}
}

// hookedRand calls a function before the next bytes are drawn, once.
type hookedRand struct{ next atomic.Pointer[func()] }

func (r *hookedRand) Read(b []byte) (int, error) {
	if fn := r.next.Swap(nil); fn != nil {
		(*fn)()
	}
	return rand.Read(b)
}

// TestSignInWhileThePasswordChanges: a sign-in by password or by link gets no session if the
// password changes before the session is stored. The answer is that for a wrong password or
// a used link.
func TestSignInWhileThePasswordChanges(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/session": "email or password is wrong", "/session/link": "used or has expired"} {
		drawn := &hookedRand{}
		s := newService(t, &memHistory{}, func(o *Options) { o.Rand = drawn })
		body := fmt.Sprintf(`{"email":%q,"password":%q}`, s.creds.ConsoleEmail, s.creds.ConsolePassword)
		if path == "/session/link" {
			body = fmt.Sprintf(`{"token":%q}`, s.link())
		}
		var me struct {
			UserID string `json:"user_id"`
		}
		s.want("GET", "/session", "", &me)
		account, _ := resolver.ParseAppID([]byte(s.creds.AppID))
		changed := false
		change := func() { // the session's token is drawn, so that all checks are behind it
			_, err := s.node.Command(context.Background(), account, access.CommandPasswordSet, access.PasswordSet{ID: me.UserID, PasswordHash: "the next"})
			changed = err == nil
		}
		drawn.next.Store(&change)
		s.token = ""
		status, a := s.do("POST", path, body)
		if !changed || status != 401 || !strings.Contains(a.Message, want) {
			t.Errorf("%s: the password changed %t, answered %d %s", path, changed, status, a.Message)
		}
	}
}

// TestPasswordIsSetWhileItIsChanged: a change of password does not replace the password that
// was set after the current one was verified, such as by an administrator. The answer is
// that for a wrong current password.
func TestPasswordIsSetWhileItIsChanged(t *testing.T) {
	t.Parallel()
	drawn := &hookedRand{}
	s := newService(t, &memHistory{}, func(o *Options) { o.Rand = drawn })
	var me struct {
		UserID string `json:"user_id"`
	}
	s.want("GET", "/session", "", &me)
	account, _ := resolver.ParseAppID([]byte(s.creds.AppID))
	const meanwhile = "set meanwhile"
	set := func() { // the new password is hashed, so that the current one was verified
		_, err := s.node.Command(context.Background(), account, access.CommandPasswordSet, access.PasswordSet{ID: me.UserID, PasswordHash: meanwhile})
		if err != nil {
			t.Error(err)
		}
	}
	drawn.next.Store(&set)
	status, a := s.do("PUT", "/password", fmt.Sprintf(`{"current_password":%q,"password":"another good password"}`, s.creds.ConsolePassword))
	if status != 400 || a.Message != "current_password is wrong" || a.field() != "current_password" {
		t.Errorf("answered %d %+v", status, a)
	}
	err := s.node.Read(t.Context(), account, func(v *resolver.View) error {
		if u, _ := v.Access().User(me.UserID); u.PasswordHash != meanwhile {
			t.Errorf("the password is %q", u.PasswordHash)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSignInPauses(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	s.token = ""
	right := fmt.Sprintf(`{"email":%q,"password":%q}`, s.creds.ConsoleEmail, s.creds.ConsolePassword)
	wrong := fmt.Sprintf(`{"email":%q,"password":"wrong"}`, s.creds.ConsoleEmail)
	for range 6 {
		if status, _ := s.do("POST", "/session", wrong); status != 401 {
			t.Fatalf("an attempt is answered %d", status)
		}
	}
	status, a := s.do("POST", "/session", right)
	if after, _ := strconv.Atoi(a.header.Get("Retry-After")); status != 429 || after != 1 {
		t.Errorf("the seventh attempt is answered %d, Retry-After %q", status, a.header.Get("Retry-After"))
	}
	s.clock.Advance(time.Second)
	s.want("POST", "/session", right, nil)
	s.want("POST", "/session", right, nil)
}

// TestPasswordChecksBounded (Q1): no more than so many computations at once, and
// no more than so many that wait.
func TestPasswordChecksBounded(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, func(o *Options) { o.SignIn.Checks, o.SignIn.Queue = 1, 1 })
	release, err := s.api.accounts.UnauthenticatedPasswords.Acquire(t.Context())
	ok(t, err)
	defer release()
	defer enqueue(t, s.api.accounts.UnauthenticatedPasswords)()
	status, a := s.do("POST", "/session", `{"email":"a@x.io","password":"x"}`)
	if status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("with a full queue: %d %s", status, a.Message)
	}
}

// TestPasswordQueueEnds (Q1): a sign-in that finds no free computation in time is
// refused, and is no failed attempt.
func TestPasswordQueueEnds(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, func(o *Options) { o.SignIn.Checks, o.ReadTimeout = 1, time.Second })
	release, err := s.api.accounts.UnauthenticatedPasswords.Acquire(t.Context())
	ok(t, err)
	defer release()
	for range 3 { // more together than may fail without a pause: these are not judged
		var waiting sync.WaitGroup
		for range 4 {
			waiting.Go(func() {
				if status, a := s.do("POST", "/session", `{"email":"a@x.io","password":"x"}`); status != 503 {
					t.Errorf("a sign-in that waited in vain is answered %d %s", status, a.Message)
				}
			})
		}
		waiting.Wait()
	}
}

// enqueue has a caller wait for a slot until leave is called.
func enqueue(t testing.TB, slots *handler.Semaphore) (leave func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if release, err := slots.Acquire(ctx); err == nil {
			release()
		}
	}()
	eventually.Holds(t, "a caller waits", func() bool { return slots.Queued() == 1 })
	return func() {
		cancel()
		<-done
	}
}

func TestBearer(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	token := s.token
	s.token = ""
	other := []byte(token)
	other[5] ^= 1 // another account's number
	changed := []byte(token)
	changed[len(changed)-2] ^= 1
	for name, header := range map[string]string{
		"none": "", "no scheme": token, "basic": "Basic " + token, "no token": "Bearer ", "nonsense": "Bearer x",
		"other account": "Bearer " + string(other), "changed": "Bearer " + string(changed), "longer": "Bearer " + token + "A",
		"hash instead of token": "Bearer " + tokens.Hash(token),
	} {
		var headers []string
		if header != "" {
			headers = []string{"Authorization", header}
		}
		if status, a := s.do("GET", "/settings", "", headers...); status != 401 || a.Message != handler.ErrNotSignedIn.Message {
			t.Errorf("%s: %d %s", name, status, a.Message)
		}
	}
	if status, _ := s.do("GET", "/settings", "", "Authorization", "bearer  "+token); status != 200 {
		t.Errorf("the scheme in lower case is answered %d", status)
	}
}

// TestPermissions: a call needs its permission.
func TestPermissions(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	for need, want := range map[string]int{"segments:write": 200, "nothing:read": 403, operation.SignedIn: 200} {
		called := false
		r := NewRouter()
		r.GET("/console/x", s.api.chain.Serve(&handler.Route{Handle: func(*handler.Call) (any, error) { called = true; return nil, nil }, Operation: operation.Operation{Method: "GET", Path: "/x", Permission: need}}))
		s.ops.Open(r.Handler, s.node.Err)
		status, a := s.get("/console/x")
		if status != want || called != (want == 200) {
			t.Errorf("%s: %d %s, called %v", need, status, a.Message, called)
		}
	}
}

// TestPanic: a fault of ours costs one answer, not the process.
func TestPanic(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	r := NewRouter()
	r.GET("/console/x", s.api.chain.Serve(&handler.Route{Handle: func(*handler.Call) (any, error) { panic("on purpose") }, Operation: operation.Operation{Method: "GET", Path: "/x", Permission: operation.SignedIn}}))
	s.ops.Open(r.Handler, s.node.Err)
	if status, a := s.get("/console/x"); status != 500 || a.Message != "the server failed to answer; its log has the reason" {
		t.Errorf("%d %s", status, a.Message)
	}
}
