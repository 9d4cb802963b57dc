package node

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/eventlog/logtest"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/internal/fake"
	"github.com/musterhq/muster/resolver/internal/statefiles"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// eraseNode is a node on a file system in memory.
func eraseNode(t *testing.T, fs vfs.FS, history query.History) (*Node, func()) {
	t.Helper()
	log, err := file.Open("log", file.Options{FS: fs, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_000_000_000_000)
	n, err := Open(context.Background(), Options{FS: fs, Dir: "state", Log: log, History: history, Rand: &fake.Random{Rand: rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))},
		Now: func() time.Time { return now }, CheckpointInterval: time.Hour, Feed: FeedOptions{Delay: time.Millisecond, RetryMax: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	return n, func() { stop(n, log) }
}

func submitEvents(t *testing.T, n *Node, evs ...eventlog.Event) []resolver.EventOutcome {
	t.Helper()
	env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount}
	if err := n.stamp(&env); err != nil {
		t.Fatal(err)
	}
	var out resolver.Outcome
	if err := n.Submit(context.Background(), testAccount, fake.AppendEvents(env.Append(nil), evs), &out); err != nil {
		t.Fatal(err)
	}
	return out.Events
}

func isRefused(err error, says string) bool {
	var r *resolver.Refusal
	return errors.As(err, &r) && strings.Contains(r.Message, says)
}

// TestErasedPersonStaysOut: an erased profile answers as none, its identifiers,
// also those of profiles merged into it, cannot be stored again until that is
// lifted, and no file of log and checkpoints holds its e-mail any more, while
// the others' stay (L1), also after a restart.
func TestErasedPersonStaysOut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	fs := vfs.NewMem()
	history := &fake.History{Rand: rand.New(rand.NewPCG(1, 3))}
	n, halt := eraseNode(t, fs, history)
	if _, err := n.Command(ctx, testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	event := func(email, id string) eventlog.Event {
		return eventlog.Event{Type: []byte("bought"), Email: []byte(email), ExternalID: []byte(id), FirstName: []byte("Firstname-of-" + email)}
	}
	out := submitEvents(t, n, event("gone-person@x.io", ""), event("", "gone-id"), event("stays-here@x.io", ""))
	merged := submitEvents(t, n, event("gone-person@x.io", "gone-id"))[0].Profile
	if err := n.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if !fileHolds(t, fs, "gone-person@x.io") || !fileHolds(t, fs, "stays-here@x.io") {
		t.Fatal("the test does not find what is stored")
	}
	if _, err := n.Command(ctx, testAccount, resolver.CommandContactErase, resolver.ContactErase{ID: merged.String()}); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		for _, id := range []resolver.ProfileID{merged, out[0].Profile, out[1].Profile} {
			if _, err := n.Command(ctx, testAccount, resolver.CommandContactErase, resolver.ContactErase{ID: id.String()}); !isRefused(err, "there is no contact") {
				t.Errorf("erased again: %v", err)
			}
			if err := n.Read(ctx, testAccount, func(v *resolver.View) error {
				if _, ok := v.Profiles().Resolve(id); ok {
					t.Errorf("%s still leads to a profile", id)
				}
				if v.Profiles().All().GetCardinality() != 1 || accountOf(v).Profiles.Universe().GetCardinality() != 1 {
					t.Errorf("there are %v", v.Profiles().All())
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		for _, e := range []eventlog.Event{event(" GONE-person@x.io", ""), event("", "gone-id"), event("gone-person@x.io", "other-id")} {
			if x := submitEvents(t, n, e)[0]; x.Status != resolver.EventRefused || !strings.Contains(x.Refusal.Message, erasure.Message) {
				t.Errorf("event of an erased person: %+v", x)
			}
		}
		if x := submitEvents(t, n, event("stays-here@x.io", "gone-id"))[0]; x.Status != resolver.EventAccepted || x.Profile != out[2].Profile || x.Warning() == "" {
			t.Errorf("event of another person that has an erased person's identifier: %+v", x)
		}
		if _, err := n.Command(ctx, testAccount, contacts.CommandCreate, contacts.Create{Email: "Gone-Person@x.io"}); !isRefused(err, erasure.Message) {
			t.Errorf("contact of an erased person: %v", err)
		}
		text := "gone-id"
		if _, err := n.Command(ctx, testAccount, contacts.CommandUpdate, contacts.Update{ID: out[2].Profile.String(), ExternalID: &text}); !isRefused(err, erasure.Message) {
			t.Errorf("update with an erased person's identifier: %v", err)
		}
	}
	await(t, n)
	for _, what := range []string{"gone-person@x.io", "gone-id"} {
		if fileHolds(t, fs, what) {
			t.Errorf("%s is still in a file", what)
		}
	}
	if !fileHolds(t, fs, "stays-here@x.io") {
		t.Error("L1: what stays is gone")
	}
	check()
	halt()
	n, halt = eraseNode(t, fs, history)
	check()
	for _, lift := range []erasure.Lift{{Value: "gone-person@x.io"}, {Kind: "external_id", Value: "gone-id"}} {
		if _, err := n.Command(ctx, testAccount, erasure.CommandLift, lift); err != nil {
			t.Fatal(err)
		}
	}
	if x := submitEvents(t, n, event("gone-person@x.io", "gone-id"))[0]; x.Status != resolver.EventAccepted || x.Profile == merged {
		t.Errorf("after it was lifted: %+v", x)
	}
	halt()
	for _, r := range history.Rows {
		if r.Ordinal < 2 {
			t.Errorf("history has %+v", r)
		}
	}
}

// TestOutcomeBehindAnErasureLeavesTheLog: the outcome of a message that was submitted before its
// recipient was erased, and is in the log behind that, is taken out of the log.
func TestOutcomeBehindAnErasureLeavesTheLog(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	fs := vfs.NewMem()
	n, halt := eraseNode(t, fs, &fake.History{Rand: rand.New(rand.NewPCG(1, 3))})
	defer halt()
	if _, err := n.Command(ctx, testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	person := submitEvents(t, n, eventlog.Event{Type: []byte("bought"), Email: []byte("gone-person@x.io")})[0].Profile
	var done sync.WaitGroup
	behind := func(name string, args any) {
		_, end, _ := n.opts.Log.Bounds(ctx, 0)
		done.Go(func() {
			if _, err := n.Command(ctx, testAccount, name, args); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		eventually.Holds(t, name+" is stored", func() bool {
			_, now, _ := n.opts.Log.Bounds(ctx, 0)
			return now > end
		})
	}
	p := n.partitions[0].Load()
	p.mu.RLock() // nothing is applied: the outcome comes before the erasure is known
	behind(resolver.CommandContactErase, resolver.ContactErase{ID: person.String()})
	behind(messages.CommandOutboxDone, outbox.Done{Seq: 1, Result: outbox.ResultFailed, Reason: "mailbox=gone-person@x.io: no such user"})
	if !fileHolds(t, fs, "mailbox=gone-person@x.io") {
		t.Error("the outcome is not in the log")
	}
	p.mu.RUnlock()
	done.Wait()
	// The outcome may be applied when the log is rid of the rest: no checkpoint follows then,
	// which await would wait for.
	eventually.Holds(t, "the log is rid of the outcome", func() bool { return !fileHolds(t, fs, "gone-person@x.io") })
}

// await waits until nothing is left to be erased, and the second checkpoint is
// there.
func await(t *testing.T, n *Node) {
	t.Helper()
	eventually.Holds(t, "the erasure ends", func() bool {
		pending, applied := 1, int64(-1)
		_ = n.Read(context.Background(), testAccount, func(v *resolver.View) error {
			pending, applied = v.Erasures().Pending(), v.Cut().UpTo
			return nil
		})
		p := n.partitions[0].Load()
		if pending > 0 || p.checkpoint.last.Load() != applied {
			return false
		}
		p.checkpoint.Lock() // trimming is part of it
		defer p.checkpoint.Unlock()
		return true
	})
}

// fileHolds reports whether a file below the root holds the text.
func fileHolds(t *testing.T, fs vfs.FS, text string) bool {
	t.Helper()
	var walk func(dir string) bool
	walk = func(dir string) bool {
		names, err := fs.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			path := fs.PathJoin(dir, name)
			info, err := fs.Stat(path)
			if err != nil {
				continue // removed meanwhile
			}
			if info.IsDir() {
				if walk(path) {
					return true
				}
				continue
			}
			b, err := statefiles.Read(fs, path)
			if err == nil && (bytes.Contains(b, []byte(text)) || bytes.Contains(logtest.Packed(b), []byte(text))) {
				return true
			}
		}
		return false
	}
	return walk("log") || walk("state")
}
