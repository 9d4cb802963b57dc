package node

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"testing"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
)

// TestKeyAccess: which requests a key admits follows the state at once.
func TestKeyAccess(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	n, err := f.open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { f.close(t, n) }()
	ctx := context.Background()
	run := func(account uint64, name string, args any) string {
		t.Helper()
		reply, err := n.Command(ctx, account, name, args)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var out struct{ ID string }
		_ = json.Unmarshal(reply, &out)
		return out.ID
	}
	run(testAccount, resolver.CommandBootstrap, accessBootstrap())
	run(secondAccount, resolver.CommandCompanyCreate, accessBootstrap())
	have := func(account uint64, text string) (resolver.KeyAccess, bool) {
		t.Helper()
		k, ok, err := n.KeyAccess(account, sha256.Sum256([]byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		if !ok && (k.Account != 0 || k.Permissions != nil) {
			t.Fatalf("what is refused tells %+v", k)
		}
		return k, ok
	}
	k, ok := have(testAccount, "key 1")
	if !ok || k.KeyID != "key_1" || !slices.Equal(k.Permissions, []string{"segments:read", "segments:write"}) || k.SurfaceCPerMinute != 600 {
		t.Fatalf("have %+v %v", k, ok)
	}
	yes, no := true, false
	for name, x := range map[string]struct {
		account uint64
		text    string
	}{"no such account": {99, "key 1"}, "no account": {0, "key 1"}, "no such key": {testAccount, "key 9"}, "API access off": {secondAccount, "key 1"}} {
		if _, ok := have(x.account, x.text); ok {
			t.Errorf("%s: let in", name)
		}
	}
	run(secondAccount, resolver.CommandCompanyUpdate, resolver.CompanyUpdate{APIAccess: &yes})
	if _, ok := have(secondAccount, "key 1"); !ok {
		t.Error("API access was switched on")
	}
	if app, _ := n.App([]byte(resolver.AppID(secondAccount))); !app.Active {
		t.Error("the application of an active account is not let in")
	}
	run(secondAccount, resolver.CommandCompanyUpdate, resolver.CompanyUpdate{Active: &no})
	if _, ok := have(secondAccount, "key 1"); ok {
		t.Error("the account was deactivated")
	}
	if app, _ := n.App([]byte(resolver.AppID(secondAccount))); app.Active {
		t.Error("the application of a deactivated account is let in")
	}

	// The creator narrows, then goes.
	maker := run(testAccount, access.CommandUserCreate, newUser("usr_1", "m@x.io", "api_keys:write", "segments:read", "segments:write"))
	id := run(testAccount, access.CommandAPIKeyCreate, access.APIKeyCreate{ActorID: maker, Name: "k", Hash: textHash("made"), Permissions: []string{"segments:read", "segments:write"}})
	few := []string{"segments:read"}
	run(testAccount, access.CommandUserUpdate, access.UserSave{ActorID: "usr_1", ID: maker, Permissions: &few})
	if k, ok := have(testAccount, "made"); !ok || !slices.Equal(k.Permissions, few) {
		t.Errorf("a narrowed creator's key has %+v", k)
	}
	run(testAccount, access.CommandUserDelete, access.UserDelete{ActorID: "usr_1", ID: maker})
	if k, ok := have(testAccount, "made"); !ok || len(k.Permissions) != 0 {
		t.Errorf("the key of a deleted creator has %+v", k)
	}
	run(testAccount, access.CommandAPIKeyRevoke, access.APIKeyRevoke{ActorID: "usr_1", ID: id})
	if _, ok := have(testAccount, "made"); ok {
		t.Error("the key was revoked")
	}
	if err := n.RecordKeyUses(ctx, []access.KeyUse{{Account: testAccount, KeyID: "key_1", AtMs: 7}, {Account: secondAccount, KeyID: "key_1", AtMs: 9}}); err != nil {
		t.Fatal(err)
	}
	for account, want := range map[uint64]int64{testAccount: 7, secondAccount: 9} {
		if err := n.Read(ctx, account, func(v *resolver.View) error {
			if k, _ := v.Access().APIKey("key_1"); k.LastUsedMs != want {
				t.Errorf("account %d: last used %d", account, k.LastUsedMs)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}
