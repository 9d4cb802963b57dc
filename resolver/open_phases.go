package resolver

import (
	"log/slog"
	"time"
)

// phases says what the opening of a partition took, for one log line.
type phases struct {
	last time.Time
	took []any
}

func newPhases() *phases { return &phases{last: time.Now()} }

// end ends a phase; the next begins. A nil p takes no notice.
func (p *phases) end(name string) {
	if p == nil {
		return
	}
	now := time.Now()
	p.took = append(p.took, slog.Duration(name, now.Sub(p.last).Round(time.Millisecond)))
	p.last = now
}

// attr is all phases in their order.
func (p *phases) attr() slog.Attr { return slog.Group("took", p.took...) }
