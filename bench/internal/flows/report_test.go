package flows

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/musterhq/muster/bench/internal/report"
)

func phase(name string, offered, rate float64) *Phase {
	return &Phase{Name: name, Phase: report.Phase{OfferedPerSecond: offered, EventsPerSecond: rate}, Probes: &Probes{Sent: 10}}
}

func measured() *Report {
	phase := func(name string, offered, rate, cpu float64) *Phase {
		p := phase(name, offered, rate)
		p.CPUMicros = cpu
		return p
	}
	l := &Load{
		Without: phase("a", 0, 10_000, 20), WithoutPaced: phase("b", 5000, 5000, 30),
		Paced: []*Phase{phase("c", 3000, 3000, 90), phase("d", 5000, 5000, 60)},
		With:  phase("e", 0, 6000, 60), WithoutAgain: phase("f", 0, 14_000, 40),
		Check: &Check{Probes: 30, Entered: []uint64{30, 30}, Completed: []uint64{30, 30}, Calls: 30, Mails: 30},
	}
	l.WithoutPaced.Probes.Answered.P99Millis = 2
	l.Paced[1].Probes.Answered.P99Millis, l.Paced[1].Probes.Seen.P99Millis = 12, 8
	l.Paced[0].Probes.Answered.P99Millis, l.Paced[0].Probes.Seen.P99Millis = 9, 11
	l.Paced[0].Others, l.With.Others = 0.25, 0.1
	return &Report{Load: l, Sleep: &Sleep{
		Sleepers: 1000, Enrol: &Publish{Others: 0.4},
		Bare:    &Stand{HeapBytes: 5000, RSSBytes: 1 << 20, RSSHeldBytes: 9000, Disk: map[string]int64{"log": 100, "state": 50}},
		Started: &Stand{HeapBytes: 65_000, RSSBytes: 1 << 20, RSSHeldBytes: 119_000, StartSeconds: 9.5, Disk: map[string]int64{"log": 2100, "state": 50}},
		Killed:  &Killed{StartSeconds: 10.5},
	}}
}

func TestConclude(t *testing.T) {
	r := measured()
	r.conclude()
	if l := r.Load; l.RateRatio != 0.5 || l.CPURatio != 2 || l.AnsweredRatio != 6 {
		t.Errorf("ratios %v, %v, %v", l.RateRatio, l.CPURatio, l.AnsweredRatio)
	}
	if s := r.Sleep; s.HeapPer != 60 || s.RSSPer != 110 || s.DiskPer["log"] != 2 || s.DiskPer["state"] != 0 {
		t.Errorf("%+v", s)
	}
	if r.Others != 0.4 {
		t.Errorf("others took %v", r.Others)
	}
	met := map[string]bool{}
	for _, x := range r.Targets {
		met[x.Name] = x.Met
	}
	for name, want := range map[string]bool{
		"answered to enrolled, as read over HTTP, p99 in ms, at 3000 events/s, half of what is possible with flows":    false,
		"event sent to enrolled and answered, p99 in ms, at 3000 events/s, half of what is possible with flows":        true,
		"answered to enrolled, as read over HTTP, p99 in ms, at 5000 events/s, half of what is possible without flows": true,
		"event sent to enrolled and answered, p99 in ms, at 5000 events/s, half of what is possible without flows":     false,
		"enrolments that were not there, or not once, when their event was answered":                                   true,
		"effects that did not come within a minute, or came more than once":                                            true,
		"start after a clean stop, s (1000 sleepers)":                                                                  true,
		"start after kill -9, s (1000 sleepers)":                                                                       false,
		"Go heap per sleeping enrolment after a restart, bytes (1000 sleepers)":                                        true,
		"RSS per sleeping enrolment after a restart, bytes (1000 sleepers)":                                            false,
	} {
		if got, ok := met[name]; !ok || got != want {
			t.Errorf("%s: met %v (named: %v), want %v", name, got, ok, want)
		}
	}
	n := len(r.Targets)
	if r.conclude(); len(r.Targets) != n {
		t.Error("concluding again doubles the targets")
	}
	if err := r.err(); err != nil {
		t.Errorf("all is well, but %v", err)
	}
	// A run that ended early has what it has.
	for _, r := range []*Report{{}, {Load: &Load{}}, {Sleep: &Sleep{Sleepers: 5, Bare: &Stand{}}}} {
		r.conclude()
		if err := errors.Join(r.err(), r.Print(&strings.Builder{})); err != nil {
			t.Error(err)
		}
	}
}

// Each enrolment and each effect exists once, or the run fails.
func TestARunFailsForWhatIsNotOnce(t *testing.T) {
	for name, spoil := range map[string]func(*Load){
		"stale":          func(l *Load) { l.Paced[0].Probes.Stale = 1 },
		"missing":        func(l *Load) { l.With.Probes.Missing = 1 },
		"entered twice":  func(l *Load) { l.Check.Entered[1]++ },
		"did not finish": func(l *Load) { l.Check.Completed[0]-- },
		"no call":        func(l *Load) { l.Check.Calls-- },
		"no e-mail":      func(l *Load) { l.Check.Mails-- },
		"called again":   func(l *Load) { l.Check.CallsAgain = 1 },
		"mailed again":   func(l *Load) { l.Check.MailsAgain = 1 },
	} {
		r := measured()
		spoil(r.Load)
		if err := r.err(); !errors.Is(err, errStale) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestPrint(t *testing.T) {
	r := measured()
	r.conclude()
	var b strings.Builder
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"other processes took up to 40 %", "counted at the end: 30 probes, entered [30 30], completed [30 30], calls of 30 (0 repeated)",
		"0.50 of the events a second, 2.00 times the CPU", "60.0 bytes of Go heap, 110.0 of RSS; on disk: log 2\n", "MISSED: start after kill -9", "MISSED: RSS per sleeping enrolment",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	// The head of the table and its six phases are lines of one length.
	var table []int
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, "CPU µs/event") || len(table) > 0 && len(table) < 7 {
			table = append(table, utf8.RuneCountInString(line))
		}
	}
	if len(table) != 7 || slices.Min(table) != slices.Max(table) {
		t.Errorf("the table's lines have lengths %d:\n%s", table, b.String())
	}
}
