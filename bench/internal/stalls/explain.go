package stalls

import (
	"cmp"
	"io"
	"slices"
	"time"

	"golang.org/x/exp/trace"

	"github.com/musterhq/muster/bench/internal/cpuspeed"
	"github.com/musterhq/muster/bench/internal/loader"
)

// Share is a part of the time, with its name.
type Share struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// Report says what slow requests waited for.
type Report struct {
	// Requests were unanswered for longer than ThresholdMillis while the trace was recorded.
	Requests        int     `json:"slow_requests"`
	ThresholdMillis float64 `json:"threshold_ms"`
	// Seconds is the time in which one of them at least was unanswered, of TracedSeconds.
	Seconds       float64 `json:"seconds"`
	TracedSeconds float64 `json:"traced_seconds"`
	// Each is the stalls one by one, longest first: times without a break in which one of the
	// requests at least was unanswered.
	Each []Stall `json:"each"`
	// Causes add up to Seconds. Ran is what had the processors while the log or the
	// goroutine that applies was ready to run and had none, in seconds of processors.
	Causes []Share `json:"causes"`
	Ran    []Share `json:"ran_meanwhile"`
}

// Stall is a time in which requests were unanswered for too long.
type Stall struct {
	// AtSeconds is when it began, from the start of the trace.
	AtSeconds float64 `json:"at_seconds"`
	Seconds   float64 `json:"seconds"`
	Causes    []Share `json:"causes"`
}

// grain is the resolution of a report.
const grain = 100 * time.Microsecond

// moment is what happened in a grain.
type moment struct {
	logCall        string // the log was in this system call
	logReady       bool   // the log was ready to run
	applies, ready bool   // records were applied, or would have been with a processor
	lock           string // the goroutine that applies waited for a mutex in this call
	slow           bool
	slowCPU        bool // the machine's processors ran slower than usual
}

// Explain reads a trace and says what the requests waited for. Phases are the times in which
// the machine's processors were slow.
func Explain(r io.Reader, slow []loader.Span, threshold time.Duration, phases []cpuspeed.Phase) (*Report, error) {
	var all []interval
	if err := read(r, func(i interval) { all = append(all, i) }); err != nil {
		return nil, err
	}
	return explain(all, slow, threshold, phases), nil
}

func explain(all []interval, slow []loader.Span, threshold time.Duration, phases []cpuspeed.Phase) *Report {
	var from, to time.Time
	for _, i := range all {
		if from.IsZero() || i.from.Before(from) {
			from = i.from
		}
		if i.to.After(to) {
			to = i.to
		}
	}
	out := &Report{ThresholdMillis: threshold.Seconds() * 1000, TracedSeconds: to.Sub(from).Seconds()}
	moments := make([]moment, int(to.Sub(from)/grain)+1)
	// each calls do for the moments whose middle is in the interval.
	each := func(a, b time.Time, do func(i int)) {
		first := max(int((a.Sub(from)+grain/2)/grain), 0)
		for i := first; i < len(moments) && from.Add(time.Duration(i)*grain+grain/2).Before(b); i++ {
			do(i)
		}
	}
	for _, s := range slow {
		if s.To.After(from) && s.From.Before(to) {
			out.Requests++
			each(s.From, s.To, func(i int) { moments[i].slow = true })
		}
	}
	for _, p := range phases {
		each(p.From, p.To, func(i int) { moments[i].slowCPU = true })
	}
	for _, i := range all {
		set := i.mark()
		if set != nil {
			each(i.from, i.to, func(n int) { set(&moments[n]) })
		}
	}
	causes, ran := map[string]int{}, map[string]int{}
	for i := 0; i < len(moments); i++ {
		one, begin := map[string]int{}, i
		for ; i < len(moments) && moments[i].slow; i++ {
			one[moments[i].cause()]++
			causes[moments[i].cause()]++
		}
		if i > begin {
			out.Each = append(out.Each, Stall{AtSeconds: float64(begin) * grain.Seconds(), Seconds: float64(i-begin) * grain.Seconds(), Causes: shares(one)})
		}
	}
	slices.SortStableFunc(out.Each, func(a, b Stall) int { return cmp.Compare(b.Seconds, a.Seconds) })
	for _, i := range all {
		if i.state == trace.GoRunning || i.state == trace.GoSyscall && i.work == "history" {
			each(i.from, i.to, func(n int) {
				if m := &moments[n]; m.slow && (m.ready || m.logReady) && m.logCall == "" {
					ran[i.work]++
				}
			})
		}
	}
	out.Causes, out.Ran = shares(causes), shares(ran)
	for _, c := range out.Causes {
		out.Seconds += c.Seconds
	}
	return out
}

// mark is what an interval says of its moments, nil for nothing.
func (i interval) mark() func(*moment) {
	switch {
	case i.work == logWork && i.state == trace.GoSyscall:
		return func(m *moment) { m.logCall = i.call }
	case i.work == logWork && i.state == trace.GoRunnable:
		return func(m *moment) { m.logReady = true }
	case i.work == applyWork && i.state == trace.GoRunnable:
		return func(m *moment) { m.ready = true }
	case i.work == applyWork && (i.state == trace.GoRunning || i.state == trace.GoSyscall):
		return func(m *moment) { m.applies = true }
	case i.work == applyWork && i.locked:
		return func(m *moment) { m.lock = i.call }
	}
	return nil
}

// cause is what a slow request waited for at the moment: of several things the one that
// comes first on its way.
func (m *moment) cause() string {
	switch {
	case m.slowCPU:
		return "the machine's processors were slow"
	case m.logCall != "":
		return "the log in " + m.logCall
	case m.logReady:
		return "the log was ready and had no processor"
	case m.lock != "":
		return "apply waited for a lock in " + m.lock
	case m.ready:
		return "apply was ready and had no processor"
	case m.applies:
		return "apply worked"
	}
	return "neither the log nor apply: connections, or the loader"
}

// shares are the names by their times, longest first.
func shares(of map[string]int) (out []Share) {
	for name, n := range of {
		out = append(out, Share{Name: name, Seconds: float64(n) * grain.Seconds()})
	}
	slices.SortFunc(out, func(a, b Share) int { return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Name, b.Name)) })
	return out
}
