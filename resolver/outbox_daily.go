package resolver

import (
	"encoding/json"
	"time"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/resolver/internal/state"
)

// daily is what the catalog counted when the present UTC day began, or when an
// endpoint first asked for totals. The totals of a day are what was recorded
// during it, whenever it is said to have happened.
type daily struct {
	FromMs int64             `json:"from_ms"` // 0: nobody asks
	Counts map[string]uint64 `json:"counts,omitempty"`
}

// endsMs is when the day ends.
func (d *daily) endsMs() int64 { return d.FromMs - d.FromMs%dayMs + dayMs }

func (a *account) dailyDue(nowMs int64) bool { return a.daily.FromMs != 0 && nowMs >= a.daily.endsMs() }

// keepDaily begins to keep totals when an endpoint asks for them, and ends it
// when none does.
func (m *Machine) keepDaily(a *account) {
	wanted := a.listens(webhookevent.AnalyticsDaily)
	switch {
	case wanted && a.daily.FromMs == 0:
		m.beginDay(a)
	case !wanted && a.daily.FromMs != 0:
		a.daily = daily{}
		m.store.PutEntity(state.EntityKey(a.number, state.EntityEndpoint, endpointDailyName), nil)
	}
}

func (m *Machine) beginDay(a *account) {
	a.daily = daily{FromMs: max(m.logTime, 1), Counts: map[string]uint64{}}
	for typ := range hookNames {
		if t := a.types[typ]; t != nil && t.Count > 0 {
			a.daily.Counts[typ] = t.Count
		}
	}
	m.store.PutEntity(state.EntityKey(a.number, state.EntityEndpoint, endpointDailyName), must.JSON(a.daily))
}

// endDay tells the totals of a day that has ended. Days in which the service
// stood still are not told: nothing was recorded in them.
func (m *Machine) endDay(a *account) {
	if !a.dailyDue(m.logTime) {
		return
	}
	counts := map[string]uint64{}
	for typ := range hookNames {
		if t := a.types[typ]; t != nil && t.Count > a.daily.Counts[typ] {
			counts[typ] = t.Count - a.daily.Counts[typ]
		}
	}
	date := time.UnixMilli(a.daily.FromMs).UTC().Format(time.DateOnly)
	m.notify(a, NoProfile, webhookevent.AnalyticsDaily, properties{"date": date, "counts": counts})
	m.beginDay(a)
}

// loadEndpoint reads an entity of the endpoints.
func (a *account) loadEndpoint(name string, value []byte) error {
	if name == endpointDailyName {
		return json.Unmarshal(value, &a.daily)
	}
	e := new(Endpoint)
	if err := json.Unmarshal(value, e); err != nil {
		return err
	}
	a.endpoints[e.ID] = e
	return nil
}
