package resolver

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/reservation"
)

// onePartition is a machine that sees all accounts, beside the simulation's
// partitions: the oracle of what contacts' e-mails may be.
type onePartition struct {
	*emailPart
	s *emailSim
}

// both applies a record on both sides and compares the answers.
func (o *onePartition) both(account uint64, rec []byte) {
	got, want := *o.s.apply(o.s.partitionOf(account), rec), *o.put(rec)
	o.compare(fmt.Sprintf("%q of account %d", rec, account), &got, &want)
}

func (o *onePartition) compare(what string, got, want *Outcome) {
	if !reflect.DeepEqual(got.Refusal, want.Refusal) || string(got.Reply) != string(want.Reply) || !reflect.DeepEqual(got.Events, want.Events) {
		o.s.fatalf("%s: answered %+v %s, a single partition answers %+v %s", what, got.Refusal, got.Reply, want.Refusal, want.Reply)
	}
}

// TestPartitionsAnswerLikeOne: M1 to M3 when nothing fails. Commands, one after the
// other, are answered as by one machine that sees all accounts, and leave the same
// e-mails on file.
func TestPartitionsAnswerLikeOne(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= testlevel.Count[uint64](12, 40); seed++ {
		s := newEmailSim(t, seed)
		s.calm = true
		o := &onePartition{newEmailPart(t), s}
		for _, p := range s.parts {
			for _, rec := range p.log {
				o.put(rec)
			}
		}
		for range 150 {
			s.nowMs += s.rng.Int64N(1000)
			account := pick(s.rng, emailAccounts...)
			switch n := s.rng.IntN(20); {
			case n < 12:
				o.call(account)
			case n < 14:
				env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: account, StampMs: s.nowMs, ID: s.newID()}
				o.both(account, appendEvents(env.Append(nil), []eventlog.Event{ev("email", pick(s.rng, emailTexts[:7]...), "external_id", fmt.Sprintf("id-%d", s.rng.IntN(3)))}))
			case n < 16:
				o.both(account, s.record(account, CommandContactErase, ContactErase{ID: s.profileOf(account)}))
			case n < 18:
				o.both(account, s.record(account, erasure.CommandLift, erasure.Lift{Value: pick(s.rng, emailTexts...)}))
			case n < 19:
				settings := DefaultSettings()
				settings.Placeholders = append(settings.Placeholders, pick(s.rng, emailTexts[:7]...))
				o.both(account, s.record(account, CommandSettingsSet, settings))
			}
			for s.part(account).m.Pending() > 0 { // placeholders are taken off
				env := eventlog.Envelope{Kind: eventlog.KindContinue, StampMs: s.nowMs, ID: s.newID()}
				o.both(account, env.Append(nil))
			}
			for i := range s.parts {
				s.releaseRun(i)
			}
			for len(s.actors) > 0 {
				s.advance(0)
			}
			s.checkReconciled()
			for _, account := range emailAccounts {
				for _, email := range emailTexts {
					if got, want := s.has(account, email), o.m.hasEmail(o.m.accounts[account], email, profile.NoOrdinal); got != want {
						s.fatalf("account %d: %q is on file: %v, in a single partition: %v", account, email, got, want)
					}
				}
			}
		}
		s.close()
		o.close()
	}
}

// call does a client's command on both sides.
func (o *onePartition) call(account uint64) {
	s := o.s
	name, args := s.randomCommand(account)
	env := eventlog.Envelope{Kind: eventlog.KindCommand, Account: account, StampMs: s.nowMs, ID: s.newID()}
	want := *o.put(eventlog.AppendCommand(env.Append(nil), name, must.JSON(args)))
	c, err := contacts.NewEmailCommand(name, must.JSON(args))
	if err != nil {
		s.fatalf("%v", err)
	}
	var got Outcome
	s.spawn(func(step func()) {
		if err := reservation.Do(context.Background(), &simWay{s: s, step: step, out: &got}, env, c); err != nil {
			s.fatalf("%s: %v", name, err)
		}
	})
	for len(s.actors) > 0 {
		s.advance(0)
	}
	o.compare(fmt.Sprintf("%s %s of account %d", name, must.JSON(args), account), &got, &want)
}
