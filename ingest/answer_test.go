package ingest

import (
	"testing"

	"github.com/musterhq/muster/resolver"
)

// TestWarning: an event that was stored without an identifier says so, and one that
// was stored whole has no such member.
func TestWarning(t *testing.T) {
	t.Parallel()
	id := resolver.ProfileID{15: 1}
	for _, x := range []struct {
		outcome resolver.EventOutcome
		want    string
	}{
		{resolver.EventOutcome{Status: resolver.EventAccepted, Profile: id}, `{"success":true,"profile_id":"prf_00000000000000000000000000000001","error":null}`},
		{resolver.EventOutcome{Status: resolver.EventAccepted, Profile: id, NotAdded: 1 << resolver.IdentityPhone},
			`{"success":true,"profile_id":"prf_00000000000000000000000000000001","error":null,"warning":"user.phone not added: the profile may have no more identifiers; see its conflicts"}`},
		{resolver.EventOutcome{Status: resolver.EventDuplicate, Profile: id, NotAdded: 7},
			`{"success":true,"profile_id":"prf_00000000000000000000000000000001","error":null,"warning":"user.email, user.external_id, user.phone not added: the profile may have no more identifiers; see its conflicts"}`},
	} {
		got := string(appendResult(nil, &x.outcome, nil))
		if got != x.want {
			t.Errorf("%s\nwant %s", got, x.want)
		}
		if len(got) > outcomeBytes-32 { // and what the state makes of it
			t.Errorf("an answer of %d bytes takes more memory than is counted", len(got))
		}
	}
}
