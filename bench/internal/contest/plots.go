package contest

import (
	"fmt"

	"github.com/musterhq/muster/bench/internal/chart"
)

// Plot writes the charts of a report as SVG files into a directory, and returns their
// names: for each mode the rate, latencies, CPU and memory of its last round over time, the
// saturated phase first and the paced one behind it.
func (r *Report) Plot(dir string) ([]string, error) {
	var all []chart.Named
	for _, m := range r.Modes {
		if len(m.Rounds) == 0 {
			continue
		}
		last := m.Rounds[len(m.Rounds)-1].Muster
		if last == nil {
			continue
		}
		all = append(all, m.Mode.charts(last)...)
	}
	return chart.Write(dir, all)
}

// file begins the names of a mode's files.
func (m Mode) file() string {
	if m.Repeat {
		return fmt.Sprintf("%s-repeating-%g", m.Name, m.ChangeRatio)
	}
	return m.Name
}

func (m Mode) charts(muster *Muster) []chart.Named {
	line := func(name string, value func(Moment) float64) (out []chart.Series) {
		from := 0.0
		for _, p := range []struct {
			name  string
			phase Phase
		}{{"saturated", muster.Saturated}, {fmt.Sprintf("at %.0f/s", muster.Paced.OfferedPerSecond), muster.Paced}} {
			s := chart.Series{Name: p.name}
			if name != "" {
				s.Name = name + ", " + p.name
			}
			for _, x := range p.phase.OverTime {
				s.Points = append(s.Points, chart.Point{X: from + x.Seconds, Y: value(x)})
			}
			out = append(out, s)
			from += p.phase.Seconds
		}
		return out
	}
	latencies := append(line("p50", func(x Moment) float64 { return x.P50Millis }), line("p99", func(x Moment) float64 { return x.P99Millis })...)
	latencies = append(latencies, line("longest", func(x Moment) float64 { return x.MaxMillis })...)
	return []chart.Named{
		{Name: m.file() + "-rate", Chart: chart.Chart{Title: m.file() + ": events taken", XLabel: "seconds", YLabel: "events/s", Series: line("", func(x Moment) float64 { return x.EventsPerSecond })}},
		{Name: m.file() + "-latency", Chart: chart.Chart{Title: m.file() + ": latency of requests", XLabel: "seconds", YLabel: "ms", LogY: true, Series: latencies}},
		{Name: m.file() + "-cpu", Chart: chart.Chart{Title: m.file() + ": the server's CPU", XLabel: "seconds", YLabel: "cores", Series: line("", func(x Moment) float64 { return x.Cores })}},
		{Name: m.file() + "-memory", Chart: chart.Chart{Title: m.file() + ": the server's resident memory", XLabel: "seconds", YLabel: "MB", Series: line("", func(x Moment) float64 { return float64(x.RSSBytes) / 1e6 })}},
	}
}
