package contest

import "github.com/musterhq/muster/bench/internal/report"

// Targets are the numbers to reach with the events API, by what the report measured.
func (r *Report) Targets() (out []report.Target) {
	for i := range r.Modes {
		m := &r.Modes[i]
		if m.Median.MusterPerSecond == 0 || m.Mode.Tracking {
			continue
		}
		name, share := m.what()+": ", report.AtLeast("share of read only", m.Median.OfRead, 0.4)
		if m.Mode.Batch > 0 {
			want := 0.2
			if m.Mode.Repeat {
				want = 0.25
			}
			share = report.AtLeast("share of parse only", m.Median.OfParse, want)
		}
		of := []report.Target{share, report.AtMost("p99 in ms at half of the rate", m.Median.PacedP99Millis, 10), report.AtMost("p99.9 in ms at half of the rate", m.Median.PacedP999Millis, 30)}
		if m.Mode.Batch > 0 {
			of = append(of, report.AtMost("bytes on disk an event", m.DiskBytes(), 240))
		}
		for _, t := range of {
			t.Name = name + t.Name
			out = append(out, t)
		}
	}
	return out
}

// DiskBytes is what the last round left on disk, in bytes an event: log, history and state. It is
// 0 where the last round did not measure Muster.
func (m *ModeReport) DiskBytes() float64 {
	if len(m.Rounds) == 0 || m.Rounds[len(m.Rounds)-1].Muster == nil {
		return 0
	}
	last := m.Rounds[len(m.Rounds)-1].Muster
	var sum int64
	for _, n := range last.DiskBytes {
		sum += n
	}
	return float64(sum) / float64(max(last.Once.Rows, 1))
}
