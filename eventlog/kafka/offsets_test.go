package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	kgo "github.com/segmentio/kafka-go"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/eventually"
)

func spawnPlain(f func()) bool { go f(); return true }

// TestBarrierSharesOnlyLaterQuestions: an answer holds what was true when the
// caller came, however many share it.
func TestBarrierSharesOnlyLaterQuestions(t *testing.T) {
	var end, asked atomic.Int64
	b := barrier{ask: func() bounds {
		asked.Add(1)
		// The broker looks now and its answer takes a while.
		seen := end.Load()
		time.Sleep(200 * time.Microsecond) // a slow answer is what is tested
		return bounds{end: seen}
	}}
	const callers, each = 32, 50
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				acknowledged := end.Add(1)
				got, err := b.wait(t.Context(), spawnPlain)
				if err != nil || got.end < acknowledged {
					t.Errorf("the end is %d, %v; %d was acknowledged before", got.end, err, acknowledged)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := asked.Load(); n > callers*each/4 {
		t.Fatalf("%d questions for %d callers at once: they are not shared", n, callers*each)
	}
}

func TestBarrierCallerMayLeave(t *testing.T) {
	gate := make(chan struct{})
	b := barrier{ask: func() bounds { <-gate; return bounds{end: 7} }}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := b.wait(ctx, spawnPlain); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	close(gate)
	if got, err := b.wait(t.Context(), spawnPlain); err != nil || got.end != 7 {
		t.Fatalf("%+v, %v", got, err)
	}
	eventually.Holds(t, "no question is under way", func() bool { // the goroutine that asked looks once more for waiters
		b.mu.Lock()
		defer b.mu.Unlock()
		return !b.mu.asking
	})
	if _, err := b.wait(t.Context(), func(func()) bool { return false }); !errors.Is(err, eventlog.ErrClosed) {
		t.Fatal(err)
	}
}

// TestEndNeverGoesBack: a leader that says less than was acknowledged is not
// believed.
func TestEndNeverGoesBack(t *testing.T) {
	opts := shared(t)
	patient := mustOpen(t, opts)
	opts.RequestTimeout, opts.AppendTimeout = 2*time.Second, 2*time.Second
	l := mustOpen(t, opts)
	mustAppend(t, patient, 0, []byte("a"))
	if _, end, err := l.Bounds(t.Context(), 0); end != 1 || err != nil {
		t.Fatal(end, err)
	}
	l.partitions[0].atLeast(2)
	if _, _, err := l.Bounds(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "records below 2 were acknowledged") {
		t.Fatal(err)
	}
	mustAppend(t, patient, 0, []byte("b")) // the leader knows by now
	if _, end, err := l.Bounds(t.Context(), 0); end != 2 || err != nil {
		t.Fatal(end, err)
	}
}

// TestTopicMadeAnewL1: records that a topic lost are noticed with the first one that takes the
// place of another. It is not acknowledged, and nothing more is read.
func TestTopicMadeAnewL1(t *testing.T) {
	opts := shared(t)
	l := mustOpen(t, opts)
	for range 3 {
		mustAppend(t, l, 0, []byte("a"))
	}
	r, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 3 {
		if _, err := r.Next(within(t, 30*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	res, err := l.client.DeleteTopics(t.Context(), &kgo.DeleteTopicsRequest{Topics: []string{opts.Topic}})
	if err := errors.Join(err, res.Errors[opts.Topic]); err != nil {
		t.Fatal(err)
	}
	eventually.Succeeds(t, func() error { // it goes and comes a while later
		other, err := Open(t.Context(), opts)
		if err != nil {
			return err
		}
		defer other.Close()
		if _, end, err := other.Bounds(t.Context(), 0); err != nil || end != 0 {
			return fmt.Errorf("it ends at %d: %w", end, err)
		}
		return nil
	})
	var lost *eventlog.CorruptError
	eventually.Succeeds(t, func() error {
		at, err := l.Append(within(t, time.Minute), 0, []byte("b"))
		if err == nil {
			t.Fatalf("a record was stored at %d, behind three that are gone", at)
		}
		if !errors.Is(err, eventlog.ErrUncertain) || !errors.As(err, &lost) {
			return err
		}
		return nil
	})
	if _, err := r.Next(within(t, time.Minute)); !errors.As(err, &lost) || lost.Offset != 0 || !strings.Contains(lost.Reason, "the records below 3") {
		t.Errorf("the reader says %v", err)
	}
}
