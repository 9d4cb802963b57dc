package node

import (
	"errors"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver"
)

// closed reports whether a channel is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func recordNamed(n byte) eventlog.Envelope {
	return eventlog.Envelope{Kind: eventlog.KindEvents, ID: eventlog.RecordID{n}}
}

// TestRequestsAreTakenOnce: the goroutine that applies, the log that fails and the request
// that gives up may each find a waiter; one of them does.
func TestRequestsAreTakenOnce(t *testing.T) {
	t.Parallel()
	r := newRequests()
	var out resolver.Outcome
	applied, failed := r.add(recordNamed(1), &out), r.add(recordNamed(2), &out)
	if got := r.take(applied.id); got != applied || r.take(applied.id) != nil {
		t.Fatalf("took %p of %p, or twice", got, applied)
	}
	applied.AppendFailed(errors.New("too late")) // its outcome is Apply's
	if closed(applied.done) || applied.err != nil {
		t.Error("the log told a request whose record is being applied")
	}
	failed.AppendFailed(errors.New("no disk"))
	if <-failed.done; !errors.Is(failed.err, resolver.ErrUnavailable) {
		t.Errorf("the log failed, and the request has the error %v", failed.err)
	}
	if r.take(failed.id) != nil {
		t.Error("a request that was answered still waits")
	}
}

// TestRequestsDrain: a release refuses requests that begin to wait, but for what waiting ones
// may need, and ends when all are answered and enrolled.
func TestRequestsDrain(t *testing.T) {
	t.Parallel()
	r := newRequests()
	var out resolver.Outcome
	w := r.add(recordNamed(1), &out)
	r.beginEnrolling()
	r.refuse()
	if r.add(recordNamed(2), &out) != nil {
		t.Error("a request begins to wait while the partition is given up")
	}
	more := r.add(eventlog.Envelope{Kind: eventlog.KindContinue, ID: eventlog.RecordID{3}}, &out)
	if more == nil {
		t.Fatal("a record that continues is refused")
	}
	idle := r.drained()
	for _, end := range []func(){func() { r.take(w.id) }, r.endEnrolling, func() { r.take(more.id) }} {
		if closed(idle) {
			t.Error("drained while a request waits")
		}
		end()
	}
	if !closed(idle) || !closed(r.drained()) {
		t.Error("no request waits, and it is not drained")
	}
}

// TestBacklog: requests count before the log has their records, and records until they
// are applied.
func TestBacklog(t *testing.T) {
	t.Parallel()
	r := newRequests()
	r.count.Add(3)
	r.noteAppended(9)
	r.noteAppended(4) // told out of order
	for applied, want := range map[int64]int64{2: 8, 9: 3, 20: 3} {
		if got := r.backlog(applied); got != want {
			t.Errorf("applied below %d of 10: %d wait, want %d", applied, got, want)
		}
	}
	r.count.Add(-3)
	if got := r.backlog(20); got != 0 {
		t.Errorf("%d wait when others appended more", got)
	}
}
