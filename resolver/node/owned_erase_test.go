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

// erasedOne is a cluster whose node 0, which has ended, stored the events of two people in
// partition 0 and then erased the first. rows is how many events history has there.
func erasedOne(t *testing.T) (c *testCluster, rows func() int) {
	t.Helper()
	ctx := context.Background()
	c = newTestCluster(t, 1, 3)
	t.Cleanup(c.close)
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
	rows = func() int {
		h.Mu.Lock()
		defer h.Mu.Unlock()
		return len(h.Rows)
	}
	eventually.Holds(t, "history has both events", func() bool { return rows() == 2 })
	if _, err := n.Command(ctx, clusterAccount(0), resolver.CommandContactErase, resolver.ContactErase{ID: gone}); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "one is erased", func() bool { return rows() == 1 })
	endNode(t, c, 0)
	return c, rows
}

func endNode(t *testing.T, c *testCluster, i int) {
	t.Helper()
	if err := c.nodes[i].Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	c.nodes[i] = nil
}

// empty takes everything out of a history.
func empty(h *fake.History) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.Stored, h.Rows, h.Aliases, h.Moved = 0, nil, nil, nil
}

// TestL2ErasedAgainByAnotherNode: history was lost, and the node that rebuilds it from the log
// ends before it has erased again what was erased. The node that takes over does it.
func TestL2ErasedAgainByAnotherNode(t *testing.T) {
	t.Parallel()
	c, rows := erasedOne(t)
	h := c.history.parts[0]
	empty(h)
	var down atomic.Bool
	down.Store(true)
	c.history.erases = func() error {
		if down.Load() {
			return errors.New("down")
		}
		return nil
	}
	mustTake(t, c.open(1, nil), 0)
	eventually.Holds(t, "both are there again", func() bool { return rows() == 2 })
	endNode(t, c, 1)
	down.Store(false)
	mustTake(t, c.open(2, nil), 0)
	eventually.Holds(t, "one is erased again", func() bool { return rows() == 1 })
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if slices.ContainsFunc(h.Rows, func(r fake.Row) bool { return r.Ordinal != 1 }) {
		t.Errorf("left are %v", h.Rows)
	}
}

// TestL2LostWhileErasedAgain: history that loses its rows while what was erased is erased once
// more, after a rebuilding or at a start, is rebuilt, and the erased are not in it.
func TestL2LostWhileErasedAgain(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"after a rebuilding": true, "at a start": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, rows := erasedOne(t)
			h := c.history.parts[0]
			if before {
				empty(h)
			}
			var asked atomic.Int64
			c.history.erases = func() error {
				if asked.Add(1) == 1 {
					empty(h)
				}
				return nil
			}
			n := c.open(1, nil)
			mustTake(t, n, 0)
			eventually.Holds(t, "what was erased is erased twice", func() bool { return asked.Load() >= 2 })
			eventually.Holds(t, "history is whole", func() bool {
				st := n.Stats()[0]
				return !st.HistoryRebuilding && rows() == 1
			})
		})
	}
}
