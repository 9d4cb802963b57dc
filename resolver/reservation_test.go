package resolver

import (
	"encoding/json"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/state"
)

// directoryAsk has a machine answer one ask.
func (r *recorder) directoryAsk(x EmailAsk) EmailAnswered {
	r.t.Helper()
	var out EmailReserved
	if err := json.Unmarshal(r.ofPartition(CommandEmailReserve, EmailReserve{[]EmailAsk{x}}).Reply, &out); err != nil {
		r.t.Fatal(err)
	}
	return out.Items[0]
}

// ofPartition applies a command of account 0.
func (r *recorder) ofPartition(name string, args any) *Outcome {
	r.t.Helper()
	env := r.envelope(eventlog.KindCommand)
	env.Account = 0
	r.apply(eventlog.AppendCommand(env.Append(nil), name, must.JSON(args)))
	return &r.out
}

// TestQ1ReservationsAreBounded: what is neither confirmed nor released, how far
// ahead it may end, what waits to be released, and the work of one record.
func TestQ1ReservationsAreBounded(t *testing.T) {
	r := newRecorder(t, DefaultSettings())
	name := func(i int) EmailName { return EmailName{byte(i), byte(i >> 8)} }
	ask := EmailAsk{Account: 9, ID: ReservationID{1}, Take: []EmailName{name(1)}, UntilMs: r.now + maxReserveMs + 1}
	if got := r.directoryAsk(ask).Answer; got != EmailAhead {
		t.Errorf("a reservation of more than %d ms: %s", maxReserveMs, got)
	}
	ask.UntilMs--
	if got := r.directoryAsk(ask).Answer; got != EmailGranted {
		t.Errorf("a reservation of %d ms: %s", maxReserveMs, got)
	}
	for i := len(r.m.emails.reserved); i < maxReserved; i++ {
		r.m.emails.reserved[ReservationID{2, byte(i), byte(i >> 8), byte(i >> 16)}] = &reservation{}
	}
	if got := r.directoryAsk(ask).Answer; got != EmailGranted {
		t.Errorf("a repetition at the bound: %s", got)
	}
	other := EmailAsk{Account: 9, ID: ReservationID{3}, Take: []EmailName{name(3)}, UntilMs: r.now}
	if got := r.directoryAsk(other).Answer; got != EmailFull {
		t.Errorf("one reservation more than %d: %s", maxReserved, got)
	}
	r.ofPartition(CommandEmailConfirm, EmailConfirm{[]EmailConfirmed{{ReservationID{1}, r.directoryAsk(ask).At}}})
	if got := r.directoryAsk(other).Answer; got != EmailGranted {
		t.Errorf("one is confirmed, so there is room: %s", got)
	}
	for command, args := range map[string]any{
		CommandEmailReserve:  EmailReserve{make([]EmailAsk, MaxEmailItems+1)},
		CommandEmailConfirm:  EmailConfirm{make([]EmailConfirmed, MaxEmailItems+1)},
		CommandEmailRelease:  EmailRelease{make([]EmailNames, MaxEmailItems+1)},
		CommandEmailSettle:   EmailSettle{make([]EmailNames, MaxEmailItems+1)},
		CommandEmailReleased: EmailReleased{make([]EmailNames, MaxEmailItems+1)},
	} {
		if out := r.ofPartition(command, args); out.Refusal == nil || out.Refusal.Code != "limit" {
			t.Errorf("%s of %d items: %v", command, MaxEmailItems+1, out.Refusal)
		}
	}
	id := r.contact(ContactCreate{Email: "ada@x.io"})
	for i := range maxReleases - 1 {
		r.m.emails.releases[releaseKey{name: name(i), id: ReservationID{byte(i >> 16)}}] = testAccount
	}
	if out := r.command(CommandContactErase, ContactErase{ID: id}); out.Refusal == nil || out.Refusal.Code != "limit" {
		t.Errorf("an erasure beyond what can wait to be released: %v", out.Refusal)
	}
	if n := len(r.m.ReleasesWaiting()); n != MaxEmailItems {
		t.Errorf("%d names go into one record, expected %d", n, MaxEmailItems)
	}
}

// TestGrantIsNoExcuse: an e-mail is taken with a grant of all its names only, before
// its end, and what is on file is refused with any.
func TestGrantIsNoExcuse(t *testing.T) {
	r := newRecorder(t, DefaultSettings())
	const email = "straße@x.io"
	names := r.m.namesToReserve(r.m.accounts[testAccount], email)
	if len(names) != 2 {
		t.Fatalf("%q has %d names, expected its own and the folded one", email, len(names))
	}
	for what, g := range map[string]struct {
		EmailGrant
		code string
	}{
		"none":     {EmailGrant{}, codeUnreserved},
		"half":     {EmailGrant{ID: ReservationID{1}, Names: names[:1], UntilMs: r.now + 1}, codeUnreserved},
		"too late": {EmailGrant{ID: ReservationID{1}, Names: names, UntilMs: r.now}, codeExpired},
		"taken":    {EmailGrant{Taken: true}, "conflict"},
	} {
		if out := r.command(CommandContactCreate, ContactCreate{Email: email, Grant: &g.EmailGrant}); out.Refusal == nil || out.Refusal.Code != g.code {
			t.Errorf("%s: %v, expected a refusal with code %q", what, out.Refusal, g.code)
		}
	}
	grant := &EmailGrant{ID: ReservationID{1}, Names: names, UntilMs: r.now + 1}
	r.must(CommandContactCreate, ContactCreate{Email: email, Grant: grant})
	r.refuses(MessageDuplicateEmail, CommandContactCreate, ContactCreate{Email: email, Grant: grant})
}

// BenchmarkDirectory reserves and confirms e-mails, 512 in a record each.
func BenchmarkDirectory(b *testing.B) {
	r := newRecorder(b, DefaultSettings())
	b.ReportAllocs()
	for n := 0; n < b.N; {
		var ask EmailReserve
		var confirm EmailConfirm
		for len(ask.Items) < MaxEmailItems {
			n++
			id := ReservationID{1, byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}
			own := EmailName(id)
			ask.Items = append(ask.Items, EmailAsk{Account: 9, ID: id, Take: []EmailName{own}, Check: []EmailName{own, own, {2, byte(n), byte(n >> 8), byte(n >> 16)}}, UntilMs: r.now + 60_000})
		}
		at := r.m.next + 1
		r.ofPartition(CommandEmailReserve, ask)
		for _, x := range ask.Items {
			confirm.Items = append(confirm.Items, EmailConfirmed{x.ID, at})
		}
		r.ofPartition(CommandEmailConfirm, confirm)
	}
}

// TestM3LateRecordsConfirmNothing: a reservation that is over, and is made again by
// a record that comes late, is not confirmed by one that comes late, too.
func TestM3LateRecordsConfirmNothing(t *testing.T) {
	r := newRecorder(t, DefaultSettings())
	name, id := EmailName{1}, ReservationID{1}
	ask := EmailAsk{Account: 9, ID: id, Take: []EmailName{name}, UntilMs: r.now + 60_000}
	first := r.directoryAsk(ask)
	if again := r.directoryAsk(ask); again != first || first.At == 0 {
		t.Fatalf("a repetition answered %+v, the first time it was %+v", again, first)
	}
	confirm := EmailConfirm{[]EmailConfirmed{{id, first.At}}}
	r.ofPartition(CommandEmailConfirm, confirm)
	if got := r.directoryAsk(ask); got != (EmailAnswered{Answer: EmailGranted}) || len(r.m.emails.reserved) > 0 {
		t.Fatalf("a repetition of what is confirmed answered %+v", got)
	}
	r.ofPartition(CommandEmailRelease, EmailRelease{[]EmailNames{{Account: 9, ID: id, Names: []EmailName{name}}}})
	if _, ok := r.m.holder(name); ok {
		t.Fatal("what was released is held")
	}
	r.directoryAsk(ask)
	r.ofPartition(CommandEmailConfirm, confirm)
	if len(r.m.emails.reserved) != 1 {
		t.Error("M3: nobody has the e-mail, and it is confirmed for good")
	}
}

// TestR1HashHoldsReservations: each piece of what is known of e-mails is in the
// state's hash, from memory and from a checkpoint.
func TestR1HashHoldsReservations(t *testing.T) {
	d := newDurable(t, DefaultSettings())
	names := d.m.namesToReserve(d.m.accounts[testAccount], "straße@x.io")
	grant := &EmailGrant{ID: ReservationID{1}, Names: names, UntilMs: d.now + 1}
	d.must(CommandContactCreate, ContactCreate{Email: "straße@x.io", Grant: grant})
	d.directoryAsk(EmailAsk{Account: 9, ID: ReservationID{2}, Take: []EmailName{{2}}, UntilMs: d.now})
	d.m.queueRelease(9, EmailName{3}, ReservationID{3})
	d.reload()
	seen := map[string]string{hashOf(t, d.m): "nothing"}
	for _, change := range []struct {
		what string
		make func()
	}{
		{"a holder's id", func() { d.m.putHolder(EmailName{2}, &holder{9, ReservationID{4}}) }},
		{"a holder", func() { d.m.putHolder(EmailName{2}, nil) }},
		{"another name", func() { d.m.putHolder(EmailName{5}, &holder{9, ReservationID{4}}) }},
		{"the end of a reservation", func() { d.m.emails.reserved[ReservationID{2}].UntilMs++ }},
		{"a reservation", func() { d.m.putReservation(ReservationID{2}, nil) }},
		{"what is to be released", func() { d.m.queueRelease(9, EmailName{3}, ReservationID{4}) }},
		{"the id under which an account holds a name", func() {
			d.m.store.PutEntity(state.EntityKey(testAccount, state.EntityReservation, string(names[0][:])), make([]byte, 16))
		}},
	} {
		change.make()
		got := hashOf(t, d.m)
		if before, ok := seen[got]; ok {
			t.Errorf("R1: with %s changed the hash is as with %s", change.what, before)
		}
		seen[got] = change.what
	}
}
