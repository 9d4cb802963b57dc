package flows

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/musterhq/muster/bench/internal/report"
)

// Print writes the report as tables for people.
func (r *Report) Print(out io.Writer) error {
	return report.PrintTables(out, r.printHead, r.printLoad, r.printSleep, report.PrintTargets(r.Targets))
}

func (r *Report) printHead(w io.Writer) {
	fmt.Fprintf(w, "%d CPUs, %s, seed %d, %.0f s; other processes took up to %.0f %% of the CPUs during a phase\n", r.CPUs, r.Go, r.Options.Seed, r.Seconds, 100*r.Others)
	if r.Stopped != "" {
		fmt.Fprintf(w, "stopped: %s\n", r.Stopped)
	}
}

func (r *Report) printLoad(w io.Writer) {
	l := r.Load
	if l == nil {
		return
	}
	fmt.Fprintf(w, "\nLoad of single events on %d profiles, %d connections, %d live segments; phases of %v, %g probes a second\n",
		r.Options.Profiles, r.Options.Connections, l.Segments, r.Options.Duration, r.Options.ProbesPerSecond)
	fmt.Fprintln(w, "phase\tevents/s\tp50 ms\tp99 ms\tCPU µs/event\tenrolments/s\tcalls\tmails\tprobes\tanswered p50\tp99\tto seen p50\tp99\tstale\tto call p50\tp99\tto mail p50\tp99\tmissing\tfailed\tothers %\t")
	for _, p := range l.phases() {
		fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.2f\t%.1f\t%.0f\t%d\t%d\t", p.Name, p.EventsPerSecond, p.P50Millis, p.P99Millis, p.CPUMicros, p.EnrolmentsPerSecond, p.Calls, p.Mails)
		x := p.Probes
		fmt.Fprintf(w, "%d\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%d\t%d\t%.0f\t\n", x.Sent, x.Answered.P50Millis, x.Answered.P99Millis, x.Seen.P50Millis, x.Seen.P99Millis, x.Stale,
			x.Called.P50Millis, x.Called.P99Millis, x.Mailed.P50Millis, x.Mailed.P99Millis, x.Missing, p.Failed, 100*p.Others)
	}
	if p := l.Publish; p != nil {
		fmt.Fprintf(w, "taking %d flows live enrolled %d in %.1f s: %.0f a second, %.0f µs of CPU each\n", p.Flows, p.Enrolments, p.Seconds, p.EnrolmentsPerSecond, p.CPUMicros)
	}
	if c := l.Check; c != nil {
		fmt.Fprintf(w, "counted at the end: %d probes, entered %d, completed %d, calls of %d (%d repeated), e-mails of %d (%d repeated)\n",
			c.Probes, c.Entered, c.Completed, c.Calls, c.CallsAgain, c.Mails, c.MailsAgain)
	}
	if l.RateRatio > 0 {
		fmt.Fprintf(w, "with flows by without: %.2f of the events a second, %.2f times the CPU time per event", l.RateRatio, l.CPURatio)
		if l.AnsweredRatio > 0 {
			fmt.Fprintf(w, ", %.2f times the p99 of probes", l.AnsweredRatio)
		}
		fmt.Fprintln(w)
	}
}

func mb(n int64) float64 { return float64(n) / 1e6 }

func (r *Report) printSleep(w io.Writer) {
	s := r.Sleep
	if s == nil {
		return
	}
	fmt.Fprintf(w, "\n%d sleeping enrolments; profiles made at %.0f a second\n", s.Sleepers, s.GrownPerSecond)
	fmt.Fprintln(w, "server\tstop s\tstart s\tGo heap MB\tRSS MB\theld MB\tdisk MB\t")
	row := func(name string, x *Stand) {
		if x == nil {
			return
		}
		var disk int64
		for _, n := range x.Disk {
			disk += n
		}
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", name, x.StopSeconds, x.StartSeconds, mb(x.HeapBytes), mb(x.RSSBytes), mb(x.RSSHeldBytes), mb(disk))
	}
	row("without flows, restarted", s.Bare)
	row("enrolled", s.Served)
	row("restarted", s.Started)
	for _, k := range []struct {
		name string
		x    *Killed
	}{{"without flows", s.BareKilled}, {"with sleepers", s.Killed}} {
		if k.x != nil {
			fmt.Fprintf(w, "start after kill -9 behind %d events, %s: %.2f s\n", k.x.Events, k.name, k.x.StartSeconds)
		}
	}
	if p := s.Enrol; p != nil {
		fmt.Fprintf(w, "enrolling %d at once: %.1f s, %.0f a second, %.0f µs of CPU each; other processes took %.0f %%\n", p.Enrolments, p.Seconds, p.EnrolmentsPerSecond, p.CPUMicros, 100*p.Others)
	}
	if s.Started != nil {
		fmt.Fprintf(w, "per enrolment, restarted: %.1f bytes of Go heap, %.1f of RSS; on disk:", s.HeapPer, s.RSSPer)
		for _, name := range slices.Sorted(maps.Keys(s.DiskPer)) {
			if n := s.DiskPer[name]; n >= 0.5 || n <= -0.5 {
				fmt.Fprintf(w, " %s %.0f", name, n)
			}
		}
		fmt.Fprintln(w)
	}
	if x := s.Alone; x != nil {
		fmt.Fprintf(w, "a wait that ends alone is carried out, up to the arrival of a call, late by %.1f ms (p50), %.1f ms (the latest of %d)\n", x.P50Millis, x.MaxMillis, x.N)
	}
	if x := s.Many; x != nil {
		fmt.Fprintf(w, "%d waits that end at one instant are carried out late by %.0f ms (p50), %.0f ms (p99), %.0f ms at most: %.0f a second\n",
			x.Sleepers, x.Late.P50Millis, x.Late.P99Millis, x.Late.MaxMillis, x.PerSecond)
	}
}
