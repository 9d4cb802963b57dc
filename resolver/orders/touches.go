package orders

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// What a person did with a message.
const (
	TouchClick = "click"
	TouchOpen  = "open"
)

// The bounds of the touches of a person, of which the newest are kept.
const (
	MaxTouches = 50
	// MaxTouchesOfSource bounds those of one source and kind, so that one message that is opened
	// over and over leaves room for others.
	MaxTouchesOfSource = 10
	// maxTouchesBefore was the bound under rules before [rulesTouches], with one of a source and
	// kind.
	maxTouchesBefore = 20
)

// Source is what sent a message: a campaign, or a step of a flow.
type Source struct {
	Channel  string `json:"channel"`
	Campaign string `json:"campaign_id,omitempty"`
	Flow     string `json:"flow_id,omitempty"`
	Step     string `json:"step_id,omitempty"`
}

// Touch is a click or an open of a message of a source by a person.
type Touch struct {
	Kind string `json:"kind"`
	AtMs int64  `json:"at_ms"` // log time
	Source
}

// The windows of accounts that have set none, and their bound, in hours.
const (
	defaultClickHours = 5 * 24
	defaultOpenHours  = 24
	maxHours          = 30 * 24

	hourMs = 3_600_000
)

// Attribution says how long after a touch an order belongs to it.
type Attribution struct {
	// ClickHours and OpenHours are the windows after a click and after an open. In one of 0
	// hours nothing counts.
	ClickHours int `json:"click_hours"`
	OpenHours  int `json:"open_hours"`
}

// Shown is the attribution as clients see it; nil has the defaults.
func (a *Attribution) Shown() *Attribution {
	if a == nil {
		return &Attribution{ClickHours: defaultClickHours, OpenHours: defaultOpenHours}
	}
	return a
}

// Validate says what is wrong with the attribution, nil for nothing. field is its name in
// requests.
func (a *Attribution) Validate(field string) *refuse.Refusal {
	for _, x := range [...]struct {
		name  string
		hours int
	}{{"click_hours", a.ClickHours}, {"open_hours", a.OpenHours}} {
		if x.hours < 0 || x.hours > maxHours {
			name := field + "." + x.name
			return refuse.Invalid(name, "%s must be between 0 and %d", name, maxHours)
		}
	}
	return nil
}

// Touch notes that a person clicked or opened a message of a source.
func (s *State) Touch(tx *feature.Tx, ordinal uint32, kind string, source Source) {
	r := s.record(ordinal)
	r.touch(Touch{Kind: kind, AtMs: tx.AtMs, Source: source}, tx.Rules)
	s.putRecord(ordinal, r)
}

// touch adds a touch in order of time. Earlier ones of its source stay, since an order that comes
// late may lie between the two; under older rules they went.
func (r *record) touch(t Touch, rules int) {
	most, ofSource := MaxTouches, MaxTouchesOfSource
	same := func(x Touch) bool { return x.Kind == t.Kind && x.Source == t.Source }
	if rules < rulesTouches {
		most, ofSource = maxTouchesBefore, 1
		if i := slices.IndexFunc(r.Touches, same); i >= 0 {
			t.AtMs = max(t.AtMs, r.Touches[i].AtMs)
		}
	} else if slices.Contains(r.Touches, t) {
		return
	}
	r.Touches = append(r.Touches, t)
	slices.SortStableFunc(r.Touches, func(x, y Touch) int {
		return cmp.Or(cmp.Compare(x.AtMs, y.AtMs), cmp.Compare(x.Kind, y.Kind), x.compare(&y.Source))
	})
	over := -ofSource
	for _, x := range r.Touches {
		if same(x) {
			over++
		}
	}
	r.Touches = slices.DeleteFunc(r.Touches, func(x Touch) bool {
		goes := over > 0 && same(x)
		if goes {
			over--
		}
		return goes
	})
	r.Touches = r.Touches[max(0, len(r.Touches)-most):]
}

// touched is the touch that an order at an instant belongs to, nil for none.
func (s *State) touched(r *record, atMs int64) *Touch {
	windows := map[string]int64{TouchClick: int64(s.attribution.ClickHours) * hourMs, TouchOpen: int64(s.attribution.OpenHours) * hourMs}
	for _, t := range slices.Backward(r.Touches) {
		if age := atMs - t.AtMs; age >= 0 && windows[t.Kind] > 0 && age <= windows[t.Kind] {
			return &t
		}
	}
	return nil
}
