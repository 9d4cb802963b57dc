package links

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver"
)

// commands is a [commander].
type commands func(ctx context.Context, account uint64, name string, args any) ([]byte, error)

func (c commands) Command(ctx context.Context, account uint64, name string, args any) ([]byte, error) {
	return c(ctx, account, name, args)
}

// TestWhatTheStateIsTooBusyForIsRecordedLater: an open under overload is not
// lost, and one that may or may not be on record is not counted twice.
func TestWhatTheStateIsTooBusyForIsRecordedLater(t *testing.T) {
	var calls atomic.Int64
	var fail atomic.Pointer[error]
	tr := newTracker(commands(func(context.Context, uint64, string, any) ([]byte, error) {
		calls.Add(1)
		if err := fail.Load(); err != nil {
			return nil, *err
		}
		return nil, nil
	}), time.Now, metrics.NewSet())
	defer tr.close()
	set := func(err error) { fail.Store(&err) }

	set(resolver.ErrOverloaded)
	began := time.Now()
	tr.note(engagementWork{account: 1})
	if tr.deferred.Get() != 1 || tr.recorded.Get() != 0 || time.Since(began) > trackWait {
		t.Fatalf("%d deferred, %d recorded", tr.deferred.Get(), tr.recorded.Get())
	}
	fail.Store(nil)
	eventually.Holds(t, "the deferred work is recorded", func() bool { return tr.recorded.Get() != 0 })
	if tr.recorded.Get() != 1 || tr.lost.Get() != 0 {
		t.Fatalf("%d recorded, %d lost", tr.recorded.Get(), tr.lost.Get())
	}
	before := calls.Load()
	set(context.DeadlineExceeded)
	tr.note(engagementWork{account: 1})
	if tr.unknown.Get() != 1 || calls.Load() != before+1 {
		t.Errorf("%d unknown after %d calls", tr.unknown.Get(), calls.Load()-before)
	}
	set(errors.Join(resolver.ErrOverloaded))
	for range trackQueue + 10 {
		tr.note(engagementWork{account: 1})
	}
	tr.close()
	if got := tr.lost.Get(); got != trackQueue+10 { // those that waited at the end, too
		t.Errorf("%d lost", got)
	}
}
