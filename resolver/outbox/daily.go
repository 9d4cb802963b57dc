package outbox

import (
	"time"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/state"
)

// daily is what the catalog counted when the present UTC day began, or when an
// endpoint first asked for totals. The totals of a day are what was recorded
// during it, whenever it is said to have happened.
type daily struct {
	FromMs int64             `json:"from_ms"` // 0: no endpoint asks for it
	Counts map[string]uint64 `json:"counts,omitempty"`
}

// NextDue is the next time at which [State.Advance] has something to report; ok is false
// when no endpoint asks for totals.
func (s *State) NextDue() (ms int64, ok bool) {
	from := s.daily.FromMs
	return from - from%dayMs + dayMs, from != 0
}

// keepDaily begins to keep totals when an endpoint asks for them, and ends it
// when none does.
func (s *State) keepDaily(tx *feature.Tx) {
	wanted := s.Listens(webhookevent.AnalyticsDaily)
	switch {
	case wanted && s.daily.FromMs == 0:
		s.beginDay(tx)
	case !wanted && s.daily.FromMs != 0:
		s.daily = daily{}
		s.shared.Store.PutEntity(state.EntityKey(s.account, state.EntityEndpoint, endpointDailyName), nil)
	}
}

func (s *State) beginDay(tx *feature.Tx) {
	s.daily = daily{FromMs: max(tx.AtMs, 1), Counts: s.counts()}
	s.shared.Store.PutEntity(state.EntityKey(s.account, state.EntityEndpoint, endpointDailyName), must.JSON(s.daily))
}

// Advance queues the totals of a day that has ended. Days in which the service
// stood still have none: nothing was recorded in them.
func (s *State) Advance(tx *feature.Tx) {
	if ends, ok := s.NextDue(); !ok || tx.AtMs < ends {
		return
	}
	counts := map[string]uint64{}
	for typ, n := range s.counts() {
		if n > s.daily.Counts[typ] {
			counts[typ] = n - s.daily.Counts[typ]
		}
	}
	date := time.UnixMilli(s.daily.FromMs).UTC().Format(time.DateOnly)
	s.Notify(tx, NoProfile, webhookevent.AnalyticsDaily, map[string]any{"date": date, "counts": counts})
	s.beginDay(tx)
}
