package node

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/fake"
)

// TestL2ErasedAgainByAnotherNode: history was lost, and the node that rebuilds it from the log
// ends before it has erased again what was erased. The node that takes over does it.
func TestL2ErasedAgainByAnotherNode(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newTestCluster(t, 1, 3)
	defer c.close()
	n := c.open(0, nil)
	mustTake(t, n, 0, 1, 2)
	c.found(n)
	submit := func(email string) string {
		env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: clusterAccount(0), StampMs: c.clock.Load()}
		if _, err := c.ids.Read(env.ID[:]); err != nil {
			t.Fatal(err)
		}
		var out resolver.Outcome
		if err := n.Submit(ctx, env.Account, fake.AppendEvents(env.Append(nil), []eventlog.Event{fake.Event("email", email)}), &out); err != nil {
			t.Fatal(err)
		}
		return out.Events[0].Profile.String()
	}
	gone := submit("gone@x.io")
	submit("stays@x.io")
	h := c.history.parts[0]
	rows := func() int {
		h.Mu.Lock()
		defer h.Mu.Unlock()
		return len(h.Rows)
	}
	eventually.Succeeds(t, func() error {
		if rows() != 2 {
			return errors.New("history has not both events")
		}
		return nil
	})
	if _, err := n.Command(ctx, clusterAccount(0), resolver.CommandContactErase, resolver.ContactErase{ID: gone}); err != nil {
		t.Fatal(err)
	}
	is := func(n int) func() error {
		return func() error {
			if rows() != n {
				return errors.New("other rows than that")
			}
			return nil
		}
	}
	eventually.Succeeds(t, is(1))
	end := func(i int) {
		t.Helper()
		if err := c.nodes[i].Close(ctx); err != nil {
			t.Fatal(err)
		}
		c.nodes[i] = nil
	}
	end(0)
	h.Stored, h.Rows, h.Aliases, h.Moved = 0, nil, nil, nil

	var down atomic.Bool
	down.Store(true)
	c.history.erases = func() error {
		if down.Load() {
			return errors.New("down")
		}
		return nil
	}
	mustTake(t, c.open(1, nil), 0)
	eventually.Succeeds(t, is(2))
	end(1)
	down.Store(false)
	mustTake(t, c.open(2, nil), 0)
	eventually.Succeeds(t, is(1))
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if slices.ContainsFunc(h.Rows, func(r fake.Row) bool { return r.Ordinal != 1 }) {
		t.Errorf("left are %v", h.Rows)
	}
}
