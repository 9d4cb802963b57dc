package sources

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/resolver/internal/featuretest"
	"github.com/musterhq/muster/resolver/internal/state"
)

func newWorld(t *testing.T) *featuretest.World[*State] {
	t.Helper()
	return featuretest.New(t, Commands, func(*state.Store) *State { return New() })
}

func serverKey(text string) *NewWriteKey { return &NewWriteKey{Hash: featuretest.TextHash(text)} }

// TestSourcesBounded (Q1): sources and their keys are bounded, and so are records of keys.
func TestSourcesBounded(t *testing.T) {
	r := newWorld(t)
	name := "s"
	var id string
	for i := range maxSources {
		id = r.Must(CommandCreate, Save{Kind: Server, Name: &name, Key: serverKey(fmt.Sprint("source ", i))})
	}
	r.Refused("limit", CommandCreate, Save{Kind: Server, Name: &name, Key: serverKey("one more")})
	for i := range maxWriteKeys - 1 {
		r.Must(CommandKeyCreate, Ref{ID: id, Key: serverKey(fmt.Sprint("key ", i))})
	}
	r.Refused("limit", CommandKeyCreate, Ref{ID: id, Key: serverKey("one more")})
	s := r.State.table.Get(id)
	for i := range maxWriteKeyRecords - maxWriteKeys {
		s.Keys = append(s.Keys, WriteKey{ID: fmt.Sprint("wky_old", i), Hash: featuretest.TextHash(fmt.Sprint("old ", i)), RevokedMs: int64(i + 1)})
	}
	r.Must(CommandKeyRevoke, Ref{ID: id, KeyID: s.Keys[0].ID})
	r.Must(CommandKeyCreate, Ref{ID: id, Key: serverKey("one more")})
	if s := r.State.table.Get(id); len(s.Keys) != maxWriteKeyRecords || s.Keys[maxWriteKeys].ID != "wky_old1" {
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
		s := Access{AllowedOrigins: c.allowed}
		if got := s.OriginAllowed(c.origin); got != c.want {
			t.Errorf("%s with %q: %v", c.origin, c.allowed, got)
		}
	}
}
