package emaildir

import (
	"testing"

	"github.com/musterhq/muster/resolver/internal/featuretest"
)

func newWorld(t testing.TB) *world {
	t.Helper()
	return &world{featuretest.New(t, Commands, New)}
}

// world is a partition without the machine.
type world struct{ *featuretest.World[*State] }

// ask has the directory answer one ask.
func (r *world) ask(x Ask) Answered {
	r.T.Helper()
	reply, refusal := r.Do(CommandReserve, Reserve{[]Ask{x}})
	if refusal != nil {
		r.T.Fatal(refusal)
	}
	return reply.(Reserved).Items[0]
}

// TestQ1ReservationsAreBounded: what is neither confirmed nor released, how far
// ahead it may end, and the work of one record.
func TestQ1ReservationsAreBounded(t *testing.T) {
	r := newWorld(t)
	name := func(i int) Name { return Name{byte(i), byte(i >> 8)} }
	ask := Ask{Account: 9, ID: ReservationID{1}, Take: []Name{name(1)}, UntilMs: r.Now + maxReserveMs + 1}
	if got := r.ask(ask).Answer; got != Ahead {
		t.Errorf("a reservation of more than %d ms: %s", maxReserveMs, got)
	}
	ask.UntilMs--
	if got := r.ask(ask).Answer; got != Granted {
		t.Errorf("a reservation of %d ms: %s", maxReserveMs, got)
	}
	for i := len(r.State.reserved); i < MaxReserved; i++ {
		r.State.reserved[ReservationID{2, byte(i), byte(i >> 8), byte(i >> 16)}] = &reservation{}
	}
	if got := r.ask(ask).Answer; got != Granted {
		t.Errorf("a repetition at the bound: %s", got)
	}
	other := Ask{Account: 9, ID: ReservationID{3}, Take: []Name{name(3)}, UntilMs: r.Now}
	if got := r.ask(other).Answer; got != Full {
		t.Errorf("one reservation more than %d: %s", MaxReserved, got)
	}
	r.Must(CommandConfirm, Confirm{[]Confirmed{{ReservationID{1}, r.ask(ask).At}}})
	if got := r.ask(other).Answer; got != Granted {
		t.Errorf("one is confirmed, so there is room: %s", got)
	}
	for command, args := range map[string]any{
		CommandReserve:   Reserve{make([]Ask, MaxItems+1)},
		CommandConfirm:   Confirm{make([]Confirmed, MaxItems+1)},
		CommandRelease:   Release{make([]Names, MaxItems+1)},
		CommandReconcile: Reconcile{make([]Names, MaxItems+1)},
		CommandReleased:  Released{make([]Names, MaxItems+1)},
	} {
		r.Refused("limit", command, args)
	}
	for i := range MaxReleases - 1 {
		r.State.releases[releaseKey{name: name(i), id: ReservationID{byte(i >> 16)}}] = 9
	}
	if n := len(r.State.ReleasesWaiting()); n != MaxItems {
		t.Errorf("%d names go into one record, expected %d", n, MaxItems)
	}
}

// TestM3LateRecordsConfirmNothing: a reservation that is over, and is made again by
// a record that comes late, is not confirmed by one that comes late, too.
func TestM3LateRecordsConfirmNothing(t *testing.T) {
	r := newWorld(t)
	name, id := Name{1}, ReservationID{1}
	ask := Ask{Account: 9, ID: id, Take: []Name{name}, UntilMs: r.Now + 60_000}
	first := r.ask(ask)
	if again := r.ask(ask); again != first || first.At == 0 {
		t.Fatalf("a repetition answered %+v, the first time it was %+v", again, first)
	}
	confirm := Confirm{[]Confirmed{{id, first.At}}}
	r.Must(CommandConfirm, confirm)
	if got := r.ask(ask); got != (Answered{Answer: Granted}) || len(r.State.reserved) > 0 {
		t.Fatalf("a repetition of what is confirmed answered %+v", got)
	}
	r.Must(CommandRelease, Release{[]Names{{Account: 9, ID: id, Names: []Name{name}}}})
	if _, ok := r.State.Holder(name); ok {
		t.Fatal("what was released is held")
	}
	r.ask(ask)
	r.Must(CommandConfirm, confirm)
	if len(r.State.reserved) != 1 {
		t.Error("M3: no account has the e-mail, and it is confirmed for good")
	}
}

// TestR1HashHoldsReservations: each piece of what is known of e-mails is in the
// state's hash.
func TestR1HashHoldsReservations(t *testing.T) {
	d := newWorld(t)
	names := []Name{{7}, {8}}
	d.State.Hold(featuretest.Account, names, &Grant{ID: ReservationID{1}, Names: names, UntilMs: d.Now + 1})
	d.ask(Ask{Account: 9, ID: ReservationID{2}, Take: []Name{{2}}, UntilMs: d.Now})
	d.State.queueRelease(9, Name{3}, ReservationID{3})
	seen := map[string]string{d.Hash(): "nothing"}
	for _, change := range []struct {
		what string
		make func()
	}{
		{"a holder's id", func() { d.State.putHolder(Name{2}, &Holder{Account: 9, ID: ReservationID{4}}) }},
		{"a holder", func() { d.State.putHolder(Name{2}, nil) }},
		{"another name", func() { d.State.putHolder(Name{5}, &Holder{Account: 9, ID: ReservationID{4}}) }},
		{"the end of a reservation", func() { d.State.reserved[ReservationID{2}].UntilMs++ }},
		{"a reservation", func() { d.State.putReservation(ReservationID{2}, nil) }},
		{"what is to be released", func() { d.State.queueRelease(9, Name{3}, ReservationID{4}) }},
		{"the id under which an account holds a name", func() {
			d.State.store.PutEntity(heldKey(featuretest.Account, names[0]), make([]byte, 16))
		}},
	} {
		change.make()
		got := d.Hash()
		if before, ok := seen[got]; ok {
			t.Errorf("R1: with %s changed the hash is as with %s", change.what, before)
		}
		seen[got] = change.what
	}
}

// BenchmarkDirectory reserves and confirms e-mails, 512 in a record each.
func BenchmarkDirectory(b *testing.B) {
	r := newWorld(b)
	b.ReportAllocs()
	for n := 0; n < b.N; {
		var ask Reserve
		var confirm Confirm
		for len(ask.Items) < MaxItems {
			n++
			id := ReservationID{1, byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}
			own := Name(id)
			ask.Items = append(ask.Items, Ask{Account: 9, ID: id, Take: []Name{own}, Check: []Name{own, own, {2, byte(n), byte(n >> 8), byte(n >> 16)}}, UntilMs: r.Now + 60_000})
		}
		r.Must(CommandReserve, ask)
		for _, x := range ask.Items {
			confirm.Items = append(confirm.Items, Confirmed{x.ID, r.State.reserved[x.ID].At})
		}
		r.Must(CommandConfirm, confirm)
	}
}
