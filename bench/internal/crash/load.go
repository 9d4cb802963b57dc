package crash

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/bench/internal/gate"
	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/surface"
)

// LoadOptions say how a load posts.
type LoadOptions struct {
	// Site is where requests go.
	Site surface.Site
	// Workers post at the same time; every other one posts batches.
	Workers int
	// Seed makes the requests repeatable, as far as the machine is.
	Seed uint64
	// Think bounds the random pause between a worker's requests; 0 is none, for
	// workers that post single events.
	Think time.Duration
}

// Load is workers who post events, and the books of what they know of them.
// Its methods are called one at a time unless they say otherwise.
type Load struct {
	site    surface.Site
	people  *people
	workers []*worker
	live    []*liveSegment
	finder  *finder
}

// NewLoad makes the workers.
func NewLoad(o LoadOptions) *Load {
	l := &Load{site: o.Site.WithDefaults(), people: newPeople(), live: liveSegments()}
	for i := range o.Workers {
		l.workers = append(l.workers, newWorker(i, o.Seed, &l.site, l.people, o.Think))
	}
	l.finder = newFinder()
	for _, w := range l.workers {
		l.finder.books = append(l.finder.books, w.book)
	}
	return l
}

// Run lets the workers post until finish is closed, and until nothing is open. It
// may be called again.
func (l *Load) Run(ctx context.Context, finish <-chan struct{}) error {
	return gate.All(ctx, finish, l.workers, (*worker).run)
}

// Sources are what a check compares the books with.
type Sources struct {
	// Nodes are asked for profiles and segments; each must give the same answers.
	Nodes []server.Credentials
	// Alone says that only this load has put profiles into the account.
	Alone bool
	// Keys visits the keys of the load's events in history, those that no earlier
	// check has visited. It is called once the nodes have answered.
	Keys func(visit func(history.Key) error) error
}

// IsKey reports whether a key is one of a load's.
func IsKey(key string) bool { return len(key) > 1 && key[0] == 'k' && key[1] >= '0' && key[1] <= '9' }

// Check compares profiles, segments and history with the books. Nothing is
// posted meanwhile.
func (l *Load) Check(ctx context.Context, s Sources) (Work, error) {
	totals := l.totals()
	counted := make([]answers, len(s.Nodes))
	group, within := errgroup.WithContext(ctx)
	for i, node := range s.Nodes {
		group.Go(func() (err error) {
			if counted[i], err = l.ask(within, node, totals); err != nil {
				return fmt.Errorf("%s: %w", node.ConsoleURL, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return Work{}, err
	}
	f := l.finder
	if err := s.Keys(f.visit); err != nil {
		return Work{}, err
	}
	if err := f.err(); err != nil {
		return Work{}, err
	}
	work := Work{Acked: totals.acked, Profiles: len(f.people), GivenUpInHistory: f.unacked}
	for _, w := range l.workers {
		work.Requests += w.counts.requests
		work.Retried += w.counts.retried
		work.Repeated += w.counts.repeated
		work.Twins += w.counts.twins
		work.GivenUp += w.counts.givenUp
	}
	// These depend on which given-up requests got through, which only history
	// can say: segments and history must agree.
	var faults []error
	for _, c := range counted {
		faults = append(faults, compare("segment of given-up events", c.maybe, len(f.maybe)))
		if s.Alone {
			faults = append(faults, compare("segment of all profiles", c.all, len(f.people)))
		}
	}
	return work, errors.Join(faults...)
}
