package links

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/musterhq/muster/resolver/forms"
)

const (
	// viewsEvery is how often views of forms are recorded. A crash loses those since.
	viewsEvery = 5 * time.Second
	// maxViewed bounds the forms that are viewed between two records.
	maxViewed = 10_000
)

// formViews counts views of forms, and records them now and then: not every look at a page is
// to make a record.
type formViews struct {
	node    commander
	timeout time.Duration
	log     *slog.Logger
	stop    context.CancelFunc
	done    sync.WaitGroup
	mu      struct {
		sync.Mutex // guards views
		views      map[formRef]uint64
	}
}

type formRef struct {
	account uint64
	id      string
}

func newFormViews(node commander, timeout time.Duration, log *slog.Logger) *formViews {
	v := &formViews{node: node, timeout: timeout, log: log}
	v.mu.views = map[formRef]uint64{}
	ctx, stop := context.WithCancel(context.Background())
	v.stop = stop
	v.done.Go(func() {
		t := time.NewTicker(viewsEvery)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				v.record()
			case <-ctx.Done():
				return
			}
		}
	})
	return v
}

// close records what was counted.
func (v *formViews) close() {
	v.stop()
	v.done.Wait()
	v.record()
}

func (v *formViews) add(account uint64, id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	ref := formRef{account, id}
	if _, known := v.mu.views[ref]; known || len(v.mu.views) < maxViewed {
		v.mu.views[ref]++
	}
}

// waiting is how many views of a form are not recorded yet.
func (v *formViews) waiting(account uint64, id string) uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.mu.views[formRef{account, id}]
}

func (v *formViews) record() {
	v.mu.Lock()
	views := v.mu.views
	v.mu.views = map[formRef]uint64{}
	v.mu.Unlock()
	for ref, n := range views {
		ctx, cancel := context.WithTimeout(context.Background(), v.timeout)
		if _, err := v.node.Command(ctx, ref.account, forms.CommandViewed, forms.Viewed{ID: ref.id, Views: n}); err != nil {
			v.log.Warn("views of a form are not recorded", "form", ref.id, "views", n, "error", err)
		}
		cancel()
	}
}

// FormViews is how many views of a form are counted and not recorded yet.
func (a *API) FormViews(account uint64, id string) uint64 { return a.views.waiting(account, id) }
