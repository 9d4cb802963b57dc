// Package live shows what a node applies to people who watch: events as they arrive, events
// that were refused, and entries into segments and exits from them. Nothing of it is kept
// but the newest refused events, in memory.
package live

import (
	"sync"
	"sync/atomic"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/identifier"
)

// Event is an event as it arrives, for people who watch.
type Event struct {
	Profile    resolver.ProfileID
	EventType  string
	TimeMs     int64
	Properties string
	// Idents are the identifiers that the event gave, by kind, "" for none.
	Idents [identifier.Kinds]string
	// Duplicate says that an event with the same idempotency key was stored before.
	Duplicate bool
	// Transitions are the entries and exits that the event's record caused for the
	// profile. The profile's last event of the record has them.
	Transitions []Caused
	// SourceID, SourceName and Call say what sent the event through the tracking API; they
	// are empty for others.
	SourceID, SourceName, Call string
	// Refused is set for an event that was not stored; all else is empty.
	Refused *Refused
}

// Caused is an entry into a segment, or an exit from it.
type Caused struct {
	Segment string
	Entered bool
}

// liveBuffer is how many events a watcher may lag behind; more are dropped for that watcher
// and counted. The events of a request come at once, faster than anyone reads: those of a
// usual one fit. Watchers share the events, so that each costs a watcher a pointer.
const liveBuffer = 2048

// maxWatchers bounds who watches events, and who watches transitions.
const maxWatchers = 100

// Events hands applied and refused events to watchers. Without any it costs one load. The
// zero value is ready for use; it is safe for concurrent use.
type Events struct {
	count   atomic.Int32
	mu      sync.Mutex
	subs    map[*Watcher]struct{}
	refused refusedEvents
}

// Watchers is how many watch.
func (l *Events) Watchers() int { return int(l.count.Load()) }

// Watcher receives the events of one account.
type Watcher struct {
	// Events carries the events; it is never closed.
	Events  chan *Event
	account uint64
	dropped atomic.Uint64
	live    *Events
	end     watchEnd
}

// Watch starts watching an account; ok is false when too many watch already. served says
// why the account is not served here, nil if it is; the watcher of one that is not has
// ended. An account that is taken away must be so before [Events.End].
func (l *Events) Watch(account uint64, served func() error) (w *Watcher, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.subs) >= maxWatchers {
		return nil, false
	}
	if l.subs == nil {
		l.subs = map[*Watcher]struct{}{}
	}
	w = &Watcher{Events: make(chan *Event, liveBuffer), account: account, live: l, end: newWatchEnd()}
	if err := served(); err != nil {
		w.end.set(err)
		return w, true
	}
	l.subs[w] = struct{}{}
	l.count.Store(int32(len(l.subs)))
	return w, true
}

// Dropped is how many events the watcher was too slow for.
func (w *Watcher) Dropped() uint64 { return w.dropped.Load() }

// Ended is closed when no events come any more; Err then says why.
func (w *Watcher) Ended() <-chan struct{} { return w.end.ended }

// Err wraps [resolver.ErrNotOwner] once this node does not serve the account any more, and
// is nil before.
func (w *Watcher) Err() error { return w.end.get() }

// Close ends watching.
func (w *Watcher) Close() {
	w.live.mu.Lock()
	defer w.live.mu.Unlock()
	delete(w.live.subs, w)
	w.live.count.Store(int32(len(w.live.subs)))
}

// put hands over an event, or counts it as dropped.
func (w *Watcher) put(e *Event) {
	select {
	case w.Events <- e:
	default:
		w.dropped.Add(1)
	}
}

// watches reports whether an account has watchers.
func (l *Events) watches(account uint64) bool {
	if l.count.Load() == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.subs {
		if w.account == account {
			return true
		}
	}
	return false
}

// Caused lists the transitions of an account's record by profile, nil if there are no
// watchers of the account. It is called by the goroutine that applies, before the rows
// are handed on.
func (l *Events) Caused(m *resolver.Machine, account uint64, list []query.Transition) map[resolver.ProfileID][]Caused {
	if len(list) == 0 || !l.watches(account) {
		return nil
	}
	out := map[resolver.ProfileID][]Caused{}
	for i := range list {
		t := &list[i]
		if t.Account != account {
			continue // what was due of others
		}
		id, current := m.Profile(account, t.Ordinal)
		if !current {
			continue // it became part of another, which may be in the segment
		}
		out[id] = append(out[id], Caused{t.Segment, t.Entered})
	}
	return out
}

// Send hands the stored events of a record to watchers. caused is what
// [Events.Caused] answered.
func (l *Events) Send(env eventlog.Envelope, data []byte, out *resolver.Outcome, caused map[resolver.ProfileID][]Caused) {
	if !l.watches(env.Account) {
		return
	}
	last := map[resolver.ProfileID]int{}
	for i := range out.Events {
		if len(caused) > 0 && out.Events[i].Status == resolver.EventAccepted {
			last[out.Events[i].Profile] = i
		}
	}
	r, err := eventlog.NewEventsReader(data[eventlog.EnvelopeSize:])
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var ev eventlog.Event
	for i := 0; r.Next(&ev) && i < len(out.Events); i++ {
		o := &out.Events[i]
		if o.Status != resolver.EventAccepted && o.Status != resolver.EventDuplicate {
			continue
		}
		e := &Event{Profile: o.Profile, EventType: string(ev.Type), TimeMs: env.StampMs, Properties: string(ev.Properties), Duplicate: o.Status == resolver.EventDuplicate,
			Idents: [identifier.Kinds]string{string(ev.Email), string(ev.ExternalID), string(ev.Phone), string(ev.AnonymousID)}}
		if ev.HasTime {
			e.TimeMs = ev.TimeMs
		}
		if from := out.From; from != nil && i < len(from.Calls) {
			e.SourceID, e.SourceName, e.Call = from.SourceID, from.SourceName, from.Calls[i]
		}
		if at, is := last[o.Profile]; is && at == i {
			e.Transitions = caused[o.Profile]
		}
		for w := range l.subs {
			if w.account != env.Account {
				continue
			}
			w.put(e)
		}
	}
}
