package resolver

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/reservation"
)

// The simulation of reservations: several partitions, and actors that make contacts,
// erase them, release and reconcile. Actors are coroutines: at each step, before and
// after each effect, another one may continue, time may pass, or the actor is killed.
// A record may be lost, or stored although its answer is lost, at once or later; it
// may be stored twice.

const emailPartitions = 3

var (
	// Two accounts share a partition, one is with the directory.
	emailAccounts = []uint64{3, 1, 4, 2}
	emailTexts    = []string{"ada@x.io", " ADA@x.io", "straße@x.io", "STRASSE@x.io", "strasse@x.io", "ſtrasse@x.io", "bob@x.io", ""}
)

var errSim = errors.New("simulated failure")

// emailPart is one partition: its machine and its log.
type emailPart struct {
	*durable
	log [][]byte
}

func newEmailPart(t testing.TB) *emailPart {
	p := &emailPart{durable: &durable{&recorder{t: t}, checkpoint.Dir{FS: vfs.NewMem(), Root: "p"}}}
	if err := errors.Join(p.ckpt.FS.MkdirAll(p.ckpt.Root, 0o755), p.ckpt.Prepare()); err != nil {
		t.Fatal(err)
	}
	p.open(checkpoint.Manifest{})
	return p
}

// put applies a record.
func (p *emailPart) put(rec []byte) *Outcome {
	p.log = append(p.log, slices.Clone(rec))
	out := new(Outcome)
	recordLog(p.t, p.m, rec)
	if err := p.m.Apply(p.m.next, rec, &p.rows, out); err != nil {
		p.t.Fatal(err)
	}
	return out
}

type emailSim struct {
	t      *testing.T
	seed   uint64
	rng    *rand.Rand
	parts  []*emailPart
	nowMs  int64
	seq    uint64
	calm   bool // nothing fails
	limbo  []lateRecord
	actors []*emailActor
	ops    []*emailOp // under way

	granted, taken, busy, late, killed, released, reconciled int
}

type lateRecord struct {
	partition int
	rec       []byte
}

// emailOp is a client's call under way.
type emailOp struct {
	account uint64
	email   string
	had     bool // a contact had the e-mail at some instant since the call began
}

// emailActor is a coroutine. stop makes it panic with errSim at the step where it
// stands.
type emailActor struct {
	next func() (struct{}, bool)
	stop func()
}

func newEmailSim(t *testing.T, seed uint64) *emailSim {
	s := &emailSim{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 28)), nowMs: 1_000_000_000_000}
	for range emailPartitions {
		s.parts = append(s.parts, newEmailPart(t))
	}
	for _, a := range emailAccounts {
		rec := s.record(a, CommandCompanyCreate, emailBootstrap(a))
		if out := s.part(a).put(rec); out.Refusal != nil {
			t.Fatal(out.Refusal)
		}
		list := s.record(a, contacts.CommandListCreate, contacts.ListSave{Name: "news"})
		if out := s.part(a).put(list); out.Refusal != nil {
			t.Fatal(out.Refusal)
		}
	}
	return s
}

func emailBootstrap(account uint64) Bootstrap {
	b := testBootstrap(DefaultSettings())
	b.HashKey = fmt.Sprintf("%032x", account)
	return b
}

func (s *emailSim) close() {
	for _, a := range s.actors {
		a.stop()
	}
	for _, p := range s.parts {
		p.close()
	}
}

func (s *emailSim) fatalf(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("seed %d: "+format, append([]any{s.seed}, args...)...)
}

func (s *emailSim) part(account uint64) *emailPart { return s.parts[account%emailPartitions] }

func (s *emailSim) newID() (id [16]byte) {
	s.seq++
	binary.BigEndian.PutUint64(id[:], s.seq)
	return id
}

// clock is the time of some node: none is right.
func (s *emailSim) clock() int64 {
	if s.calm {
		return s.nowMs
	}
	return s.nowMs + s.rng.Int64N(4000) - 2000
}

func (s *emailSim) record(account uint64, name string, args any) []byte {
	env := eventlog.Envelope{Kind: eventlog.KindCommand, Account: account, StampMs: s.clock(), ID: s.newID()}
	return eventlog.AppendCommand(env.Append(nil), name, must.JSON(args))
}

// spawn begins an actor.
func (s *emailSim) spawn(run func(step func())) {
	next, stop := iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil && r != errSim {
				panic(r)
			}
		}()
		run(func() {
			if !yield(struct{}{}) {
				panic(errSim)
			}
		})
	})
	s.actors = append(s.actors, &emailActor{next, stop})
}

// advance lets an actor do its next step.
func (s *emailSim) advance(i int) {
	if _, ok := s.actors[i].next(); !ok {
		s.actors = slices.Delete(s.actors, i, i+1)
	}
}

func (s *emailSim) kill(i int) {
	s.actors[i].stop()
	s.actors = slices.Delete(s.actors, i, i+1)
	s.killed++
}

// store applies a record unless something fails.
func (s *emailSim) store(partition int, rec []byte) (*Outcome, error) {
	fault := s.rng.IntN(12)
	if s.calm {
		fault = -1
	}
	switch fault {
	case 0:
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, errSim)
	case 1:
		s.limbo = append(s.limbo, lateRecord{partition, rec})
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, errSim)
	case 2:
		s.apply(partition, rec)
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, errSim)
	case 3:
		s.limbo = append(s.limbo, lateRecord{partition, rec})
	case 4:
		return nil, fmt.Errorf("%w: %w", ErrOverloaded, errSim)
	}
	return s.apply(partition, rec), nil
}

// apply applies a record and checks what must hold behind each.
func (s *emailSim) apply(partition int, rec []byte) *Outcome {
	s.look()
	out := s.parts[partition].put(rec)
	s.check()
	s.look()
	return out
}

// check checks M1 and M2.
func (s *emailSim) check() {
	owner := map[emaildir.Name]uint64{}
	directory := s.parts[0].m
	for i, p := range s.parts {
		for name, account := range p.m.emailDirectory.Held() {
			if int(account%emailPartitions) != i {
				s.fatalf("partition %d has a reservation of account %d", i, account)
			}
			if other, ok := owner[name]; ok {
				s.fatalf("M1: accounts %d and %d hold one e-mail", account, other)
			}
			owner[name] = account
			h, has := directory.emailDirectory.Holder(name)
			if !has || h.Account != account || len(p.m.emailDirectory.HeldUnder(account, h.ID, []emaildir.Name{name})) != 1 {
				s.fatalf("M2: account %d holds a name, the directory has %+v (%v)", account, h, has)
			}
		}
	}
	const folded = "strasse@x.io" // of several e-mails
	one, own := owner[emaildir.Name(identifier.Hasher{}.Reservation(folded, new([]byte)))]
	other, of := owner[emaildir.Name(identifier.Hasher{}.FoldedReservation(folded, new([]byte)))]
	if own && of && one != other {
		s.fatalf("M1: accounts %d and %d hold e-mails that differ in case alone", one, other)
	}
}

// look notes for each call under way whether a contact has its e-mail.
func (s *emailSim) look() {
	for _, op := range s.ops {
		op.had = op.had || s.has(op.account, op.email)
	}
}

// has reports whether an e-mail is on file with the account, or with another as the
// directory knows.
func (s *emailSim) has(account uint64, email string) bool {
	m, directory := s.part(account).m, s.parts[0].m
	if m.hasEmail(m.accounts[account], email, profile.NoOrdinal) {
		return true
	}
	for _, n := range emailNamesOf(email) {
		if h, ok := directory.emailDirectory.Holder(n); ok && h.Account != account && !directory.emailDirectory.Reserved(h.ID) {
			return true
		}
	}
	return false
}

// emailNamesOf are all names that an e-mail may meet.
func emailNamesOf(email string) []emaildir.Name {
	var h identifier.Hasher
	folded := string(identity.AppendFoldedEmail(nil, []byte(email)))
	return []emaildir.Name{emaildir.Name(h.Reservation(email, new([]byte))), emaildir.Name(h.Reservation(folded, new([]byte))), emaildir.Name(h.FoldedReservation(email, new([]byte)))}
}

// simWay is the reservation.Host of one call.
type simWay struct {
	s    *emailSim
	step func()
	last []byte // the record submitted last
	out  *Outcome
}

func (w *simWay) Stamp(env *eventlog.Envelope) error {
	env.StampMs = w.s.clock()
	if env.ID == (eventlog.RecordID{}) {
		env.ID = w.s.newID()
	}
	return nil
}

func (w *simWay) NewReservation() (emaildir.ReservationID, error) { return w.s.newID(), nil }

func (w *simWay) Missing(account uint64, c *contacts.EmailCommand) (take, check []emaildir.Name, err error) {
	w.step()
	take, check = w.s.part(account).m.MissingEmail(account, c)
	return take, check, nil
}

// ask is a command that may be repeated.
func (s *emailSim) ask(step func(), partition func(account uint64) int) emaildir.CommandFunc {
	return func(_ context.Context, account uint64, name string, args any) ([]byte, error) {
		step()
		out, err := s.store(partition(account), s.record(account, name, args))
		step()
		if err == nil && out.Refusal != nil {
			err = out.Refusal
		}
		if err != nil {
			return nil, err
		}
		return out.Reply, nil
	}
}

func (s *emailSim) partitionOf(account uint64) int { return int(account % emailPartitions) }

func (w *simWay) Reserve(ctx context.Context, ask emaildir.Ask) (got emaildir.Answered, err error) {
	items := []emaildir.Ask{ask}
	if !w.s.calm && w.s.rng.IntN(3) == 0 { // with another account's in one record
		other := emaildir.Ask{Account: pick(w.s.rng, emailAccounts...), ID: w.s.newID(), Take: ask.Take, Check: ask.Check, UntilMs: ask.UntilMs}
		items = slices.Insert(items, w.s.rng.IntN(2), other)
	}
	var reply []byte
	err = errSim
	for attempt := 0; attempt < 3 && err != nil; attempt++ {
		reply, err = w.s.ask(w.step, w.s.partitionOf)(ctx, 0, emaildir.CommandReserve, emaildir.Reserve{Items: items})
	}
	if err != nil {
		return got, fmt.Errorf("%w: %v", ErrUnavailable, err)
	}
	var out emaildir.Reserved
	if err := json.Unmarshal(reply, &out); err != nil {
		w.s.fatalf("%v", err)
	}
	got = out.Items[slices.IndexFunc(items, func(x emaildir.Ask) bool { return x.ID == ask.ID })]
	switch got.Answer {
	case emaildir.Granted:
		w.s.granted++
	case emaildir.Taken:
		w.s.taken++
	case emaildir.Busy:
		w.s.busy++
	}
	return got, nil
}

func (w *simWay) Submit(_ context.Context, env eventlog.Envelope, rec []byte) (refusal *Refusal, err error) {
	w.step()
	w.last = rec
	got, err := w.s.store(w.s.partitionOf(env.Account), rec)
	if err == nil {
		*w.out, refusal = *got, got.Refusal
		if r := got.Refusal; r != nil && r.Code == reservation.CodeExpired {
			w.s.late++
		}
	}
	w.step()
	return refusal, err
}

func (w *simWay) Held(account uint64, id emaildir.ReservationID, names []emaildir.Name) ([]emaildir.Name, error) {
	w.step()
	return w.s.part(account).m.emailDirectory.HeldUnder(account, id, names), nil
}

func (w *simWay) Confirm(x emaildir.Confirmed) {
	w.s.spawn(func(step func()) {
		_, _ = w.s.ask(step, w.s.partitionOf)(context.Background(), 0, emaildir.CommandConfirm, emaildir.Confirm{Items: []emaildir.Confirmed{x}})
	})
}

func (w *simWay) Release(x emaildir.Names) {
	w.s.spawn(func(step func()) {
		_, _ = w.s.ask(step, w.s.partitionOf)(context.Background(), 0, emaildir.CommandRelease, emaildir.Release{Items: []emaildir.Names{x}})
	})
}

func (w *simWay) Pause(_ context.Context, attempt int) error {
	w.step()
	if attempt > 3 {
		return reservation.ErrUndecided
	}
	return nil
}

// contacts are the ids of some profiles of an account.
func (s *emailSim) profileOf(account uint64) string {
	a := s.part(account).m.accounts[account]
	if a.Profiles.Headers.Count == 0 {
		return "prf_0"
	}
	return a.Profiles.Headers.Get(uint32(s.rng.IntN(int(a.Profiles.Headers.Count)))).ID.String()
}

func (s *emailSim) listOf(account uint64) string {
	for _, l := range s.part(account).m.accounts[account].Contacts.Lists() {
		return l.ID // there is one
	}
	return ""
}

// randomCommand is a command of a client that may give a contact an e-mail.
func (s *emailSim) randomCommand(account uint64) (name string, args any) {
	email := pick(s.rng, emailTexts...)
	create := contacts.Create{Email: email}
	if s.rng.IntN(3) == 0 {
		create.ExternalID = fmt.Sprintf("id-%d", s.rng.IntN(3))
	}
	switch s.rng.IntN(6) {
	case 0:
		list := s.listOf(account)
		if s.rng.IntN(4) == 0 {
			list = "lst_0" // which makes it be refused
		}
		return contacts.CommandListAdd, contacts.ListAdd{ListID: list, Create: create}
	case 1, 2:
		return contacts.CommandUpdate, contacts.Update{ID: s.profileOf(account), Email: &email}
	}
	if s.rng.IntN(5) == 0 {
		create.ListID = "lst_0"
	}
	return contacts.CommandCreate, create
}

// call is a client's command.
func (s *emailSim) call(account uint64, name string, args any) {
	c, err := contacts.NewEmailCommand(name, must.JSON(args))
	if err != nil {
		s.fatalf("%v", err)
	}
	s.spawn(func(step func()) {
		op := &emailOp{account: account, email: c.Email()}
		s.ops = append(s.ops, op)
		defer func() { s.ops = slices.DeleteFunc(s.ops, func(x *emailOp) bool { return x == op }) }()
		s.look()
		var out Outcome
		w := &simWay{s: s, step: step, out: &out}
		env := eventlog.Envelope{Kind: eventlog.KindCommand, Account: account}
		if err := reservation.Do(context.Background(), w, env, c); err != nil {
			return
		}
		if out.Refusal != nil && out.Refusal.Message == contacts.MessageDuplicateEmail && !op.had {
			s.fatalf("M4: %s of %q was refused by account %d, and no contact had it", name, c.Email(), account)
		}
	})
}

// events records an event, which reserves nothing.
func (s *emailSim) event(account uint64) {
	env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: account, StampMs: s.clock(), ID: s.newID()}
	s.apply(s.partitionOf(account), appendEvents(env.Append(nil), []eventlog.Event{ev("email", pick(s.rng, emailTexts[:7]...), "external_id", fmt.Sprintf("id-%d", s.rng.IntN(3)))}))
}

func (s *emailSim) command(account uint64, name string, args any) *Outcome {
	return s.apply(s.partitionOf(account), s.record(account, name, args))
}

// releaseRun and reconcileRun are one round of the loops.
func (s *emailSim) releaseRun(partition int) {
	own := func(uint64) int { return partition }
	s.spawn(func(step func()) {
		list := s.parts[partition].m.emailDirectory.ReleasesWaiting()
		if len(list) > 0 && emaildir.ReleaseNames(context.Background(), list, s.ask(step, s.partitionOf), s.ask(step, own)) == nil {
			s.released += len(list)
		}
	})
}

func (s *emailSim) reconcileRun() {
	s.spawn(func(step func()) {
		now := s.clock()
		if !s.calm && s.rng.IntN(3) == 0 {
			now += 70_000 // a clock that is far ahead, or was
		}
		due := s.parts[0].m.emailDirectory.ReservationsDue(now)
		s.reconciled += len(due)
		_ = emaildir.ReconcileDue(context.Background(), due, s.partitionOf, s.ask(step, s.partitionOf), s.ask(step, s.partitionOf))
	})
}

// turn does one thing of what may happen.
func (s *emailSim) turn() {
	account := pick(s.rng, emailAccounts...)
	switch n := s.rng.IntN(100); {
	case n < 8 && len(s.actors) < 12:
		name, args := s.randomCommand(account)
		s.call(account, name, args)
	case n < 10:
		s.event(account)
	case n < 13:
		s.command(account, CommandContactErase, ContactErase{ID: s.profileOf(account)})
	case n < 15:
		s.command(account, erasure.CommandLift, erasure.Lift{Value: pick(s.rng, emailTexts...)})
	case n < 18:
		s.releaseRun(s.rng.IntN(emailPartitions))
	case n < 20:
		s.reconcileRun()
	case n < 22 && len(s.actors) > 0:
		s.kill(s.rng.IntN(len(s.actors)))
	case n < 25 && len(s.limbo) > 0:
		i := s.rng.IntN(len(s.limbo))
		x := s.limbo[i]
		s.limbo = slices.Delete(s.limbo, i, i+1)
		s.apply(x.partition, x.rec)
	case n < 27:
		s.nowMs += pick(s.rng, int64(10), 5_000, 70_000)
	default:
		s.nowMs++
		if len(s.actors) > 0 {
			s.advance(s.rng.IntN(len(s.actors)))
		}
	}
}

// drain lets everything end, without failures, and time pass until all must be
// reconciled.
func (s *emailSim) drain() {
	s.calm = true
	for len(s.actors) > 0 {
		s.advance(0)
	}
	for _, x := range s.limbo {
		s.apply(x.partition, x.rec)
	}
	s.limbo = nil
	s.nowMs += reservation.For.Milliseconds() + 2*emaildir.ReconcileGrace.Milliseconds() + 4000 // and what clocks were apart
	for i := range s.parts {
		s.releaseRun(i)
	}
	s.reconcileRun()
	for len(s.actors) > 0 {
		s.advance(0)
	}
}

// reopen continues with what checkpoints have.
func (s *emailSim) reopen() {
	for i, p := range s.parts {
		env := eventlog.Envelope{Kind: eventlog.KindTick, StampMs: s.clock(), ID: s.newID()}
		s.apply(i, env.Append(nil)) // no two checkpoints at one offset
		p.reopen()
	}
}

// directory is what the directory has, by name.
func (s *emailSim) directory() map[emaildir.Name]uint64 {
	holders, err := s.parts[0].m.emailDirectory.Holders()
	if err != nil {
		s.fatalf("%v", err)
	}
	out := map[emaildir.Name]uint64{}
	for n, h := range holders {
		out[n] = h.Account
	}
	return out
}

// checkReconciled checks M3: the directory has what is held, and no more.
func (s *emailSim) checkReconciled() {
	s.t.Helper()
	if n := s.parts[0].m.emailDirectory.Unconfirmed(); n > 0 {
		s.fatalf("M3: %d reservations are not reconciled", n)
	}
	held := map[emaildir.Name]uint64{}
	for i, p := range s.parts {
		if n := p.m.emailDirectory.Unreleased(); n > 0 {
			s.fatalf("M3: partition %d has %d names to release", i, n)
		}
		for n, a := range p.m.emailDirectory.Held() {
			held[n] = a
		}
	}
	if got := s.directory(); !maps.Equal(got, held) {
		s.fatalf("M3: the directory has %x, held are %x", got, held)
	}
}

// create makes a contact without failures and returns the refusal.
func (s *emailSim) create(account uint64, email string) (refusal *Refusal) {
	c, err := contacts.NewEmailCommand(contacts.CommandCreate, must.JSON(contacts.Create{Email: email}))
	if err != nil {
		s.fatalf("%v", err)
	}
	s.spawn(func(step func()) {
		var out Outcome
		if err := reservation.Do(context.Background(), &simWay{s: s, step: step, out: &out}, eventlog.Envelope{Kind: eventlog.KindCommand, Account: account}, c); err != nil {
			s.fatalf("%v", err)
		}
		refusal = out.Refusal
	})
	for len(s.actors) > 0 {
		s.advance(0)
	}
	return refusal
}

// checkReplayed checks that the logs, replayed, give the same states (R1).
func (s *emailSim) checkReplayed() {
	s.t.Helper()
	for i, p := range s.parts {
		m := testMachine(s.t)
		var out Outcome
		var rows query.Batch
		for at, rec := range p.log {
			if err := m.Apply(int64(at), rec, &rows, &out); err != nil {
				s.fatalf("%v", err)
			}
		}
		if hashOf(s.t, m) != hashOf(s.t, p.m) {
			s.fatalf("R1: replaying partition %d gives another state", i)
		}
	}
}

// TestEmailReservationsSurviveAnything: M1 to M4 and R1, whatever fails and
// whichever node is killed at whatever step. MUSTER_EMAIL_SEEDS says how many
// worlds, and MUSTER_EMAIL_SEED which one.
func TestEmailReservationsSurviveAnything(t *testing.T) {
	t.Parallel()
	seeds, from := testlevel.Count(40, 200), uint64(1)
	if n, err := strconv.Atoi(os.Getenv("MUSTER_EMAIL_SEEDS")); err == nil {
		seeds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("MUSTER_EMAIL_SEED"), 10, 64); err == nil {
		seeds, from = 1, n
	}
	var sum emailSim
	for seed := from; seed < from+uint64(seeds); seed++ {
		s := newEmailSim(t, seed)
		for i := range 400 {
			if i%100 == 99 && seed%5 == 0 {
				s.reopen()
			}
			s.turn()
		}
		s.drain()
		s.checkReconciled()
		if seed%5 == 0 {
			s.checkReplayed()
		}
		s.checkFree()
		sum.granted, sum.taken, sum.busy, sum.late = sum.granted+s.granted, sum.taken+s.taken, sum.busy+s.busy, sum.late+s.late
		sum.killed, sum.released, sum.reconciled = sum.killed+s.killed, sum.released+s.released, sum.reconciled+s.reconciled
		s.close()
		if t.Failed() {
			return
		}
	}
	t.Logf("seeds %d to %d: granted %d, taken %d, busy %d, expired grants %d; killed %d, released %d, reconciled %d",
		from, from+uint64(seeds)-1, sum.granted, sum.taken, sum.busy, sum.late, sum.killed, sum.released, sum.reconciled)
	if seeds >= 100 {
		for what, n := range map[string]int{"granted": sum.granted, "taken": sum.taken, "busy": sum.busy, "expired": sum.late, "killed": sum.killed, "released": sum.released, "reconciled": sum.reconciled} {
			if n == 0 {
				t.Errorf("nothing was %s in any of the worlds: they check too little", what)
			}
		}
	}
}

// checkFree erases everybody: each e-mail is then free for an account that did not
// erase it.
func (s *emailSim) checkFree() {
	s.t.Helper()
	const fresh = 5
	if out := s.part(fresh).put(s.record(fresh, CommandCompanyCreate, emailBootstrap(fresh))); out.Refusal != nil {
		s.fatalf("%v", out.Refusal)
	}
	for _, account := range emailAccounts {
		a := s.part(account).m.accounts[account]
		for o := range a.Profiles.Headers.Count {
			if a.Profiles.Root(o) == o && !a.Profiles.Erased(o) {
				if out := s.command(account, CommandContactErase, ContactErase{ID: a.Profiles.Headers.Get(o).ID.String()}); out.Refusal != nil {
					s.fatalf("%v", out.Refusal)
				}
			}
		}
	}
	s.drain()
	s.checkReconciled()
	if n := len(s.directory()); n > 0 {
		s.fatalf("M3: everybody is erased, and the directory has %d names", n)
	}
	for _, email := range []string{"ada@x.io", "straße@x.io", "bob@x.io"} {
		if r := s.create(fresh, email); r != nil {
			s.fatalf("M3: no contact has %q, and it is refused: %v", email, r)
		}
	}
	s.drain()
	s.checkReconciled()
	if r := s.create(2, "STRASSE@x.io"); r == nil {
		s.fatalf("M1: STRASSE@x.io was made in account 2, straße@x.io is on file in account %d", fresh)
	}
}
