package resolver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/dedup"
)

const secondAccount = 8

func textHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func accessBootstrap() Bootstrap {
	b := testBootstrap(DefaultSettings())
	b.User.Permissions = []string{"users:write", "api_keys:write", "segments:read", "segments:write"}
	b.APIKey = access.APIKey{ID: "key_1", Hash: textHash("key 1"), Permissions: []string{"segments:read", "segments:write"}}
	return b
}

func newAccessRecorder(t *testing.T) *recorder {
	r := &recorder{t: t, m: testMachine(t), now: 1_000_000_000_000}
	r.command(CommandBootstrap, accessBootstrap())
	return r
}

// refusedWhole runs a command that must be refused with a code.
func (r *recorder) refusedWhole(code, name string, args any) {
	r.t.Helper()
	before, err := r.m.Hash()
	if err != nil {
		r.t.Fatal(err)
	}
	if out := r.command(name, args); out.Refusal == nil || out.Refusal.Code != code {
		r.t.Fatalf("%s %s: %v, want %s", name, must.JSON(args), out.Refusal, code)
	}
	// Only the position and the ids of records have moved.
	r.m.next--
	seen, ids := r.m.records, r.m.records.List()
	r.m.records = dedup.NewRecords(recordWindow)
	for _, id := range ids[:len(ids)-1] {
		r.m.records.Add(id)
	}
	after, err := r.m.Hash()
	if err != nil {
		r.t.Fatal(err)
	}
	if before != after {
		r.t.Fatalf("%s was refused and changed the state", name)
	}
	r.m.next++
	r.m.records = seen
}

// succeeds runs a command that must succeed and returns the id it answers.
func (r *recorder) succeeds(name string, args any) string {
	r.t.Helper()
	out := r.command(name, args)
	if out.Refusal != nil {
		r.t.Fatalf("%s %s: %v", name, must.JSON(args), out.Refusal)
	}
	var reply struct{ ID string }
	if out.Reply != nil {
		if err := json.Unmarshal(out.Reply, &reply); err != nil {
			r.t.Fatal(err)
		}
	}
	return reply.ID
}

func newUser(actor, email string, permissions ...string) access.UserSave {
	hash := "hash of " + email
	return access.UserSave{ActorID: actor, Email: &email, PasswordHash: &hash, Permissions: &permissions}
}

// commandTo is command for another account.
func (r *recorder) commandTo(account uint64, name string, args any) *Outcome {
	r.t.Helper()
	env := r.envelope(eventlog.KindCommand)
	env.Account = account
	r.apply(eventlog.AppendCommand(env.Append(nil), name, must.JSON(args)))
	return &r.out
}

func TestCompanies(t *testing.T) {
	t.Parallel()
	r := newAccessRecorder(t)
	first := r.m.accounts[testAccount]
	if !first.APIAccess || first.EmailCredits != 100_000 || !first.Access.HasAdmin() {
		t.Fatalf("the first company: %+v", first.Entity)
	}
	c := accessBootstrap()
	c.User.Admin = true // it is not taken at its word
	if out := r.commandTo(secondAccount, CommandBootstrap, c); out.Refusal == nil {
		t.Fatal("an account cannot be bootstrapped beside another")
	}
	if out := r.commandTo(testAccount, CommandCompanyCreate, c); out.Refusal == nil || out.Refusal.Code != "conflict" {
		t.Fatalf("an account's number is taken once: %v", out.Refusal)
	}
	if out := r.commandTo(secondAccount, CommandCompanyCreate, c); out.Refusal != nil {
		t.Fatal(out.Refusal)
	}
	a := r.m.accounts[secondAccount]
	if a.APIAccess || a.Deactivated || a.EmailCredits != 100_000 || a.Access.HasAdmin() || a.Settings.SurfaceCPerMinute != 600 {
		t.Fatalf("a new company: %+v", a.Entity)
	}
	yes, no := true, false
	if out := r.commandTo(secondAccount, access.CommandUserUpdate, access.UserSave{ActorID: "usr_1", ID: "usr_1", Admin: &yes}); out.Refusal == nil {
		t.Fatal("a company's owner cannot make himself system administrator")
	}
	name := "Renamed"
	if out := r.commandTo(secondAccount, CommandCompanyUpdate, CompanyUpdate{Name: &name, APIAccess: &yes, Active: &no}); out.Refusal != nil {
		t.Fatal(out.Refusal)
	}
	if !a.APIAccess || !a.Deactivated || a.Company.Name != name || first.Company.Name == name {
		t.Fatalf("have %+v", a.Entity)
	}
	r.refusedWhole("conflict", CommandCompanyUpdate, CompanyUpdate{Active: &no})
	empty := " "
	r.refusedWhole("invalid", CommandCompanyUpdate, CompanyUpdate{Name: &empty})
	zero := 0
	r.refusedWhole("invalid", CommandCompanyUpdate, CompanyUpdate{SurfaceCPerMinute: &zero})
	for _, n := range []int64{0, -5, maxTopUp + 1} {
		r.refusedWhole("invalid", CommandCreditsAdd, CreditsAdd{Amount: n})
	}
	r.succeeds(CommandCreditsAdd, CreditsAdd{Amount: 5})
	if first.EmailCredits != 100_005 || a.EmailCredits != 100_000 {
		t.Fatalf("credits %d and %d", first.EmailCredits, a.EmailCredits)
	}
	if r.m.spendCredits(first, 100_006) || first.EmailCredits != 100_005 || !r.m.spendCredits(first, 100_005) || first.EmailCredits != 0 || r.m.spendCredits(first, 1) || r.m.spendCredits(first, -1) {
		t.Fatalf("credits left: %d", first.EmailCredits)
	}
	first.EmailCredits = maxCredits - 4
	r.refusedWhole("limit", CommandCreditsAdd, CreditsAdd{Amount: 5})
}

// TestOldSettings: records and states of before a setting existed mean its
// default.
func TestOldSettings(t *testing.T) {
	t.Parallel()
	s := DefaultSettings()
	s.SurfaceCPerMinute = 0
	r := newRecorder(t, s)
	if have := r.m.accounts[testAccount].Settings.SurfaceCPerMinute; have != 600 {
		t.Fatalf("have %d", have)
	}
	r.succeeds(CommandSettingsSet, s)
	if have := r.m.accounts[testAccount].Settings.SurfaceCPerMinute; have != 600 {
		t.Fatalf("have %d", have)
	}
	s.SurfaceCPerMinute = account.MaxSurfaceCPerMinute + 1
	r.refusedWhole("invalid", CommandSettingsSet, s)
}

// TestR1Access: people, companies and keys survive restarts and checkpoints, and
// a replay of the log gives the same state.
func TestR1Access(t *testing.T) {
	t.Parallel()
	seeds := testlevel.Count(5, 20)
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { accessReplays(t, uint64(seed)) })
	}
}

func accessReplays(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 9))
	n := newServedFixture(t, accessBootstrap())
	ctx := context.Background()
	done := 0
	for step := range 300 {
		account := uint64(pick(rng, testAccount, testAccount, secondAccount))
		var users []access.User
		var keys []access.APIKey
		_ = n.Read(ctx, account, func(v *View) error { users, keys = v.Access().Users(), v.Access().APIKeys(); return nil })
		users, keys = append(users, access.User{ID: "usr_none"}), append(keys, access.APIKey{ID: "key_none"})
		user := func() string { return pick(rng, users[0].ID, users[0].ID, users[rng.IntN(len(users))].ID) }
		key := func() string { return keys[rng.IntN(len(keys))].ID }
		use := func(of uint64) access.KeyUse { return access.KeyUse{Account: of, KeyID: key(), AtMs: rng.Int64N(1000)} }
		email := fmt.Sprintf(pick(rng, "u%d@x.io", " U%d@x.io"), rng.IntN(12))
		var permissions []string
		for _, p := range accessBootstrap().User.Permissions {
			if rng.IntN(3) > 0 {
				permissions = append(permissions, p)
			}
		}
		flip := rng.IntN(2) == 0
		save := newUser(user(), email, permissions...)
		name, args := "", any(nil)
		switch rng.IntN(12) {
		case 0:
			name, account, args = CommandCompanyCreate, secondAccount, accessBootstrap()
		case 1, 2:
			name, args = access.CommandUserCreate, save
		case 3, 4:
			if save.ID = user(); save.ID == users[0].ID && rng.IntN(20) > 0 {
				save.Permissions = nil
			}
			if flip {
				save.PasswordHash = nil
			}
			name, args = access.CommandUserUpdate, save
		case 5:
			name, args = access.CommandUserDelete, access.UserDelete{ActorID: user(), ID: users[rng.IntN(len(users))].ID}
		case 6:
			name, args = access.CommandPasswordSet, access.PasswordSet{ID: user(), PasswordHash: fmt.Sprint(step), KeepSession: fmt.Sprint(step - 1)}
		case 7:
			name, args = access.CommandSessionCreate, access.SessionCreate{UserID: user(), TokenHash: fmt.Sprint(step), ExpiresMs: n.options.Now().UnixMilli() + 1000}
		case 8:
			name, args = CommandCompanyUpdate, CompanyUpdate{Name: &email, APIAccess: &flip, Active: &flip}
		case 9:
			name, args = CommandCreditsAdd, CreditsAdd{rng.Int64N(10)}
		case 10:
			name, args = access.CommandAPIKeyCreate, access.APIKeyCreate{ActorID: user(), Name: email, Hash: textHash(fmt.Sprint(step)), Permissions: permissions}
		case 11:
			name, args = access.CommandAPIKeyRevoke, access.APIKeyRevoke{ActorID: user(), ID: key()}
			if flip {
				name, args = access.CommandAPIKeysUsed, access.APIKeysUsed{Uses: []access.KeyUse{use(testAccount), use(secondAccount)}}
			}
		}
		var refusal *Refusal
		switch _, err := n.Command(ctx, account, name, args); {
		case errors.As(err, &refusal):
		case err != nil:
			t.Fatalf("seed %d: %s: %v", seed, name, err)
		default:
			done++
		}
		switch rng.IntN(25) {
		case 0:
			if err := n.Checkpoint(); err != nil {
				t.Fatal(err)
			}
		case 1:
			n.restart()
		}
	}
	defer n.stop()
	if done < 10 {
		t.Fatalf("seed %d: only %d commands did anything", seed, done)
	}
	next, sum, err := n.StateHash(0)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := replay(t, n.log, next)
	if fresh, err := m.Hash(); err != nil || fresh != sum {
		t.Fatalf("R1: seed %d: the state differs from a fresh replay (%v)", seed, err)
	}
}
