package checkpoint

import (
	"log/slog"
	"time"
)

// Phases says what the opening of a partition took, for one log line.
type Phases struct {
	last time.Time
	took []any
}

// NewPhases begins the first phase.
func NewPhases() *Phases { return &Phases{last: time.Now()} }

// End ends a phase; the next begins. A nil p takes no notice.
func (p *Phases) End(name string) {
	if p == nil {
		return
	}
	now := time.Now()
	p.took = append(p.took, slog.Duration(name, now.Sub(p.last).Round(time.Millisecond)))
	p.last = now
}

// Attr is all phases in their order.
func (p *Phases) Attr() slog.Attr { return slog.Group("took", p.took...) }
