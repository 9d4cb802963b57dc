package resolver

import (
	"testing"

	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/internal/reservation"
)

// TestGrantIsNoExcuse: an e-mail is taken with a grant of all its names only, before
// its end, and what is on file is refused with any.
func TestGrantIsNoExcuse(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	const email = "straße@x.io"
	names := r.m.namesToReserve(r.m.accounts[testAccount], email)
	if len(names) != 2 {
		t.Fatalf("%q has %d names, expected its own and the folded one", email, len(names))
	}
	for what, g := range map[string]struct {
		emaildir.Grant
		code string
	}{
		"none":     {emaildir.Grant{}, reservation.CodeUnreserved},
		"half":     {emaildir.Grant{ID: emaildir.ReservationID{1}, Names: names[:1], UntilMs: r.now + 1}, reservation.CodeUnreserved},
		"too late": {emaildir.Grant{ID: emaildir.ReservationID{1}, Names: names, UntilMs: r.now}, reservation.CodeExpired},
		"taken":    {emaildir.Grant{Taken: true}, "conflict"},
	} {
		if out := r.command(contacts.CommandCreate, contacts.Create{Email: email, Grant: &g.Grant}); out.Refusal == nil || out.Refusal.Code != g.code {
			t.Errorf("%s: %v, expected a refusal with code %q", what, out.Refusal, g.code)
		}
	}
	grant := &emaildir.Grant{ID: emaildir.ReservationID{1}, Names: names, UntilMs: r.now + 1}
	r.must(contacts.CommandCreate, contacts.Create{Email: email, Grant: grant})
	r.refuses(contacts.MessageDuplicateEmail, contacts.CommandCreate, contacts.Create{Email: email, Grant: grant})
}

// TestQ1ErasuresWaitForReleases: what waits to be released is bounded.
func TestQ1ErasuresWaitForReleases(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	id := r.contact(contacts.Create{Email: "ada@x.io"})
	for i := range emaildir.MaxReleases - 1 {
		name := []emaildir.Name{{byte(i), byte(i >> 8), byte(i >> 16)}}
		r.m.emailDirectory.Hold(testAccount, name, &emaildir.Grant{})
		r.m.emailDirectory.LetGo(testAccount, name)
	}
	if out := r.command(CommandContactErase, ContactErase{ID: id}); out.Refusal == nil || out.Refusal.Code != "limit" {
		t.Errorf("an erasure beyond what can wait to be released: %v", out.Refusal)
	}
}
