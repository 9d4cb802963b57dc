package segments

import (
	"fmt"

	"github.com/musterhq/muster/bench/internal/chart"
)

// Plot writes the charts of a report as SVG files into a directory and returns
// their names.
func (r *Report) Plot(dir string) ([]string, error) {
	return chart.Write(dir, []chart.Named{
		{Name: "cost-by-size", Chart: r.costBySize()},
		{Name: "cost-by-segments", Chart: r.costBySegments()},
		{Name: "counts", Chart: r.countChart()},
		{Name: "backfill", Chart: r.backfillChart()},
		{Name: "memory", Chart: r.memoryChart()},
		{Name: "restart", Chart: r.restartChart()},
	})
}

// bySize is a line over the number of profiles; what is 0 was not measured.
func (r *Report) bySize(name string, value func(*Step) float64) chart.Series {
	s := chart.Series{Name: name}
	for _, step := range r.Steps {
		if v := value(step); v > 0 {
			s.Points = append(s.Points, chart.Point{X: float64(step.Profiles), Y: v})
		}
	}
	return s
}

// of is a value of a part of a step, 0 where there is no such part.
func of[T any](part func(*Step) *T, value func(*T) float64) func(*Step) float64 {
	return func(s *Step) float64 {
		if p := part(s); p != nil {
			return value(p)
		}
		return 0
	}
}

// level is a horizontal line over the sizes.
func (r *Report) level(name string, y float64) chart.Series {
	s := r.bySize(name, func(*Step) float64 { return y })
	s.Dashed = true
	return s
}

func (r *Report) costBySize() chart.Chart {
	return chart.Chart{Title: "Cost of an event by the size of the account (least of the rounds)", XLabel: "profiles", YLabel: "CPU µs per event", LogX: true, Series: []chart.Series{
		r.bySize("no segments", func(s *Step) float64 { return s.Ingest.Without.LeastMicros }),
		r.bySize("20 live segments", func(s *Step) float64 { return s.Ingest.With.LeastMicros }),
		r.bySize("1,000 on other types", of(func(s *Step) *Cost { return s.Cost }, (*Cost).most)),
		r.bySize("no segments, again", func(s *Step) float64 { return s.Ingest.WithoutAgain.LeastMicros }),
	}}
}

func (r *Report) costBySegments() chart.Chart {
	c := chart.Chart{Title: "Cost of an event by the number of segments (least of the rounds)", XLabel: "segments", YLabel: "CPU µs per event", LogX: true, LogY: true}
	line := func(name string, points []CostPoint, dashed bool) {
		s := chart.Series{Name: name, Dashed: dashed}
		for _, p := range points {
			s.Points = append(s.Points, chart.Point{X: float64(p.Segments), Y: p.CPUMicros})
		}
		c.Series = append(c.Series, s)
	}
	for _, s := range r.Steps {
		if s.Cost != nil {
			line(fmt.Sprintf("other types, %d profiles", s.Profiles), s.Cost.Other, false)
			line(fmt.Sprintf("same type, %d profiles", s.Profiles), s.Cost.Same, false)
		}
	}
	return c
}

func (r *Report) countChart() chart.Chart {
	counts, preview := func(s *Step) *Counts { return s.Counts }, func(s *Step) *Preview { return s.Preview }
	return chart.Chart{Title: "Counting a segment under ingest", XLabel: "profiles", YLabel: "µs", LogX: true, LogY: true, Series: []chart.Series{
		r.bySize("count, p50", of(counts, func(c *Counts) float64 { return c.Busy.P50Micros })),
		r.bySize("count, p99", of(counts, func(c *Counts) float64 { return c.Busy.P99Micros })),
		r.bySize("count, longest", of(counts, func(c *Counts) float64 { return c.Busy.MaxMicros })),
		r.bySize("preview, conditions known", of(preview, func(p *Preview) float64 { return 1e3 * p.KnownMillis })),
		r.bySize("preview, one unknown", of(preview, func(p *Preview) float64 { return 1e3 * p.UnknownMillis })),
		r.bySize("SQL on DuckDB", of(counts, func(c *Counts) float64 {
			if len(c.SQL) == 0 {
				return 0
			}
			return 1e3 * c.SQL[0].SQLMillis
		})),
		r.level("1 ms", 1000),
	}}
}

func (r *Report) backfillChart() chart.Chart {
	c := chart.Chart{Title: "Building a segment from history", XLabel: "profiles", YLabel: "ms", LogX: true, LogY: true}
	for i, p := range probes() {
		value := func(f func(Backfill) float64) func(*Step) float64 {
			return func(s *Step) float64 {
				if i >= len(s.Backfill) {
					return 0
				}
				return f(s.Backfill[i])
			}
		}
		c.Series = append(c.Series, r.bySize(p.kind+", build", value(func(b Backfill) float64 { return b.BuildMillis })),
			r.bySize(p.kind+", bare query", value(func(b Backfill) float64 { return b.BareMillis })))
	}
	return c
}

func (r *Report) memoryChart() chart.Chart {
	return chart.Chart{Title: "Memory by profile", XLabel: "profiles", YLabel: "bytes per profile", LogX: true, LogY: true, Series: []chart.Series{
		r.bySize("Go heap after a start", func(s *Step) float64 { return s.Memory.HeapPerProfile }),
		r.bySize("RSS after a start", func(s *Step) float64 { return s.Memory.RSSPerProfile }),
		r.bySize("RSS as served", func(s *Step) float64 { return s.Memory.ServedRSSPerProfile }),
		r.bySize("leaf state of 20 segments", func(s *Step) float64 { return s.Memory.SegmentBytesPerProfile }),
		r.level("200 bytes", 200),
	}}
}

func (r *Report) restartChart() chart.Chart {
	return chart.Chart{Title: "Start, checkpoint, 20 segments built", XLabel: "profiles", YLabel: "seconds", LogX: true, LogY: true, Series: []chart.Series{
		r.bySize("start, no segments", of(func(s *Step) *Restart { return s.RestartBare }, func(x *Restart) float64 { return x.OpenSeconds })),
		r.bySize("start, 20 segments", of(func(s *Step) *Restart { return s.Restart }, func(x *Restart) float64 { return x.OpenSeconds })),
		r.bySize("checkpoint", of(func(s *Step) *Checkpoint { return s.Checkpoint }, func(c *Checkpoint) float64 { return c.Seconds })),
		r.bySize("20 segments built", func(s *Step) float64 { return s.LiveSeconds }),
		r.level("30 s", 30),
	}}
}
