package node

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/erasure"
)

// failing submits a record that fails midway, behind its first event, and waits until it is
// about to be applied. The caller keeps that from happening.
func failing(t *testing.T, n *Node, done *sync.WaitGroup) {
	t.Helper()
	env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount}
	if err := n.stamp(&env); err != nil {
		t.Fatal(err)
	}
	rec := eventlog.AppendEvent(eventlog.AppendEventCount(env.Append(nil), 2), &eventlog.Event{Type: []byte("seen"), ExternalID: []byte("half")})
	done.Go(func() {
		var out resolver.Outcome
		if err := n.Submit(t.Context(), testAccount, append(rec, "no event"...), &out); !errors.Is(err, resolver.ErrUnavailable) {
			t.Errorf("the record: %v", err)
		}
	})
	p := n.partitions[0].Load()
	eventually.Holds(t, "the record is about to be applied", func() bool {
		free := p.mu.TryRLock()
		if free {
			p.mu.RUnlock()
		}
		return !free
	})
}

// closeFailed closes a node whose partition has failed, and its log.
func closeFailed(t *testing.T, f *fixture, n *Node) {
	t.Helper()
	_ = n.Close(t.Context()) // it says what we have seen
	if err := f.log.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNoHalfRecordIsRead: what waits for the partition while a record is applied that fails
// midway gets the failure, whatever it wanted to read, and no checkpoint has half of the record.
func TestNoHalfRecordIsRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	n := f.mustOpen(t)
	p := n.partitions[0].Load()
	var done sync.WaitGroup
	p.mu.RLock()
	before := p.checkpoint.last.Load()
	failing(t, n, &done)
	for i, read := range []func() error{
		func() error {
			return p.look(testAccount, func(v *resolver.View) error {
				return fmt.Errorf("%d profiles are seen", v.Profiles().All().GetCardinality())
			})
		},
		func() error { _, _, err := n.KeyAccess(testAccount, [32]byte{}); return err },
		func() error { _, _, err := n.StateHash(0); return err },
		func() error {
			_, _, err := (nodeEmails{p: p}).Missing(testAccount, &contacts.EmailCommand{})
			return err
		},
		func() error { _, err := (nodeEmails{p: p}).Held(testAccount, [16]byte{}, nil); return err },
		func() error { _, err := p.redactor(&erasure.Batch{Account: testAccount}); return err },
		func() error { return p.eraseAgain(t.Context(), 0) },
		p.writeCheckpoint,
	} {
		for range 20 {
			done.Go(func() {
				if err := read(); !errors.Is(err, resolver.ErrUnavailable) && (err == nil || !errors.Is(err, p.failed.Err())) {
					t.Errorf("read %d: %v", i, err)
				}
			})
		}
	}
	p.mu.RUnlock()
	done.Wait()
	if people := p.mu.m.View(p, testAccount).Profiles().All().GetCardinality(); people != 1 {
		t.Errorf("%d profiles: the test's record does not fail midway", people)
	}
	if last := p.checkpoint.last.Load(); last != before {
		t.Errorf("a checkpoint of half a record was written: %d, before %d", last, before)
	}
	closeFailed(t, f, n)
}

// TestNoHalfRecordIsKeptByAStop: where the partition stops while a record fails midway, the last
// checkpoint has nothing of it.
func TestNoHalfRecordIsKeptByAStop(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	n := f.mustOpen(t)
	p := n.partitions[0].Load()
	var done sync.WaitGroup
	p.mu.RLock()
	before := p.checkpoint.last.Load()
	failing(t, n, &done)
	p.life.stop()
	p.mu.RUnlock()
	done.Wait()
	closeFailed(t, f, n)
	if last := p.checkpoint.last.Load(); last != before {
		t.Errorf("a checkpoint of half a record was written: %d, before %d", last, before)
	}
}

// writer calls a function with all that is written to it.
type writer func([]byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}

// TestFailureBeforeTheLockIsFree: a partition has failed before a read can follow the record.
func TestFailureBeforeTheLockIsFree(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var p *partition
	n, err := Open(t.Context(), f.options(func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(writer(func(line []byte) {
			if bytes.Contains(line, []byte("msg=stopped")) && p.mu.TryRLock() {
				p.mu.RUnlock()
				t.Error("the partition is readable before it has failed")
			}
		}), nil))
	}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Command(t.Context(), testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	p = n.partitions[0].Load()
	var done sync.WaitGroup
	p.mu.RLock()
	failing(t, n, &done)
	p.mu.RUnlock()
	done.Wait()
	closeFailed(t, f, n)
}
