package flows

import (
	"fmt"

	"github.com/musterhq/muster/bench/internal/report"
)

// Report is everything that was measured.
type Report struct {
	Options Options `json:"options"`
	report.Machine
	// Stopped says where the budget ended; empty when it did not.
	Stopped string  `json:"stopped,omitempty"`
	Seconds float64 `json:"seconds"`
	Load    *Load   `json:"load,omitempty"`
	Sleep   *Sleep  `json:"sleep,omitempty"`
	// Others is the largest share of the machine's CPU time that other processes
	// took during a phase.
	Others  float64         `json:"others_cpu_max"`
	Targets []report.Target `json:"targets"`
}

// Load is what flows cost beside events.
type Load struct {
	Segments int `json:"segments"`
	// Without is as fast as it goes without flows, WithoutAgain at the end with all
	// of them paused.
	Without      *Phase   `json:"without_flows_saturated,omitempty"`
	WithoutPaced *Phase   `json:"without_flows_at_half,omitempty"`
	Publish      *Publish `json:"publish,omitempty"`
	Paced        []*Phase `json:"with_flows_paced"`
	With         *Phase   `json:"with_flows_saturated,omitempty"`
	WithoutAgain *Phase   `json:"flows_paused_saturated,omitempty"`
	Check        *Check   `json:"check,omitempty"`
	// RateRatio is the saturated rate with flows by that without, the mean of the
	// two; CPURatio the same of CPU time per event.
	RateRatio float64 `json:"rate_ratio"`
	CPURatio  float64 `json:"cpu_ratio"`
	// AnsweredRatio is the p99 of event sent → answered with flows by that without,
	// at the rate of the target.
	AnsweredRatio float64 `json:"answered_p99_ratio"`
}

// Phase is one phase of the load.
type Phase struct {
	Name string `json:"name"`
	report.Phase
	CPUMicros float64 `json:"cpu_us_per_event"` // of the server
	// Enrolments began during the phase.
	Enrolments          uint64  `json:"enrolments"`
	EnrolmentsPerSecond float64 `json:"enrolments_per_second"`
	Calls               uint64  `json:"calls"`      // that arrived at the sink
	Mails               uint64  `json:"mails"`      // the same
	Others              float64 `json:"others_cpu"` // share of the machine
	Probes              *Probes `json:"probes,omitempty"`
}

// Probes is what became of the bench's own events beside a load.
type Probes struct {
	Sent int `json:"sent"`
	// Answered is from when an event was due to its answer. With flows, it is
	// enrolled by then.
	Answered Latency `json:"answered"`
	// Stale are enrolments that were not there right after the answer.
	Stale int `json:"stale"`
	// Seen is from the answer until both enrolments had been read over HTTP, one
	// after the other: the greatest that answered → enrolled can be.
	Seen Latency `json:"answer_to_seen"`
	// Called and Mailed are from the answer until the call and the e-mail arrived,
	// 0 when it was there before: effects do not wait for answers.
	Called Latency `json:"answer_to_call"`
	Mailed Latency `json:"answer_to_mail"`
	// Missing are effects that did not come within a minute.
	Missing int `json:"missing_effects"`
}

// Check is what became of all probes, counted at the end. Each enrols once in
// each of the flows of probes and has one effect there.
type Check struct {
	Probes int `json:"probes"`
	// Entered and Completed are the counts of those flows.
	Entered   []uint64 `json:"entered"`
	Completed []uint64 `json:"completed"`
	// Calls and Mails are the probes with such an effect, CallsAgain and MailsAgain
	// the effects that came once more.
	Calls      int `json:"calls"`
	Mails      int `json:"mails"`
	CallsAgain int `json:"calls_again"`
	MailsAgain int `json:"mails_again"`
}

// err says what does not add up.
func (c *Check) err() error {
	n := uint64(c.Probes)
	wrong := c.Calls != c.Probes || c.Mails != c.Probes || c.CallsAgain+c.MailsAgain > 0
	for i := range c.Entered {
		wrong = wrong || c.Entered[i] != n || c.Completed[i] != n
	}
	if wrong {
		return fmt.Errorf("%w: of %d events, %d entered and %d completed, %d calls (%d repeated) and %d e-mails (%d repeated) came",
			errStale, c.Probes, c.Entered, c.Completed, c.Calls, c.CallsAgain, c.Mails, c.MailsAgain)
	}
	return nil
}

// Publish is the taking live of all flows, until today's members are enrolled.
type Publish struct {
	Flows               int     `json:"flows"`
	Seconds             float64 `json:"seconds"`
	Enrolments          uint64  `json:"enrolments"`
	EnrolmentsPerSecond float64 `json:"enrolments_per_second"`
	CPUMicros           float64 `json:"cpu_us_per_enrolment"` // of the server
	Others              float64 `json:"others_cpu"`           // share of the machine
}

// Sleep is what enrolments cost that sleep.
type Sleep struct {
	Sleepers int `json:"sleepers"`
	// Grown is the rate at which the profiles were made, in batches.
	GrownPerSecond float64 `json:"profiles_per_second"`
	// Bare is the server with the profiles and no flows, after a clean restart;
	// Served right after the enrolling; Started after the next clean restart.
	Bare    *Stand   `json:"bare,omitempty"`
	Enrol   *Publish `json:"enrol,omitempty"`
	Served  *Stand   `json:"served,omitempty"`
	Started *Stand   `json:"started,omitempty"`
	// BareKilled and Killed are starts after kill -9 behind events that no
	// checkpoint has.
	BareKilled *Killed `json:"bare_killed,omitempty"`
	Killed     *Killed `json:"killed,omitempty"`
	// By enrolment: Started less Bare.
	HeapPer float64            `json:"go_heap_bytes_per_enrolment"`
	RSSPer  float64            `json:"rss_bytes_per_enrolment"`
	DiskPer map[string]float64 `json:"disk_bytes_per_enrolment"`
	Alone   *Latency           `json:"wake_alone,omitempty"`
	Many    *WakeMany          `json:"wake_together,omitempty"`
}

// Stand is a server as it stands.
type Stand struct {
	StopSeconds  float64 `json:"stop_seconds,omitempty"` // of the clean stop before
	StartSeconds float64 `json:"start_seconds,omitempty"`
	// HeapBytes is Go's heap after a collection. RSSBytes is resident memory,
	// RSSHeldBytes without what Go holds free.
	HeapBytes    int64            `json:"go_heap_bytes"`
	RSSBytes     int64            `json:"rss_bytes"`
	RSSHeldBytes int64            `json:"rss_held_bytes"`
	Disk         map[string]int64 `json:"disk_bytes"`
}

// Killed is a start after kill -9.
type Killed struct {
	Events       uint64  `json:"events_just_before"`
	StartSeconds float64 `json:"start_seconds"`
}

// WakeMany is how late waits end of which many end at one instant.
type WakeMany struct {
	Sleepers int     `json:"sleepers"`
	Late     Latency `json:"late"`
	// PerSecond is how many continued in a second, from the instant to the last.
	PerSecond float64 `json:"per_second"`
}

// phases are those of the load that were measured.
func (l *Load) phases() []*Phase {
	var out []*Phase
	for _, p := range append(append([]*Phase{l.Without, l.WithoutPaced, l.With}, l.Paced...), l.WithoutAgain) {
		if p != nil {
			out = append(out, p)
		}
	}
	return out
}

// conclude works out what follows from the measurements.
func (r *Report) conclude() {
	r.Targets, r.Others = nil, 0
	target := func(name string, value, want float64) {
		r.Targets = append(r.Targets, report.AtMost(name, value, want))
	}
	if l := r.Load; l != nil {
		stale, missing, again := 0, 0, 0
		for _, p := range l.phases() {
			r.Others = max(r.Others, p.Others)
			if p.Probes != nil {
				stale += p.Probes.Stale
				missing += p.Probes.Missing
			}
		}
		if l.Publish != nil {
			r.Others = max(r.Others, l.Publish.Others)
		}
		if l.Check != nil {
			again = l.Check.CallsAgain + l.Check.MailsAgain
		}
		if l.With != nil && l.Without != nil {
			rate, cpu, n := l.Without.EventsPerSecond, l.Without.CPUMicros, 1.0
			if l.WithoutAgain != nil {
				rate, cpu, n = rate+l.WithoutAgain.EventsPerSecond, cpu+l.WithoutAgain.CPUMicros, 2
			}
			l.RateRatio, l.CPURatio = report.Ratio(l.With.EventsPerSecond, rate/n), report.Ratio(l.With.CPUMicros, cpu/n)
		}
		for _, j := range l.judged() {
			at := fmt.Sprintf(", p99 in ms, at %.0f events/s%s", j.OfferedPerSecond, j.what)
			target("answered to enrolled, as read over HTTP"+at, j.Probes.Seen.P99Millis, 10)
			target("event sent to enrolled and answered"+at, j.Probes.Answered.P99Millis, 10)
			if l.WithoutPaced != nil && j.OfferedPerSecond == l.WithoutPaced.OfferedPerSecond {
				l.AnsweredRatio = report.Ratio(j.Probes.Answered.P99Millis, l.WithoutPaced.Probes.Answered.P99Millis)
			}
		}
		if len(l.Paced) > 0 {
			target("enrolments that were not there, or not once, when their event was answered", float64(stale), 0)
			target("effects that did not come within a minute, or came more than once", float64(missing+again), 0)
		}
	}
	s := r.Sleep
	if s == nil {
		return
	}
	if s.Enrol != nil {
		r.Others = max(r.Others, s.Enrol.Others)
	}
	of := fmt.Sprintf(" (%d sleepers)", s.Sleepers)
	if s.Started != nil {
		n := float64(s.Sleepers)
		s.HeapPer = float64(s.Started.HeapBytes-s.Bare.HeapBytes) / n
		s.RSSPer = float64(s.Started.RSSHeldBytes-s.Bare.RSSHeldBytes) / n
		s.DiskPer = map[string]float64{}
		for name, bytes := range s.Started.Disk {
			s.DiskPer[name] = float64(bytes-s.Bare.Disk[name]) / n
		}
		target("start after a clean stop, s"+of, s.Started.StartSeconds, 10)
		target("Go heap per sleeping enrolment after a restart, bytes"+of, s.HeapPer, 100)
		target("RSS per sleeping enrolment after a restart, bytes"+of, s.RSSPer, 100)
	}
	if s.Killed != nil {
		target("start after kill -9, s"+of, s.Killed.StartSeconds, 10)
	}
}

// judged is a phase that the targets of latencies belong to.
type judged struct {
	*Phase
	what string // which rate it is
}

// judged are the phases at half of the greatest rate with flows, and at half of
// that without, or the only one.
func (l *Load) judged() (out []judged) {
	if len(l.Paced) == 1 {
		return []judged{{l.Paced[0], ""}}
	}
	for _, of := range []struct {
		greatest *Phase
		what     string
	}{{l.With, ", half of what is possible with flows"}, {l.Without, ", half of what is possible without flows"}} {
		for _, p := range l.Paced {
			if of.greatest != nil && p.OfferedPerSecond == targetShare*of.greatest.EventsPerSecond {
				out = append(out, judged{p, of.what})
				break
			}
		}
	}
	return out
}

// err is what the run fails for: never for a time.
func (r *Report) err() error {
	if r.Load == nil {
		return nil
	}
	if c := r.Load.Check; c != nil {
		if err := c.err(); err != nil {
			return err
		}
	}
	for _, p := range r.Load.phases() {
		if x := p.Probes; x != nil && x.Stale+x.Missing > 0 {
			return fmt.Errorf("%w: %s: %d enrolments of %d events were not there when they were answered, %d effects did not come", errStale, p.Name, x.Stale, x.Sent, x.Missing)
		}
	}
	return nil
}
