package resolver

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

func writeKey(text string, public bool) *NewWriteKey {
	k := &NewWriteKey{Hash: textHash(text)}
	if public {
		k.Text = text
	}
	return k
}

// TestSourcesStory: sources and their write keys through their lives, and through a
// checkpoint; every command has a refusal that changes nothing.
func TestSourcesStory(t *testing.T) {
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	name, off, on := "Shop", false, true
	email, wrong := UserIDIsEmail, "id"
	origins := []string{"https://Shop.example", "https://*.shop.example:8443", "https://shop.example"}
	browser := answer[struct{ ID string }](t, r.must(CommandSourceCreate, signed(SourceSave{Kind: SourceBrowser, Name: &name, Key: writeKey("wk_b", true)}, "usr_1"))).ID
	server := answer[struct{ ID string }](t, r.must(CommandSourceCreate, SourceSave{Kind: SourceServer, Name: &name, Key: writeKey("wk_s", false), UserID: &email, KeepContext: &on})).ID
	if s, ok := r.view().Source(browser); !ok || !reflect.DeepEqual(s.AllowedOrigins, []string{AnyOrigin}) || s.UserID != UserIDIsExternalID || s.Keys[0].Text != "wk_b" || s.Disabled {
		t.Fatalf("%+v", s)
	}
	if s, ok := r.view().Source(server); !ok || s.AllowedOrigins != nil || s.UserID != UserIDIsEmail || !s.KeepContext || s.Keys[0].Text != "" {
		t.Fatalf("%+v", s)
	}

	long, blank := strings.Repeat("x", refuse.MaxNameBytes+1), " "
	for _, c := range []struct {
		code, name string
		args       any
	}{
		{"invalid", CommandSourceCreate, SourceSave{Kind: "app", Name: &name, Key: writeKey("a", false)}},
		{"invalid", CommandSourceCreate, SourceSave{Kind: SourceServer, Key: writeKey("a", false)}},
		{"invalid", CommandSourceCreate, SourceSave{Kind: SourceServer, Name: &blank, Key: writeKey("a", false)}},
		{"invalid", CommandSourceCreate, SourceSave{Kind: SourceServer, Name: &long, Key: writeKey("a", false)}},
		{"invalid", CommandSourceCreate, SourceSave{Kind: SourceServer, Name: &name}},
		{"invalid", CommandSourceCreate, SourceSave{Kind: SourceServer, Name: &name, Key: &NewWriteKey{Hash: "xy"}}},
		{"invalid", CommandSourceCreate, SourceSave{Kind: SourceServer, Name: &name, Key: writeKey("a", true)}},   // its text is secret
		{"invalid", CommandSourceCreate, SourceSave{Kind: SourceBrowser, Name: &name, Key: writeKey("a", false)}}, // its text is shown
		{"invalid", CommandSourceCreate, SourceSave{Kind: SourceServer, Name: &name, Key: writeKey("a", false), AllowedOrigins: &origins}},
		{"conflict", CommandSourceCreate, SourceSave{Kind: SourceServer, Name: &name, Key: writeKey("wk_b", false)}},
		{"invalid", CommandSourceUpdate, SourceSave{ID: server, UserID: &wrong}},
		{"not_found", CommandSourceUpdate, SourceSave{ID: "src_none", Name: &name}},
		{"not_found", CommandSourceDelete, SourceRef{ID: "src_none"}},
		{"not_found", CommandSourceKeyCreate, SourceRef{ID: "src_none", Key: writeKey("a", false)}},
		{"invalid", CommandSourceKeyCreate, SourceRef{ID: server}},
		{"conflict", CommandSourceKeyCreate, SourceRef{ID: server, Key: writeKey("wk_s", false)}},
		{"not_found", CommandSourceKeyRevoke, SourceRef{ID: "src_none", KeyID: "wky_none"}},
		{"not_found", CommandSourceKeyRevoke, SourceRef{ID: server, KeyID: "wky_none"}},
	} {
		r.refusedWhole(c.code, c.name, c.args)
	}
	for _, bad := range []string{"", "shop.example", "ftp://shop.example", "https://", "https://*", "https://*.", "https://a.*.example", "https://shop.example/", "https://shop.example?x", "https://u@shop.example", "**", "null", "https://a,b", "https://" + strings.Repeat("x", 300)} {
		r.refusedWhole("invalid", CommandSourceUpdate, SourceSave{ID: browser, AllowedOrigins: &[]string{bad}})
	}
	many := make([]string, maxOrigins+1)
	for i := range many {
		many[i] = fmt.Sprintf("https://s%d.example", i)
	}
	r.refusedWhole("invalid", CommandSourceUpdate, SourceSave{ID: browser, AllowedOrigins: &many})

	r.must(CommandSourceUpdate, signed(SourceSave{ID: browser, AllowedOrigins: &origins, Enabled: &off}, "usr_1"))
	second := answer[struct {
		KeyID string `json:"key_id"`
	}](t, r.must(CommandSourceKeyCreate, signed(SourceRef{ID: server, Key: writeKey("wk_t", false)}, "usr_1"))).KeyID
	first := r.m.accounts[testAccount].sources[server].Keys[0].ID
	r.must(CommandSourcesUsed, SourcesUsed{Uses: []SourceUse{{testAccount, server, second, 50}, {testAccount, server, "wky_none", 50}, {testAccount, "src_none", second, 50}, {99, server, second, 50}}})
	r.must(CommandSourcesUsed, SourcesUsed{Uses: []SourceUse{{testAccount, server, second, 40}}})
	r.now += 5
	r.must(CommandSourceKeyRevoke, signed(SourceRef{ID: server, KeyID: first}, "usr_1"))
	r.now += 5
	r.must(CommandSourceKeyRevoke, SourceRef{ID: server, KeyID: first}) // once is enough

	before := r.view().Sources()
	d.reload()
	after := r.view().Sources()
	if !reflect.DeepEqual(before, after) || len(after) != 2 {
		t.Fatalf("before the restart %+v\nafter it %+v", before, after)
	}
	if s, _ := r.view().Source(server); s.Keys[0].RevokedMs != r.now-5 || s.Keys[1].LastUsedMs != 50 {
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
	if k := keys[sha256.Sum256([]byte("wk_t"))]; k.Public || !k.Enabled || k.UserIDIs != UserIDIsEmail || !k.KeepContext {
		t.Errorf("%+v", k)
	}
	list, err := r.view().Changes("source", "", 0, 10)
	if err != nil || len(list) != 4 || list[0].Action != "source.key.revoke" || list[3].Action != "source.create" || list[3].ID != browser || list[3].Name != name {
		t.Errorf("%+v, %v", list, err)
	}
	// What is kept of a source counts in the hash.
	hash := hashOf(t, d.m)
	r.m.accounts[testAccount].sources[server].Keys[1].LastUsedMs++
	if hashOf(t, d.m) == hash {
		t.Error("the hash does not see another source")
	}
	r.m.accounts[testAccount].sources[server].Keys[1].LastUsedMs--

	r.must(CommandSourceDelete, signed(SourceRef{ID: browser}, "usr_1"))
	d.reload()
	if list := r.view().Sources(); len(list) != 1 || len(r.m.WriteKeys()) != 1 {
		t.Errorf("%+v", list)
	}
}

// TestEventTypesAreNamedStory: types that were seen get the names that applications give
// them, once; others are not made.
func TestEventTypesAreNamedStory(t *testing.T) {
	r := newAccessRecorder(t)
	r.events(eventlog.Event{Type: []byte("order_completed"), Email: []byte("ann@x.io")})
	r.must(CommandCatalogDefine, CatalogDefine{Name: "Item Viewed"})
	r.must(CommandCatalogName, CatalogName{Types: []EventTypeName{{"order_completed", " Order Completed "}, {"item_viewed", "itemViewed"}, {"unseen", "Unseen"}}})
	r.must(CommandCatalogName, CatalogName{Types: []EventTypeName{{"order_completed", "Other"}}})
	types := r.m.accounts[testAccount].types
	if types["order_completed"].Name != "Order Completed" || types["item_viewed"].Name != "Item Viewed" || types["unseen"] != nil {
		t.Errorf("%+v", types)
	}
	r.refusedWhole("invalid", CommandCatalogName, CatalogName{Types: make([]EventTypeName, MaxEventTypeNames+1)})
}

// TestSourcesBounded (Q1): sources and their keys are bounded, and so are records of keys.
func TestSourcesBounded(t *testing.T) {
	r := newAccessRecorder(t)
	name := "s"
	var id string
	for i := range maxSources {
		id = r.succeeds(CommandSourceCreate, SourceSave{Kind: SourceServer, Name: &name, Key: writeKey(fmt.Sprint("source ", i), false)})
	}
	r.refusedWhole("limit", CommandSourceCreate, SourceSave{Kind: SourceServer, Name: &name, Key: writeKey("one more", false)})
	for i := range maxWriteKeys - 1 {
		r.succeeds(CommandSourceKeyCreate, SourceRef{ID: id, Key: writeKey(fmt.Sprint("key ", i), false)})
	}
	r.refusedWhole("limit", CommandSourceKeyCreate, SourceRef{ID: id, Key: writeKey("one more", false)})
	s := r.m.accounts[testAccount].sources[id]
	for i := range maxWriteKeyRecords - maxWriteKeys {
		s.Keys = append(s.Keys, WriteKey{ID: fmt.Sprint("wky_old", i), Hash: textHash(fmt.Sprint("old ", i)), RevokedMs: int64(i + 1)})
	}
	r.succeeds(CommandSourceKeyRevoke, SourceRef{ID: id, KeyID: s.Keys[0].ID})
	r.succeeds(CommandSourceKeyCreate, SourceRef{ID: id, Key: writeKey("one more", false)})
	if s := r.m.accounts[testAccount].sources[id]; len(s.Keys) != maxWriteKeyRecords || s.Keys[maxWriteKeys].ID != "wky_old1" {
		t.Errorf("%d records, %+v", len(s.Keys), s.Keys[maxWriteKeys])
	}
}

// TestOrigins: which pages may send with the keys of a source.
func TestOrigins(t *testing.T) {
	for _, c := range []struct {
		origin  string
		allowed []string
		want    bool
	}{
		{"https://shop.example", []string{"https://shop.example"}, true},
		{"https://SHOP.example", []string{"https://shop.example"}, true},
		{"http://shop.example", []string{"https://shop.example"}, false},
		{"https://shop.example:8443", []string{"https://shop.example"}, false},
		{"https://a.shop.example", []string{"https://shop.example"}, false},
		{"https://a.shop.example", []string{"https://*.shop.example"}, true},
		{"https://a.b.shop.example", []string{"https://*.shop.example"}, true},
		{"https://shop.example", []string{"https://*.shop.example"}, false},
		{"https://evilshop.example", []string{"https://*.shop.example"}, false},
		{"https://shop.example.evil", []string{"https://*.shop.example", "https://shop.example"}, false},
		{"null", []string{"https://shop.example"}, false},
		{"null", []string{AnyOrigin}, true},
		{"https://x.example", []string{}, false},
	} {
		s := SourceAccess{AllowedOrigins: c.allowed}
		if got := s.OriginAllowed(c.origin); got != c.want {
			t.Errorf("%s with %q: %v", c.origin, c.allowed, got)
		}
	}
}
