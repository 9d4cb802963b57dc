package access

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// world is an account without the machine.
type world struct {
	t     *testing.T
	state *State
	store *state.Store
	now   int64
	seq   uint64
}

var founderPermissions = []string{"users:write", "api_keys:write", "segments:read", "segments:write"}

func newWorld(t *testing.T) *world {
	t.Helper()
	store, err := state.Open(vfs.NewMem(), "live", 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.DB.Close() })
	w := &world{t: t, state: New(), store: store, now: 1_000_000_000_000}
	w.state.Found(w.tx(), User{ID: "usr_1", Email: "a@b.c", Permissions: founderPermissions, Admin: true},
		APIKey{ID: "key_1", Hash: textHash("key 1"), Permissions: []string{"segments:read", "segments:write"}})
	return w
}

func (w *world) tx() *feature.Tx {
	w.seq++
	tx := &feature.Tx{Account: 7, AtMs: w.now, Store: w.store}
	binary.LittleEndian.PutUint64(tx.Record[:], w.seq)
	return tx
}

// do runs a command; one that is refused must change nothing.
func (w *world) do(name string, args any) (*feature.Tx, *refuse.Refusal) {
	w.t.Helper()
	tx, before := w.tx(), w.hash()
	refusal, err := Commands[name](w.state, tx, must.JSON(args))
	if err != nil {
		w.t.Fatal(err)
	}
	if refusal != nil && w.hash() != before {
		w.t.Fatalf("%s was refused and changed the state", name)
	}
	return tx, refusal
}

func (w *world) command(name string, args any) *refuse.Refusal {
	w.t.Helper()
	_, refusal := w.do(name, args)
	return refusal
}

func (w *world) refusedWhole(code, name string, args any) {
	w.t.Helper()
	if r := w.command(name, args); r == nil || r.Code != code {
		w.t.Fatalf("%s %s: %v, want %s", name, must.JSON(args), r, code)
	}
}

// succeeds runs a command that must succeed and returns the id it answers.
func (w *world) succeeds(name string, args any) string {
	w.t.Helper()
	tx, refusal := w.do(name, args)
	if refusal != nil {
		w.t.Fatalf("%s %s: %v", name, must.JSON(args), refusal)
	}
	reply, _ := tx.Reply.(map[string]string)
	return reply["id"]
}

func (w *world) hash() string {
	w.t.Helper()
	h := sha256.New()
	if err := w.state.Hash(func(b []byte) { fmt.Fprintf(h, "%d %s", len(b), b) }); err != nil {
		w.t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func textHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func newUser(actor, email string, permissions ...string) UserSave {
	hash := "hash of " + email
	return UserSave{ActorID: actor, Email: &email, PasswordHash: &hash, Permissions: &permissions}
}

// TestUserRules: nobody is raised above who raises him, and somebody is always
// left who can manage users and the system.
func TestUserRules(t *testing.T) {
	r := newWorld(t)
	yes, no := true, false
	boss := "usr_1"
	lead := r.succeeds(CommandUserCreate, newUser(boss, "Lead@x.io", "users:write", "segments:read"))
	reader := r.succeeds(CommandUserCreate, newUser(lead, "reader@x.io", "segments:read"))

	r.refusedWhole("conflict", CommandUserCreate, newUser(boss, " lead@X.IO "))
	r.refusedWhole("invalid", CommandUserCreate, newUser(boss, "  "))
	r.refusedWhole("invalid", CommandUserCreate, newUser(boss, strings.Repeat("x", MaxUserEmailBytes+1)))
	r.refusedWhole("forbidden", CommandUserCreate, newUser(lead, "a@x.io", "segments:write"))
	r.refusedWhole("forbidden", CommandUserCreate, newUser(boss, "a@x.io", "no_such:thing"))
	r.refusedWhole("forbidden", CommandUserCreate, newUser(reader, "a@x.io"))
	r.refusedWhole("forbidden", CommandUserCreate, newUser("usr_nobody", "a@x.io"))

	up := []string{"segments:read", "segments:write"}
	r.refusedWhole("forbidden", CommandUserUpdate, UserSave{ActorID: lead, ID: reader, Permissions: &up})
	r.refusedWhole("forbidden", CommandUserUpdate, UserSave{ActorID: lead, ID: lead, Permissions: &up})
	r.refusedWhole("forbidden", CommandUserUpdate, UserSave{ActorID: lead, ID: reader, Admin: &yes})
	text := "x"
	r.refusedWhole("forbidden", CommandUserUpdate, UserSave{ActorID: lead, ID: boss, PasswordHash: &text})
	r.refusedWhole("forbidden", CommandUserUpdate, UserSave{ActorID: boss, ID: boss, PasswordHash: &text})
	r.refusedWhole("forbidden", CommandUserDelete, UserDelete{ActorID: lead, ID: boss})
	r.refusedWhole("not_found", CommandUserUpdate, UserSave{ActorID: boss, ID: "usr_nobody", Name: &text})
	r.refusedWhole("not_found", CommandUserDelete, UserDelete{ActorID: boss, ID: "usr_nobody"})
	r.refusedWhole("conflict", CommandUserUpdate, UserSave{ActorID: boss, ID: boss, Admin: &no})

	// Once another is administrator, the first may go; then nobody else may.
	up = founderPermissions
	r.succeeds(CommandUserUpdate, UserSave{ActorID: boss, ID: lead, Permissions: &up, Admin: &yes, Name: &text})
	r.succeeds(CommandUserDelete, UserDelete{ActorID: lead, ID: boss})
	r.refusedWhole("conflict", CommandUserDelete, UserDelete{ActorID: lead, ID: lead})
	few := []string{"segments:read"}
	r.refusedWhole("conflict", CommandUserUpdate, UserSave{ActorID: lead, ID: lead, Permissions: &few})
	r.succeeds(CommandUserDelete, UserDelete{ActorID: lead, ID: reader})
	// The e-mail of who went is free again.
	r.succeeds(CommandUserCreate, newUser(lead, "a@b.c"))
}

// TestPasswordsEndSessions: a new password ends all sessions but that which
// set it; one set by somebody else, and removal, end all.
func TestPasswordsEndSessions(t *testing.T) {
	r := newWorld(t)
	other := r.succeeds(CommandUserCreate, newUser("usr_1", "b@x.io"))
	sessions := func() (out []string) {
		for token := range r.state.sessions.All() {
			out = append(out, token)
		}
		slices.Sort(out)
		return out
	}
	for i, u := range []string{"usr_1", "usr_1", other, other} {
		r.succeeds(CommandSessionCreate, SessionCreate{UserID: u, TokenHash: fmt.Sprint(i), ExpiresMs: r.now + 1000})
	}
	r.succeeds(CommandPasswordSet, PasswordSet{ID: "usr_1", PasswordHash: "new", KeepSession: "1"})
	if have := sessions(); !slices.Equal(have, []string{"1", "2", "3"}) {
		t.Fatalf("have sessions %v", have)
	}
	hash := "set by an administrator"
	r.succeeds(CommandUserUpdate, UserSave{ActorID: "usr_1", ID: other, PasswordHash: &hash})
	if have := sessions(); !slices.Equal(have, []string{"1"}) {
		t.Fatalf("have sessions %v", have)
	}
	if have := r.state.users.Get("usr_1").PasswordHash; have != "new" {
		t.Fatalf("have %q", have)
	}
	r.succeeds(CommandSessionCreate, SessionCreate{UserID: other, TokenHash: "4", ExpiresMs: r.now + 1000})
	r.succeeds(CommandUserDelete, UserDelete{ActorID: "usr_1", ID: other})
	if have := sessions(); !slices.Equal(have, []string{"1"}) {
		t.Fatalf("have sessions %v", have)
	}
}

func TestAPIKeyRules(t *testing.T) {
	r := newWorld(t)
	noKeys := r.succeeds(CommandUserCreate, newUser("usr_1", "b@x.io", "segments:read", "segments:write"))
	create := APIKeyCreate{ActorID: "usr_1", Name: " mine ", Hash: textHash("key 2"), Permissions: []string{"segments:write", "segments:read", "segments:read"}}
	id := r.succeeds(CommandAPIKeyCreate, create)
	if k := r.state.keys.Get(id); k.Name != "mine" || !slices.Equal(k.Permissions, []string{"segments:read", "segments:write"}) || k.CreatorID != "usr_1" || k.CreatedMs != r.now {
		t.Fatalf("have %+v", k)
	}
	r.refusedWhole("conflict", CommandAPIKeyCreate, create)
	create.Hash = textHash("key 3")
	for change, code := range map[*APIKeyCreate]string{
		{ActorID: noKeys, Name: "x", Hash: create.Hash}:                                               "forbidden",
		{ActorID: "usr_1", Name: " ", Hash: create.Hash}:                                              "invalid",
		{ActorID: "usr_1", Name: "x", Hash: "short"}:                                                  "invalid",
		{ActorID: "usr_1", Name: "x", Hash: create.Hash, Permissions: []string{"lists:read"}}:         "forbidden",
		{ActorID: "usr_1", Name: strings.Repeat("x", refuse.MaxNameBytes+1), Hash: textHash("key 4")}: "invalid",
		{ActorID: "usr_1", Name: "x", Hash: create.Hash, Permissions: make([]string, 1000)}:           "forbidden",
		{ActorID: "usr_1", Name: "x", Hash: create.Hash, Permissions: []string{"users:write "}}:       "forbidden",
	} {
		r.refusedWhole(code, CommandAPIKeyCreate, *change)
	}
	r.refusedWhole("forbidden", CommandAPIKeyRevoke, APIKeyRevoke{ActorID: noKeys, ID: id})
	r.refusedWhole("not_found", CommandAPIKeyRevoke, APIKeyRevoke{ActorID: "usr_1", ID: "key_none"})
	r.now += 5
	r.succeeds(CommandAPIKeyRevoke, APIKeyRevoke{ActorID: "usr_1", ID: id})
	r.now += 5
	r.succeeds(CommandAPIKeyRevoke, APIKeyRevoke{ActorID: "usr_1", ID: id})
	if k := r.state.keys.Get(id); k.RevokedMs != r.now-5 {
		t.Fatalf("revoked twice: %+v", k)
	}

	r.state.KeyUsed(r.tx(), id, 50)
	r.state.KeyUsed(r.tx(), "key_none", 50)
	r.state.KeyUsed(r.tx(), id, 40)
	if k := r.state.keys.Get(id); k.LastUsedMs != 50 {
		t.Fatalf("last used at %d", k.LastUsedMs)
	}
}

// TestAPIKeysBounded (Q1): keys that hold are bounded, and so are records.
func TestAPIKeysBounded(t *testing.T) {
	r := newWorld(t)
	create := func(i int) *refuse.Refusal {
		return r.command(CommandAPIKeyCreate, APIKeyCreate{ActorID: "usr_1", Name: "x", Hash: textHash(fmt.Sprint("bound ", i))})
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
		k := &APIKey{ID: fmt.Sprintf("key_old%d", i), Hash: textHash(fmt.Sprint("old ", i)), RevokedMs: int64(i + 1)}
		if r.state.keys.Len() < MaxAPIKeyRecords {
			r.state.putKey(r.tx(), k)
		}
	}
	r.succeeds(CommandAPIKeyRevoke, APIKeyRevoke{ActorID: "usr_1", ID: "key_1"})
	if out := create(MaxAPIKeys); out != nil {
		t.Fatal(out)
	}
	if r.state.keys.Len() != MaxAPIKeyRecords || len(r.state.hashes) != MaxAPIKeyRecords || r.state.keys.Get("key_old0") != nil || r.state.keys.Get("key_old1") == nil {
		t.Fatalf("%d records, %d hashes", r.state.keys.Len(), len(r.state.hashes))
	}
}

// TestSessionsAreBounded: a user has so many sessions, and the oldest go first.
func TestSessionsAreBounded(t *testing.T) {
	r := newWorld(t)
	for i := range MaxSessions + 5 {
		r.now++
		r.command(CommandSessionCreate, SessionCreate{"usr_1", fmt.Sprintf("%064d", i), r.now + 1_000_000})
	}
	if r.state.sessions.Len() != MaxSessions || r.state.sessions.Get(fmt.Sprintf("%064d", 4)) != nil || r.state.sessions.Get(fmt.Sprintf("%064d", 5)) == nil {
		t.Fatalf("%d sessions; the oldest must go first", r.state.sessions.Len())
	}
}
