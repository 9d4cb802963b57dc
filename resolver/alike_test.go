package resolver

import (
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/contacts"
)

// inOther does something in another account of the partition.
func (r *recorder) inOther(name string, args any) *Refusal {
	const other = 9
	if r.m.accounts[other] == nil {
		if err := r.m.addAccount(other).Install(r.m.accounts[testAccount].Entity); err != nil {
			r.t.Fatal(err)
		}
		r.m.saveAccount(r.m.accounts[other])
	}
	env := r.envelope(eventlog.KindCommand)
	env.Account = other
	r.apply(eventlog.AppendCommand(env.Append(nil), name, must.JSON(args)))
	return r.out.Refusal
}

// TestC2EmailsAreUniqueWhateverTheirCase: e-mails that differ in case alone,
// folded in full, are one to contacts: in the account, in others, after a restart,
// until the contact is erased (C2, R1).
func TestC2EmailsAreUniqueWhateverTheirCase(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	for _, alike := range [][]string{
		{"straße@x.de", "STRASSE@x.de", "ſtraße@x.de", "STRAẞE@X.de", "strasse@x.de"},
		{"ΣΣ@x.gr", "σς@x.gr", "σσ@x.gr"},
		{"ſs@x.io", "ss@x.io", "ß@x.io"},
		{"İda@x.io", "ida@x.io", "i\u0307da@x.io"},
	} {
		for _, first := range alike {
			for _, second := range alike {
				d := newDurable(t, DefaultSettings())
				r := d.recorder
				l, id := r.list("l"), r.contact(contacts.Create{Email: first})
				bystander := r.contact(contacts.Create{})
				for range 2 {
					r.refuses(contacts.MessageDuplicateEmail, contacts.CommandCreate, contacts.Create{Email: second})
					r.refuses(contacts.MessageDuplicateEmail, contacts.CommandUpdate, contacts.Update{ID: bystander, Email: text(second)})
					if normal(IdentityEmail, first) != normal(IdentityEmail, second) {
						r.refuses(contacts.MessageDuplicateEmail, contacts.CommandListAdd, contacts.ListAdd{ListID: l, Create: contacts.Create{Email: second}})
					}
					if got := r.inOther(contacts.CommandCreate, contacts.Create{Email: second}); got == nil || got.Message != contacts.MessageDuplicateEmail {
						t.Fatalf("%q is on file, another account made %q: %v", first, second, got)
					}
					if first == alike[0] {
						d.reload()
					}
				}
				// One's own e-mail in another spelling is no other's.
				r.must(contacts.CommandUpdate, contacts.Update{ID: id, Email: text(second)})
				r.must(CommandContactErase, ContactErase{ID: id})
				if got := r.inOther(contacts.CommandCreate, contacts.Create{Email: second}); got != nil {
					t.Fatalf("%q was erased, %q is still taken: %v", first, second, got.Message)
				}
				if a := r.m.accounts[testAccount]; a.Profiles.CaseFolds() != 0 {
					t.Fatalf("%d folded forms of erased profiles are kept", a.Profiles.CaseFolds())
				}
			}
		}
	}
}

// TestC2OnlyContactsReserve: an e-mail of an event blocks contacts of its own
// account and of no other, and its erasure leaves alone what a contact's reserves.
func TestC2OnlyContactsReserve(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.events(ev("email", "straße@x.de"))
	r.refuses(contacts.MessageDuplicateEmail, contacts.CommandCreate, contacts.Create{Email: "STRASSE@x.de"})
	if got := r.inOther(contacts.CommandCreate, contacts.Create{Email: "STRASSE@x.de"}); got != nil {
		t.Fatalf("an event of one account blocks contacts of another: %v", got.Message)
	}
	r.contact(contacts.Create{Email: "ΣΣ@x.gr"}) // its normal form is the folded one
	r.contact(contacts.Create{Email: "ας@x.gr"}) // its is not
	for _, email := range []string{"σς@x.gr", "ασ@x.gr"} {
		// Events see two people, as their normal forms differ.
		other := r.events(ev("email", email)).Events[0].Profile.String()
		r.must(CommandContactErase, ContactErase{ID: other})
	}
	for _, email := range []string{"σς@x.gr", "ΑΣ@x.gr", "ας@x.gr"} {
		if got := r.inOther(contacts.CommandCreate, contacts.Create{Email: email}); got == nil {
			t.Errorf("%q is a contact's, another account made one, too", email)
		}
	}
	if got := r.inOther(contacts.CommandCreate, contacts.Create{Email: "strase@x.de"}); got != nil {
		t.Errorf("another e-mail is refused: %v", got.Message)
	}
}
