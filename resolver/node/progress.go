package node

import (
	"sync"
	"time"
)

// progressEvery is the pause between log lines about a partition that is being loaded.
const progressEvery = 2 * time.Second

// reportProgress logs now and then how far the load of the partition is, until stop is
// called.
func (p *partition) reportProgress() (stop func()) {
	quit := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		var g progress
		for {
			select {
			case now := <-tick.C:
				end := p.requests.appended.Load() // it is set after the other two
				text, attrs := g.line(now, p.checkpoint.last.Load(), p.position.applied.Load(), end)
				p.log.Info(text, attrs...)
			case <-quit:
				return
			}
		}
	})
	return func() { close(quit); done.Wait() }
}

// progress is what lines about a replay have in common.
type progress struct {
	// first is the time of the first line, and from the offset then.
	first time.Time
	from  int64
}

// line says how far the replay is that began at the offset checkpoint, is at the
// offset at, and ends at end; end is 0 before it has begun. The time left is that at the
// pace since the first line.
func (g *progress) line(now time.Time, checkpoint, at, end int64) (text string, attrs []any) {
	if end == 0 {
		return "loading the checkpoint", nil
	}
	share := int64(100)
	if end > checkpoint {
		share = min(100, 100*(at-checkpoint)/(end-checkpoint))
	}
	attrs = []any{"percent", share, "at", at, "end", end}
	if g.first.IsZero() {
		g.first, g.from = now, at
	} else if done := at - g.from; done > 0 && end > at {
		left := time.Duration(float64(now.Sub(g.first)) / float64(done) * float64(end-at))
		attrs = append(attrs, "left", left.Round(time.Second))
	}
	return "replaying the log", attrs
}
