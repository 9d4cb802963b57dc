package resolver

import (
	"fmt"
	"testing"
)

const (
	phoneNotAdded = "user.phone not added: the profile may have no more identifiers; see its conflicts"
	bothNotAdded  = "user.external_id, user.phone not added: the profile may have no more identifiers; see its conflicts"
)

// TestIdentifiersBeyondTheCap: an event with more identifiers than its profile may
// have is stored, says so, and says so again when it is repeated; the profile's
// conflicts have each value once.
func TestIdentifiersBeyondTheCap(t *testing.T) {
	t.Parallel()
	settings := DefaultSettings()
	settings.IdentifierCap = 2
	r := newRecorder(t, settings)
	outcome := func(step string, want EventStatus, warning string, pairs ...string) ProfileID {
		t.Helper()
		o := r.events(ev(pairs...)).Events[0]
		if o.Status != want || o.Warning() != warning || o.Refusal != nil {
			t.Errorf("%s: status %d, %q, %v; want %d, %q", step, o.Status, o.Warning(), o.Refusal, want, warning)
		}
		return o.Profile
	}
	id := outcome("within", EventAccepted, "", "email", "a@x.io", "external_id", "1")
	outcome("one more", EventAccepted, phoneNotAdded, "email", "a@x.io", "phone", "+49301", "key", "k1")
	outcome("its repeat", EventDuplicate, phoneNotAdded, "email", "a@x.io", "phone", "+49 30 1", "key", "k1")
	outcome("the same value", EventAccepted, phoneNotAdded, "email", "a@x.io", "phone", "+49301")
	outcome("another, and two at once", EventAccepted, bothNotAdded, "email", "a@x.io", "external_id", "2", "phone", "+49302", "key", "k2")
	outcome("their repeat", EventDuplicate, bothNotAdded, "email", "a@x.io", "external_id", "2", "phone", "+49302", "key", "k2")
	outcome("no more than it has", EventAccepted, "", "email", "a@x.io", "external_id", "1", "key", "k3")
	outcome("its repeat", EventDuplicate, "", "email", "a@x.io", "external_id", "1", "key", "k3")

	// A merge that would exceed the cap leaves the identifier where it is.
	other := outcome("somebody else", EventAccepted, "", "phone", "+49309")
	outcome("both", EventAccepted, phoneNotAdded, "email", "a@x.io", "phone", "+49309", "key", "k4")
	outcome("both again", EventDuplicate, phoneNotAdded, "email", "a@x.io", "phone", "+49309", "key", "k4")
	// Two people stay apart for another reason, which is no matter of the cap.
	second := outcome("the second of two people", EventAccepted, "", "email", "b@x.io")
	outcome("two people", EventAccepted, "", "email", "b@x.io", "external_id", "1", "key", "k5")
	outcome("two people again", EventDuplicate, "", "email", "b@x.io", "external_id", "1", "key", "k5")

	v := r.m.View(nil, testAccount)
	p, err := v.Profiles().Get(id.Ordinal())
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, c := range p.Conflicts {
		of := "nobody"
		if c.Other != nil {
			of = c.Other.String()
		}
		got += fmt.Sprintf("%s %s %s, ", c.Kind, c.Value, of)
	}
	want := "phone +49301 nobody, external_id 2 nobody, phone +49302 nobody, phone +49309 " + other.String() + ", external_id 1 " + second.String() + ", "
	if got != want {
		t.Errorf("conflicts\n%s\nwant\n%s", got, want)
	}
}

// TestAcceptedAllocatesNoWarning: without a warning there is nothing to make.
func TestAcceptedAllocatesNoWarning(t *testing.T) {
	o := EventOutcome{Status: EventAccepted}
	if n := testing.AllocsPerRun(100, func() { _ = o.Warning() }); n != 0 || o.Warning() != "" {
		t.Errorf("%v allocations for %q", n, o.Warning())
	}
}

// TestKeyOfAnotherPerson: the answer to a reuse of an idempotency key for another
// person says that the event was not recorded; a repeat of the same person's event is
// not.
func TestKeyOfAnotherPerson(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	outcome := func(step string, want EventStatus, warning string, pairs ...string) ProfileID {
		t.Helper()
		o := r.events(ev(pairs...)).Events[0]
		if o.Status != want || o.Warning() != warning || o.Refusal != nil {
			t.Errorf("%s: status %d, %q, %v; want %d, %q", step, o.Status, o.Warning(), o.Refusal, want, warning)
		}
		return o.Profile
	}
	ann := outcome("the first", EventAccepted, "", "email", "ann@x.io", "external_id", "1", "key", "k")
	outcome("its repeat", EventDuplicate, "", "email", "ann@x.io", "external_id", "1", "key", "k")
	outcome("with less of the person", EventDuplicate, "", "external_id", "1", "key", "k")
	outcome("with more of the person", EventDuplicate, "", "email", "new@x.io", "external_id", "1", "key", "k")
	outcome("written otherwise", EventDuplicate, "", "email", " ANN@x.io", "key", "k")
	outcome("a placeholder beside", EventDuplicate, "user.external_id left out: a placeholder or blank is no identifier; send nothing when it is not known", "email", "ann@x.io", "external_id", "null", "key", "k")
	if id := outcome("somebody new", EventDuplicate, foreignKey, "email", "bob@x.io", "key", "k"); id != ann {
		t.Errorf("the answer is %s, not the first", id)
	}
	bob := outcome("not stored", EventAccepted, "", "email", "bob@x.io", "key", "k2")
	outcome("somebody on file", EventDuplicate, foreignKey, "email", "bob@x.io", "key", "k")
	outcome("and of the other", EventDuplicate, foreignKey, "email", "ann@x.io", "key", "k2")

	// When both turn out to be one person, both keys are theirs.
	outcome("one person", EventAccepted, "", "external_id", "2", "phone", "+4930")
	outcome("with a key", EventAccepted, "", "phone", "+4930", "key", "k3")
	outcome("merged", EventAccepted, "", "email", "bob@x.io", "phone", "+4930")
	if id := outcome("a repeat after the merge", EventDuplicate, "", "email", "bob@x.io", "key", "k3"); id == bob {
		t.Error("the first answer changed")
	}
}
