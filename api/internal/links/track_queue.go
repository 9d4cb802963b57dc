package links

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/messages"
)

// The bounds of what readers of messages may cause.
const (
	// trackWait is how long an answer waits for its engagement to be recorded.
	trackWait = 2 * time.Second
	// trackQueue is how many engagements wait while the state is too busy.
	trackQueue = 8192
	trackPause = 200 * time.Millisecond
	// trackPerMinute is how often one link counts in a minute: a picture that a
	// program loads in a loop must not fill the log.
	trackPerMinute = 30
	trackSlots     = 1 << 14
)

// engagementWork is an engagement to be recorded.
type engagementWork struct {
	account uint64
	record  messages.EngagementRecord
}

// commander changes the state: a [*node.Node].
type commander interface {
	Command(ctx context.Context, account uint64, name string, args any) (reply []byte, err error)
}

// tracker records opens and clicks. What the state is too busy for waits in a
// queue.
type tracker struct {
	node commander
	now  func() time.Time

	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup
	wait chan engagementWork

	limits struct {
		sync.Mutex
		slots []trackSlot
	}

	recorded, limited, deferred, lost, unknown, refused *metrics.Counter
}

// trackSlot counts for one link in one minute. Links share slots; the one that
// comes counts from zero, so that none is ever held to another's count.
type trackSlot struct {
	link   uint64
	minute int64
	count  int
}

func newTracker(node commander, now func() time.Time, set *metrics.Set) *tracker {
	t := &tracker{node: node, now: now, wait: make(chan engagementWork, trackQueue)}
	t.ctx, t.stop = context.WithCancel(context.Background())
	t.limits.slots = make([]trackSlot, trackSlots)
	counter := func(result string) *metrics.Counter {
		return set.GetOrCreateCounter(fmt.Sprintf(`muster_tracked_total{result=%q}`, result))
	}
	t.recorded, t.limited, t.deferred = counter("recorded"), counter("limited"), counter("deferred")
	t.lost, t.unknown, t.refused = counter("lost"), counter("unknown"), counter("refused")
	set.GetOrCreateGauge("muster_tracked_waiting", func() float64 { return float64(len(t.wait)) })
	t.done.Go(t.drain)
	return t
}

// close ends the recording of what waits; it is lost, and counted.
func (t *tracker) close() {
	t.stop()
	t.done.Wait()
	for {
		select {
		case <-t.wait:
			t.lost.Inc()
		default:
			return
		}
	}
}

// allow reports whether a link may count once more in this minute.
func (t *tracker) allow(c *tracking.Claims) bool {
	link := uint64(14695981039346656037) // FNV-1a
	mix := func(b byte) { link = (link ^ uint64(b)) * 1099511628211 }
	for _, b := range c.Send {
		mix(b)
	}
	for i := range 8 {
		mix(byte(c.Account >> (8 * i)))
	}
	mix(byte(c.Kind))
	mix(byte(c.Link))
	mix(byte(c.Link >> 8))
	minute := t.now().UnixMilli() / 60_000
	t.limits.Lock()
	defer t.limits.Unlock()
	s := &t.limits.slots[link%trackSlots]
	if s.link != link || s.minute != minute {
		*s = trackSlot{link: link, minute: minute}
	}
	s.count++
	return s.count <= trackPerMinute
}

// note records an engagement. It waits a little, and never fails: the reader of a
// message gets no error for our troubles.
func (t *tracker) note(w engagementWork) {
	switch err := t.try(w); {
	case err == nil:
	case isBusy(err):
		select {
		case t.wait <- w:
			t.deferred.Inc()
		default:
			t.lost.Inc()
		}
	case errors.Is(err, context.DeadlineExceeded):
		// It may be in the log, so it is not sent again: that would count twice.
		t.unknown.Inc()
	default:
		t.lost.Inc()
	}
}

// isBusy reports whether nothing was stored because there is too much to do.
func isBusy(err error) bool {
	return errors.Is(err, resolver.ErrOverloaded) || errors.Is(err, eventlog.ErrQueueFull)
}

func (t *tracker) try(w engagementWork) error {
	ctx, cancel := context.WithTimeout(t.ctx, trackWait)
	defer cancel()
	_, err := t.node.Command(ctx, w.account, messages.CommandEngagement, w.record)
	var refusal *resolver.Refusal
	switch {
	case err == nil:
		t.recorded.Inc()
	case errors.As(err, &refusal):
		t.refused.Inc()
		return nil
	}
	return err
}

// drain records what waits, one after the other.
func (t *tracker) drain() {
	for {
		select {
		case <-t.ctx.Done():
			return
		case w := <-t.wait:
			for isBusy(t.try(w)) {
				pause := time.NewTimer(trackPause)
				select {
				case <-t.ctx.Done():
					pause.Stop()
					t.lost.Inc()
					return
				case <-pause.C:
				}
			}
		}
	}
}
