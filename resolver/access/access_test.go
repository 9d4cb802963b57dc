package access

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver/internal/featuretest"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

type world = featuretest.World[*State]

var founderPermissions = []string{"users:write", "api_keys:write", "segments:read", "segments:write"}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := featuretest.New(t, Commands, func(*state.Store) *State { return New() })
	w.State.Found(w.Tx(), User{ID: "usr_1", Email: "a@b.c", Permissions: founderPermissions, Admin: true},
		APIKey{ID: "key_1", Hash: featuretest.TextHash("key 1"), Permissions: []string{"segments:read", "segments:write"}})
	return w
}

func newUser(actor, email string, permissions ...string) UserSave {
	hash := "hash of " + email
	return UserSave{ActorID: actor, Email: &email, PasswordHash: &hash, Permissions: &permissions}
}

// TestUserRules: users grant only permissions that they hold, and a user is always
// left who can manage users and the system.
func TestUserRules(t *testing.T) {
	r := newWorld(t)
	yes, no := true, false
	boss := "usr_1"
	lead := r.Must(CommandUserCreate, newUser(boss, "Lead@x.io", "users:write", "segments:read"))
	reader := r.Must(CommandUserCreate, newUser(lead, "reader@x.io", "segments:read"))

	r.Refused("conflict", CommandUserCreate, newUser(boss, " lead@X.IO "))
	r.Refused("invalid", CommandUserCreate, newUser(boss, "  "))
	r.Refused("invalid", CommandUserCreate, newUser(boss, strings.Repeat("x", MaxUserEmailBytes+1)))
	r.Refused("forbidden", CommandUserCreate, newUser(lead, "a@x.io", "segments:write"))
	r.Refused("forbidden", CommandUserCreate, newUser(boss, "a@x.io", "no_such:thing"))
	r.Refused("forbidden", CommandUserCreate, newUser(reader, "a@x.io"))
	r.Refused("forbidden", CommandUserCreate, newUser("usr_nobody", "a@x.io"))

	up := []string{"segments:read", "segments:write"}
	r.Refused("forbidden", CommandUserUpdate, UserSave{ActorID: lead, ID: reader, Permissions: &up})
	r.Refused("forbidden", CommandUserUpdate, UserSave{ActorID: lead, ID: lead, Permissions: &up})
	r.Refused("forbidden", CommandUserUpdate, UserSave{ActorID: lead, ID: reader, Admin: &yes})
	text := "x"
	r.Refused("forbidden", CommandUserUpdate, UserSave{ActorID: lead, ID: boss, PasswordHash: &text})
	r.Refused("forbidden", CommandUserUpdate, UserSave{ActorID: boss, ID: boss, PasswordHash: &text})
	r.Refused("forbidden", CommandUserDelete, UserDelete{ActorID: lead, ID: boss})
	r.Refused("not_found", CommandUserUpdate, UserSave{ActorID: boss, ID: "usr_nobody", Name: &text})
	r.Refused("not_found", CommandUserDelete, UserDelete{ActorID: boss, ID: "usr_nobody"})
	r.Refused("conflict", CommandUserUpdate, UserSave{ActorID: boss, ID: boss, Admin: &no})

	// Once another is administrator, the first may go; then no other may.
	up = founderPermissions
	r.Must(CommandUserUpdate, UserSave{ActorID: boss, ID: lead, Permissions: &up, Admin: &yes, Name: &text})
	r.Must(CommandUserDelete, UserDelete{ActorID: lead, ID: boss})
	r.Refused("conflict", CommandUserDelete, UserDelete{ActorID: lead, ID: lead})
	few := []string{"segments:read"}
	r.Refused("conflict", CommandUserUpdate, UserSave{ActorID: lead, ID: lead, Permissions: &few})
	r.Must(CommandUserDelete, UserDelete{ActorID: lead, ID: reader})
	// The e-mail of a deleted user is free again.
	r.Must(CommandUserCreate, newUser(lead, "a@b.c"))
}

// TestPasswordsEndSessions: a new password ends all sessions but that which
// set it; one set by another user, and removal, end all.
func TestPasswordsEndSessions(t *testing.T) {
	r := newWorld(t)
	other := r.Must(CommandUserCreate, newUser("usr_1", "b@x.io"))
	sessions := func() (out []string) {
		for token := range r.State.sessions.All() {
			out = append(out, token)
		}
		slices.Sort(out)
		return out
	}
	for i, u := range []string{"usr_1", "usr_1", other, other} {
		r.Must(CommandSessionCreate, SessionCreate{UserID: u, TokenHash: fmt.Sprint(i), ExpiresMs: r.Now + 1000})
	}
	r.Must(CommandPasswordSet, PasswordSet{ID: "usr_1", PasswordHash: "new", KeepSession: "1"})
	if have := sessions(); !slices.Equal(have, []string{"1", "2", "3"}) {
		t.Fatalf("have sessions %v", have)
	}
	hash := "set by an administrator"
	r.Must(CommandUserUpdate, UserSave{ActorID: "usr_1", ID: other, PasswordHash: &hash})
	if have := sessions(); !slices.Equal(have, []string{"1"}) {
		t.Fatalf("have sessions %v", have)
	}
	if have := r.State.users.Get("usr_1").PasswordHash; have != "new" {
		t.Fatalf("have %q", have)
	}
	r.Must(CommandSessionCreate, SessionCreate{UserID: other, TokenHash: "4", ExpiresMs: r.Now + 1000})
	r.Must(CommandUserDelete, UserDelete{ActorID: "usr_1", ID: other})
	if have := sessions(); !slices.Equal(have, []string{"1"}) {
		t.Fatalf("have sessions %v", have)
	}
}

// TestSessionsOfAnOldPassword: a session is refused if the password has changed since it was
// verified. A record without the password's version is applied, as in old logs.
func TestSessionsOfAnOldPassword(t *testing.T) {
	r := newWorld(t)
	r.Must(CommandPasswordSet, PasswordSet{ID: "usr_1", PasswordHash: "old"})
	u, _ := r.State.User("usr_1")
	c := SessionCreate{UserID: "usr_1", TokenHash: "1", ExpiresMs: r.Now + 1000, IfPassword: u.PasswordVersion()}
	r.Must(CommandSessionCreate, c)
	r.Must(CommandPasswordSet, PasswordSet{ID: "usr_1", PasswordHash: "new"})
	r.Refused("conflict", CommandSessionCreate, c)
	if n := r.State.sessions.Len(); n != 0 {
		t.Errorf("%d sessions", n)
	}
	c.IfPassword = ""
	r.Must(CommandSessionCreate, c)
}

// TestPasswordOfAnOldPassword: a new password is refused if the password has changed since the
// caller's was verified. A record without the password's version is applied, as in old logs.
func TestPasswordOfAnOldPassword(t *testing.T) {
	r := newWorld(t)
	other := r.Must(CommandUserCreate, newUser("usr_1", "b@x.io"))
	u, _ := r.State.User(other)
	c := PasswordSet{ID: other, PasswordHash: "late", KeepSession: "1", IfPassword: u.PasswordVersion()}
	reset := "set by an administrator"
	r.Must(CommandUserUpdate, UserSave{ActorID: "usr_1", ID: other, PasswordHash: &reset})
	r.Must(CommandSessionCreate, SessionCreate{UserID: other, TokenHash: "2", ExpiresMs: r.Now + 1000})
	r.Refused("conflict", CommandPasswordSet, c)
	if u, _ = r.State.User(other); u.PasswordHash != reset || r.State.sessions.Len() != 1 {
		t.Errorf("the password is %q, and there are %d sessions", u.PasswordHash, r.State.sessions.Len())
	}
	c.IfPassword = u.PasswordVersion()
	r.Must(CommandPasswordSet, c)
	c.IfPassword = ""
	r.Must(CommandPasswordSet, c)
}

// TestSignInLinksAreUsedUp: the session that a link is used for takes its place. There is
// none for a link that was used, has ended, or is somebody else's.
func TestSignInLinksAreUsedUp(t *testing.T) {
	r := newWorld(t)
	other := r.Must(CommandUserCreate, newUser("usr_1", "b@x.io"))
	ends := r.Now + 1000
	for _, link := range []string{"link", "link withdrawn", "link late"} {
		r.Must(CommandSessionCreate, SessionCreate{UserID: "usr_1", TokenHash: link, ExpiresMs: ends})
	}
	r.Refused("conflict", CommandSessionCreate, SessionCreate{UserID: other, TokenHash: "1", ExpiresMs: ends + 1000, Link: "link"})
	c := SessionCreate{UserID: "usr_1", TokenHash: "1", ExpiresMs: ends + 1000, Link: "link"}
	r.Must(CommandSessionCreate, c)
	if _, ok := r.State.Session("link"); ok {
		t.Error("the link is left")
	}
	c.TokenHash = "2"
	r.Refused("conflict", CommandSessionCreate, c)
	r.Must(CommandSessionDelete, SessionDelete{TokenHash: "link withdrawn"})
	c.Link = "link withdrawn"
	r.Refused("conflict", CommandSessionCreate, c)
	r.Now = ends
	c.Link = "link late"
	r.Refused("conflict", CommandSessionCreate, c)
	if _, ok := r.State.Session("2"); ok {
		t.Error("there is a session all the same")
	}
}

func TestAPIKeyRules(t *testing.T) {
	r := newWorld(t)
	noKeys := r.Must(CommandUserCreate, newUser("usr_1", "b@x.io", "segments:read", "segments:write"))
	create := APIKeyCreate{ActorID: "usr_1", Name: " mine ", Hash: featuretest.TextHash("key 2"), Permissions: []string{"segments:write", "segments:read", "segments:read"}}
	id := r.Must(CommandAPIKeyCreate, create)
	if k := r.State.apiKeys.Get(id); k.Name != "mine" || !slices.Equal(k.Permissions, []string{"segments:read", "segments:write"}) || k.CreatorID != "usr_1" || k.CreatedMs != r.Now {
		t.Fatalf("have %+v", k)
	}
	r.Refused("conflict", CommandAPIKeyCreate, create)
	create.Hash = featuretest.TextHash("key 3")
	for change, code := range map[*APIKeyCreate]string{
		{ActorID: noKeys, Name: "x", Hash: create.Hash}:                                                           "forbidden",
		{ActorID: "usr_1", Name: " ", Hash: create.Hash}:                                                          "invalid",
		{ActorID: "usr_1", Name: "x", Hash: "short"}:                                                              "invalid",
		{ActorID: "usr_1", Name: "x", Hash: create.Hash, Permissions: []string{"lists:read"}}:                     "forbidden",
		{ActorID: "usr_1", Name: strings.Repeat("x", refuse.MaxNameBytes+1), Hash: featuretest.TextHash("key 4")}: "invalid",
		{ActorID: "usr_1", Name: "x", Hash: create.Hash, Permissions: make([]string, 1000)}:                       "forbidden",
		{ActorID: "usr_1", Name: "x", Hash: create.Hash, Permissions: []string{"users:write "}}:                   "forbidden",
	} {
		r.Refused(code, CommandAPIKeyCreate, *change)
	}
	r.Refused("forbidden", CommandAPIKeyRevoke, APIKeyRevoke{ActorID: noKeys, ID: id})
	r.Refused("not_found", CommandAPIKeyRevoke, APIKeyRevoke{ActorID: "usr_1", ID: "key_none"})
	r.Now += 5
	r.Must(CommandAPIKeyRevoke, APIKeyRevoke{ActorID: "usr_1", ID: id})
	r.Now += 5
	r.Must(CommandAPIKeyRevoke, APIKeyRevoke{ActorID: "usr_1", ID: id})
	if k := r.State.apiKeys.Get(id); k.RevokedMs != r.Now-5 {
		t.Fatalf("revoked twice: %+v", k)
	}

	r.State.KeyUsed(r.Tx(), id, 50)
	r.State.KeyUsed(r.Tx(), "key_none", 50)
	r.State.KeyUsed(r.Tx(), id, 40)
	if k := r.State.apiKeys.Get(id); k.LastUsedMs != 50 {
		t.Fatalf("last used at %d", k.LastUsedMs)
	}
}

// TestAPIKeysBounded (Q1): keys that hold are bounded, and so are records.
func TestAPIKeysBounded(t *testing.T) {
	r := newWorld(t)
	create := func(i int) *refuse.Refusal {
		_, refusal := r.Do(CommandAPIKeyCreate, APIKeyCreate{ActorID: "usr_1", Name: "x", Hash: featuretest.TextHash(fmt.Sprint("bound ", i))})
		return refusal
	}
	for i := range MaxAPIKeys - 1 {
		if out := create(i); out != nil {
			t.Fatal(out)
		}
	}
	if out := create(MaxAPIKeys); out == nil || out.Code != "limit" {
		t.Fatalf("one key too many: %v", out)
	}
	for i := range MaxAPIKeyRecords {
		k := &APIKey{ID: fmt.Sprintf("key_old%d", i), Hash: featuretest.TextHash(fmt.Sprint("old ", i)), RevokedMs: int64(i + 1)}
		if r.State.apiKeys.Len() < MaxAPIKeyRecords {
			r.State.putKey(r.Tx(), k)
		}
	}
	r.Must(CommandAPIKeyRevoke, APIKeyRevoke{ActorID: "usr_1", ID: "key_1"})
	if out := create(MaxAPIKeys); out != nil {
		t.Fatal(out)
	}
	if r.State.apiKeys.Len() != MaxAPIKeyRecords || len(r.State.keysByHash) != MaxAPIKeyRecords || r.State.apiKeys.Get("key_old0") != nil || r.State.apiKeys.Get("key_old1") == nil {
		t.Fatalf("%d records, %d hashes", r.State.apiKeys.Len(), len(r.State.keysByHash))
	}
}

// TestSessionsAreBounded: a user has so many sessions, and the oldest go first.
func TestSessionsAreBounded(t *testing.T) {
	r := newWorld(t)
	for i := range MaxSessions + 5 {
		r.Now++
		r.Must(CommandSessionCreate, SessionCreate{UserID: "usr_1", TokenHash: fmt.Sprintf("%064d", i), ExpiresMs: r.Now + 1_000_000})
	}
	if r.State.sessions.Len() != MaxSessions || r.State.sessions.Get(fmt.Sprintf("%064d", 4)) != nil || r.State.sessions.Get(fmt.Sprintf("%064d", 5)) == nil {
		t.Fatalf("%d sessions; the oldest must go first", r.State.sessions.Len())
	}
}
