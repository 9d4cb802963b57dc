package crash

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/bench/internal/condition"
	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/ledger"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/surface"
)

// totals is what the workers' ledgers add up to.
type totals struct {
	acked int
	// events and value of acknowledged sure events by user.
	events, value map[user]int
}

func (l *Load) totals() *totals {
	b := &totals{events: map[user]int{}, value: map[user]int{}}
	for _, w := range l.workers {
		for n := range w.book.events {
			e := &w.book.events[n]
			if e.Acked {
				b.acked++
			}
			if e.sure() && e.Acked {
				b.events[e.user]++
				b.value[e.user] += e.value
			}
		}
	}
	return b
}

// answers are segment counts that history is compared with later.
type answers struct {
	maybe, all int
}

// askers ask a node for profiles at the same time.
const askers = 4

// ask checks profiles and segments through the console of a node.
func (l *Load) ask(ctx context.Context, node server.Credentials, b *totals) (answers, error) {
	var a answers
	c, err := surface.SignIn(ctx, node)
	if err != nil {
		return a, err
	}
	defer c.SignOut(ctx)
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(askers)
	for u, id := range l.people.all() {
		group.Go(func() error {
			now, err := c.ProfileID(within, u.externalID())
			if err != nil {
				return fmt.Errorf("user %s, acknowledged as profile %s: %w", u.externalID(), id, err)
			}
			if now != id {
				return fmt.Errorf("user %s was acknowledged as profile %s and is %s now", u.externalID(), id, now)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return a, err
	}
	often, much := median(b.events), median(b.value)
	for _, q := range []struct {
		what, definition string
		want             int
	}{
		{"users with an event", condition.Activity(typeSure, `"window":{"all_time":true}`), len(b.events)},
		{"users with many events", condition.Activity(typeSure, condition.Count(">=", often)), atLeast(b.events, often)},
		{"users with just that many events", condition.Activity(typeSure, condition.Count("=", often)), atLeast(b.events, often) - atLeast(b.events, often+1)},
		{"users with a great sum", condition.Activity(typeSure, condition.Aggregate("sum", "value", ">=", float64(much))), atLeast(b.value, much)},
	} {
		got, err := c.Preview(ctx, q.definition)
		if err != nil {
			return a, fmt.Errorf("%s: %w", q.what, err)
		}
		if err := compare("segment of "+q.what, int(got), q.want); err != nil {
			return a, err
		}
	}
	if err := l.checkLive(ctx, c, b); err != nil {
		return a, err
	}
	maybe, err := c.Preview(ctx, condition.Activity(typeMaybe))
	if err != nil {
		return a, err
	}
	all, err := c.Preview(ctx, `{"kind":"attribute","field":"external_id","op":"exists"}`)
	if err != nil {
		return a, err
	}
	return answers{int(maybe), int(all)}, nil
}

// found is what history holds.
type found struct {
	people, maybe map[user]bool
	unacked       int
}

// finder goes through history's keys and counts what is wrong.
type finder struct {
	found
	books    []*book
	ordinals map[user]uint32
	users    map[uint32]user
	faults   ledger.Faults
}

func newFinder(books ...*book) *finder {
	return &finder{
		found: found{people: map[user]bool{}, maybe: map[user]bool{}},
		books: books, ordinals: map[user]uint32{}, users: map[uint32]user{},
	}
}

// event finds what was sent with a key, nil if nothing was.
func (f *finder) event(key string) *event {
	var worker, n int
	if _, err := fmt.Sscanf(key, "k%d-%d", &worker, &n); err != nil {
		return nil
	}
	for _, l := range f.books {
		if l.worker == worker && n >= 0 && n < len(l.events) && l.key(n) == key {
			return &l.events[n]
		}
	}
	return nil
}

func (f *finder) visit(k history.Key) error {
	e := f.event(k.Key)
	if e == nil {
		f.faults.Found(k, nil)
		return nil
	}
	f.faults.Found(k, &e.Event)
	f.people[e.user] = true
	if !e.sure() {
		f.maybe[e.user] = true
	}
	if !e.Acked {
		f.unacked++
	}
	if before, ok := f.ordinals[e.user]; ok && before != k.Ordinal {
		f.faults.Add("user %s has events on profiles %d and %d", e.user.externalID(), before, k.Ordinal)
	}
	if other, ok := f.users[k.Ordinal]; ok && other != e.user {
		f.faults.Add("profile %d has events of users %s and %s", k.Ordinal, other.externalID(), e.user.externalID())
	}
	f.ordinals[e.user], f.users[k.Ordinal] = k.Ordinal, e.user
	return nil
}

// err is every fault, with the acknowledged events that are missing.
func (f *finder) err() error {
	f.faults.Lost(func(visit func(string, *ledger.Event)) {
		for _, b := range f.books {
			for n := range b.events {
				visit(b.key(n), &b.events[n].Event)
			}
		}
	})
	return f.faults.Err()
}

func compare(what string, got, want int) error {
	if got != want {
		return fmt.Errorf("%s: %d, want %d", what, got, want)
	}
	return nil
}

// median is the middle one of the values; half of the users are at or above.
func median(of map[user]int) int {
	values := slices.Sorted(maps.Values(of))
	if len(values) == 0 {
		return 1
	}
	return values[len(values)/2]
}

func atLeast(of map[user]int, least int) (n int) {
	for _, v := range of {
		if v >= least {
			n++
		}
	}
	return n
}
