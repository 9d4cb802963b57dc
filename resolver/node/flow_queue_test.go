package node

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/internal/fake"
	"github.com/musterhq/muster/resolver/internal/peek"
)

// TestF1AnswerWaitsForTheQueue has records trigger more flows than they have room
// for: they are acknowledged when all are enrolled, and earlier for requests that do
// not wait that long.
func TestF1AnswerWaitsForTheQueue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	n := f.mustOpen(t)
	defer func() { f.close(t, n) }()
	ctx := context.Background()
	var ids []string
	for i := range 10 {
		b, err := n.Command(ctx, testAccount, automation.CommandCreate, automation.Save{Definition: json.RawMessage(tagFlow(fmt.Sprint("f", i)))})
		if err != nil {
			t.Fatal(err)
		}
		var x automation.Reply
		if err := json.Unmarshal(b, &x); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Command(ctx, testAccount, automation.CommandPublish, automation.ID{ID: x.ID}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, x.ID)
	}
	send := func(ctx context.Context) error {
		env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount}
		if err := n.stamp(&env); err != nil {
			t.Fatal(err)
		}
		var out resolver.Outcome
		err := n.Submit(ctx, testAccount, fake.AppendEvents(env.Append(nil), manyPeople(20)), &out)
		if err == nil && len(out.Events) != 20 {
			t.Fatalf("%d outcomes", len(out.Events))
		}
		return err
	}
	entered := func() (sum uint64) {
		if err := n.Read(ctx, testAccount, func(v *resolver.View) error {
			for _, id := range ids {
				x, _ := v.Flows().Find(id)
				sum += x.Counts.Entered
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return sum
	}
	p := n.partitions[0].Load()
	p.mu.Lock()
	peek.EnrolmentsPerRecord(p.mu.m, 5)
	p.mu.Unlock()
	if err := send(ctx); err != nil {
		t.Fatal(err)
	}
	if got := entered(); got != 200 {
		t.Fatalf("F1: acknowledged with %d of 200 enrolled", got)
	}
	if s := n.Stats()[0]; s.FlowsWaiting != 0 {
		t.Fatalf("%d events wait", s.FlowsWaiting)
	}
	// A request that does not wait that long is answered: the record is applied.
	p.lease.own.Store(1) // as if another node acted: enrolling has ended
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- send(short) }()
	eventually.Holds(t, "the record is applied", func() bool { return n.Stats()[0].FlowsWaiting > 0 })
	select {
	case err := <-answered:
		t.Fatalf("F1: answered before all are enrolled: %v", err)
	case <-time.After(20 * time.Millisecond): // long enough for an answer that does not wait
	}
	cancel()
	if err := <-answered; err != nil {
		t.Fatalf("the answer was none: %v", err)
	}
	p.lease.own.Store(0)
	p.pending <- struct{}{}
	eventually.Holds(t, "all are enrolled", func() bool { return entered() == 400 })
}

// tagFlow is a flow that starts again whenever an event happens, and ends at once.
func tagFlow(name string) string {
	return fmt.Sprintf(`{"name":%q,"reentry":"after_exit","trigger":{"type":"event","event":"viewed"},"steps":[{"id":"s","type":"tag","add":["x"],"next":null}]}`, name)
}

// manyPeople is an event of each of n people.
func manyPeople(n int) (list []eventlog.Event) {
	for i := range n {
		list = append(list, eventlog.Event{Type: []byte("viewed"), Email: fmt.Appendf(nil, "u%d@x.io", i), Properties: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	return list
}
