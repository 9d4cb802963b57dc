package node

import (
	"context"
	"errors"
	"testing"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
)

// openingHistory is a history that says how far it is when it is told to.
type openingHistory struct {
	query.History
	answer chan error
}

func (h openingHistory) Position(ctx context.Context, partition int) (int64, error) {
	select {
	case err := <-h.answer:
		if err != nil {
			return 0, err
		}
		return h.History.Position(ctx, partition)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// TestStateLoadsWhileHistoryOpens: a start does not wait for history before it loads the
// state, and ends with the error of a history that cannot be opened.
func TestStateLoadsWhileHistoryOpens(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	n := f.mustOpen(t)
	f.close(t, n)
	live := f.fs.PathJoin(checkpoint.Partition(f.fs, "state", 0), checkpoint.DirLive)
	for _, refused := range []error{nil, errors.New("history is of a newer version")} {
		if err := f.fs.RemoveAll(live); err != nil {
			t.Fatal(err)
		}
		f.openLog(t)
		h := openingHistory{f.history, make(chan error)}
		type result struct {
			n   *Node
			err error
		}
		opened := make(chan result, 1)
		go func() {
			n, err := Open(context.Background(), f.options(func(o *Options) { o.History = h }))
			opened <- result{n, err}
		}()
		eventually.Holds(t, "the state is loaded before history is open", func() bool {
			_, err := f.fs.Stat(f.fs.PathJoin(live, "LOCK"))
			return err == nil
		})
		h.answer <- refused
		r := <-opened
		if !errors.Is(r.err, refused) {
			t.Errorf("opened: %v, expected %v", r.err, refused)
		}
		f.close(t, r.n)
	}
}
