package domains

import (
	"testing"

	"github.com/musterhq/muster/resolver/internal/featuretest"
	"github.com/musterhq/muster/resolver/internal/state"
)

// TestVerifiedByTheTokenThatWasLookedUp: a domain that was removed and added again is not
// verified by the token of the one before. A record without a token is applied, as in old
// logs.
func TestVerifiedByTheTokenThatWasLookedUp(t *testing.T) {
	r := featuretest.New(t, Commands, func(*state.Store) *State { return New() })
	verify := Name{Name: "x.example", By: "dns", Token: "1"}
	verified := func() bool { d, _ := r.State.Get("x.example"); return d.VerifiedMs != 0 }
	r.Must(CommandAdd, Domain{Name: "x.example", Token: "1"})
	r.Must(CommandDelete, Name{Name: "x.example"})
	r.Must(CommandAdd, Domain{Name: "x.example", Token: "2"})
	if r.Refused("conflict", CommandVerify, verify); verified() {
		t.Error("verified by the token of the domain before")
	}
	verify.Token = ""
	if r.Must(CommandVerify, verify); !verified() {
		t.Error("not verified by a record without a token")
	}
}
