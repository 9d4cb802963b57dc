package resolver

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/eventtypes"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/sources"
)

func writeKey(text string, public bool) *sources.NewWriteKey {
	k := &sources.NewWriteKey{Hash: textHash(text)}
	if public {
		k.Text = text
	}
	return k
}

// TestSourcesStory: sources and their write keys from creation to deletion, and
// through a checkpoint; every command has a refusal that changes nothing.
func TestSourcesStory(t *testing.T) {
	t.Parallel()
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	name, off, on := "Shop", false, true
	email, wrong := sources.UserIDIsEmail, "id"
	origins := []string{"https://Shop.example", "https://*.shop.example:8443", "https://shop.example"}
	browser := answer[struct{ ID string }](t, r.must(sources.CommandCreate, signed(sources.Save{Kind: sources.Browser, Name: &name, Key: writeKey("wk_b", true)}, "usr_1"))).ID
	server := answer[struct{ ID string }](t, r.must(sources.CommandCreate, sources.Save{Kind: sources.Server, Name: &name, Key: writeKey("wk_s", false), UserID: &email, KeepContext: &on})).ID
	if s, ok := r.view().Sources().Get(browser); !ok || !reflect.DeepEqual(s.AllowedOrigins, []string{sources.AnyOrigin}) || s.UserID != sources.UserIDIsExternalID || s.Keys[0].Text != "wk_b" || s.Disabled {
		t.Fatalf("%+v", s)
	}
	if s, ok := r.view().Sources().Get(server); !ok || s.AllowedOrigins != nil || s.UserID != sources.UserIDIsEmail || !s.KeepContext || s.Keys[0].Text != "" {
		t.Fatalf("%+v", s)
	}

	long, blank := strings.Repeat("x", refuse.MaxNameBytes+1), " "
	for _, c := range []struct {
		code, name string
		args       any
	}{
		{"invalid", sources.CommandCreate, sources.Save{Kind: "app", Name: &name, Key: writeKey("a", false)}},
		{"invalid", sources.CommandCreate, sources.Save{Kind: sources.Server, Key: writeKey("a", false)}},
		{"invalid", sources.CommandCreate, sources.Save{Kind: sources.Server, Name: &blank, Key: writeKey("a", false)}},
		{"invalid", sources.CommandCreate, sources.Save{Kind: sources.Server, Name: &long, Key: writeKey("a", false)}},
		{"invalid", sources.CommandCreate, sources.Save{Kind: sources.Server, Name: &name}},
		{"invalid", sources.CommandCreate, sources.Save{Kind: sources.Server, Name: &name, Key: &sources.NewWriteKey{Hash: "xy"}}},
		{"invalid", sources.CommandCreate, sources.Save{Kind: sources.Server, Name: &name, Key: writeKey("a", true)}},   // its text is secret
		{"invalid", sources.CommandCreate, sources.Save{Kind: sources.Browser, Name: &name, Key: writeKey("a", false)}}, // its text is shown
		{"invalid", sources.CommandCreate, sources.Save{Kind: sources.Server, Name: &name, Key: writeKey("a", false), AllowedOrigins: &origins}},
		{"conflict", sources.CommandCreate, sources.Save{Kind: sources.Server, Name: &name, Key: writeKey("wk_b", false)}},
		{"invalid", sources.CommandUpdate, sources.Save{ID: server, UserID: &wrong}},
		{"not_found", sources.CommandUpdate, sources.Save{ID: "src_none", Name: &name}},
		{"not_found", sources.CommandDelete, sources.Ref{ID: "src_none"}},
		{"not_found", sources.CommandKeyCreate, sources.Ref{ID: "src_none", Key: writeKey("a", false)}},
		{"invalid", sources.CommandKeyCreate, sources.Ref{ID: server}},
		{"conflict", sources.CommandKeyCreate, sources.Ref{ID: server, Key: writeKey("wk_s", false)}},
		{"not_found", sources.CommandKeyRevoke, sources.Ref{ID: "src_none", KeyID: "wky_none"}},
		{"not_found", sources.CommandKeyRevoke, sources.Ref{ID: server, KeyID: "wky_none"}},
	} {
		r.refusedWhole(c.code, c.name, c.args)
	}
	for _, bad := range []string{"", "shop.example", "ftp://shop.example", "https://", "https://*", "https://*.", "https://a.*.example", "https://shop.example/", "https://shop.example?x", "https://u@shop.example", "**", "null", "https://a,b", "https://" + strings.Repeat("x", 300)} {
		r.refusedWhole("invalid", sources.CommandUpdate, sources.Save{ID: browser, AllowedOrigins: &[]string{bad}})
	}
	many := make([]string, sources.MaxOrigins+1)
	for i := range many {
		many[i] = fmt.Sprintf("https://s%d.example", i)
	}
	r.refusedWhole("invalid", sources.CommandUpdate, sources.Save{ID: browser, AllowedOrigins: &many})

	r.must(sources.CommandUpdate, signed(sources.Save{ID: browser, AllowedOrigins: &origins, Enabled: &off}, "usr_1"))
	second := answer[struct {
		KeyID string `json:"key_id"`
	}](t, r.must(sources.CommandKeyCreate, signed(sources.Ref{ID: server, Key: writeKey("wk_t", false)}, "usr_1"))).KeyID
	stored := func() sources.Source {
		s, _ := r.view().Sources().Get(server)
		return s
	}
	first := stored().Keys[0].ID
	r.must(sources.CommandUsed, sources.Used{Uses: []sources.Use{{Account: testAccount, SourceID: server, KeyID: second, AtMs: 50}, {Account: testAccount, SourceID: server, KeyID: "wky_none", AtMs: 50}, {Account: testAccount, SourceID: "src_none", KeyID: second, AtMs: 50}, {Account: 99, SourceID: server, KeyID: second, AtMs: 50}}})
	r.must(sources.CommandUsed, sources.Used{Uses: []sources.Use{{Account: testAccount, SourceID: server, KeyID: second, AtMs: 40}}})
	r.now += 5
	r.must(sources.CommandKeyRevoke, signed(sources.Ref{ID: server, KeyID: first}, "usr_1"))
	r.now += 5
	r.must(sources.CommandKeyRevoke, sources.Ref{ID: server, KeyID: first}) // once is enough

	before := r.view().Sources().All()
	d.reload()
	after := r.view().Sources().All()
	if !reflect.DeepEqual(before, after) || len(after) != 2 {
		t.Fatalf("before the restart %+v\nafter it %+v", before, after)
	}
	if s, _ := r.view().Sources().Get(server); s.Keys[0].RevokedMs != r.now-5 || s.Keys[1].LastUsedMs != 50 {
		t.Errorf("%+v", s.Keys)
	}
	keys := r.m.WriteKeys()
	if _, held := keys[sha256.Sum256([]byte("wk_s"))]; held || len(keys) != 2 {
		t.Errorf("a revoked key holds: %v", keys)
	}
	if k := keys[sha256.Sum256([]byte("wk_b"))]; k.Account != testAccount || k.SourceID != browser || !k.Public || k.Enabled || !k.AccountAlive ||
		!reflect.DeepEqual(k.AllowedOrigins, []string{"https://shop.example", "https://*.shop.example:8443"}) {
		t.Errorf("%+v", k)
	}
	if k := keys[sha256.Sum256([]byte("wk_t"))]; k.Public || !k.Enabled || k.UserIDIs != sources.UserIDIsEmail || !k.KeepContext {
		t.Errorf("%+v", k)
	}
	list, err := r.view().Audit().Changes("source", "", 0, 10)
	if err != nil || len(list) != 4 || list[0].Action != "source.key.revoke" || list[3].Action != "source.create" || list[3].ID != browser || list[3].Name != name {
		t.Errorf("%+v, %v", list, err)
	}
	// What is kept of a source counts in the hash.
	hash := hashOf(t, d.m)
	stored().Keys[1].LastUsedMs++
	if hashOf(t, d.m) == hash {
		t.Error("the hash does not see another source")
	}
	stored().Keys[1].LastUsedMs--

	r.must(sources.CommandDelete, signed(sources.Ref{ID: browser}, "usr_1"))
	d.reload()
	if list := r.view().Sources().All(); len(list) != 1 || len(r.m.WriteKeys()) != 1 {
		t.Errorf("%+v", list)
	}
}

// TestEventTypesAreNamedStory: types that were seen get the names that applications give
// them, once; others are not made.
func TestEventTypesAreNamedStory(t *testing.T) {
	t.Parallel()
	r := newAccessRecorder(t)
	r.events(eventlog.Event{Type: []byte("order_completed"), Email: []byte("ann@x.io")})
	r.must(eventtypes.CommandDefine, eventtypes.Define{Name: "Item Viewed"})
	r.must(eventtypes.CommandName, eventtypes.Names{Types: []eventtypes.Name{{Key: "order_completed", Name: " Order Completed "}, {Key: "item_viewed", Name: "itemViewed"}, {Key: "unseen", Name: "Unseen"}}})
	r.must(eventtypes.CommandName, eventtypes.Names{Types: []eventtypes.Name{{Key: "order_completed", Name: "Other"}}})
	types := r.m.accounts[testAccount].Types
	if types.Get("order_completed").Name != "Order Completed" || types.Get("item_viewed").Name != "Item Viewed" || types.Get("unseen") != nil {
		t.Errorf("%+v", types.List())
	}
	r.refusedWhole("invalid", eventtypes.CommandName, eventtypes.Names{Types: make([]eventtypes.Name, eventtypes.MaxNames+1)})
}
