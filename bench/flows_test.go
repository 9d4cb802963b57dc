package main

import (
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/bench/internal/flows"
	"github.com/musterhq/muster/internal/serverprocess"
	"github.com/musterhq/muster/internal/testlevel"
)

// F1, as far as a bench sees it: a profile that an event enrols is enrolled when
// the event is answered, once, and each effect comes once. All of flows on a small
// account: a run whose checks fail is an error. Times are not judged here.
func TestF1Flows(t *testing.T) {
	testlevel.SkipQuick(t, "starts the real binary")
	file := filepath.Join(t.TempDir(), "report.json")
	r, table := runReport[flows.Report](t, file, "flows", "--flows", "22", "--profiles", "300", "--duration", "500ms", "--connections", "8", "--probes", "20",
		"--sleepers", "1000", "--budget", "5m", "--binary", serverprocess.Binary(t), "--json", file)
	wantText(t, table, "22 flows, saturated", "counted at the end: 60 probes, entered [60 60], completed [60 60], calls of 60 (0 repeated), e-mails of 60 (0 repeated)", "1000 sleeping enrolments")
	l, s := r.Load, r.Sleep
	switch {
	case r.Stopped != "" || l == nil || s == nil || len(l.Paced) != 5 || len(r.Targets) < 8:
		t.Fatalf("%+v", r)
	case l.Without.Enrolments != 0 || l.With.Enrolments == 0 || l.WithoutAgain.Enrolments != 0:
		t.Errorf("flows were live when they should not be, or the other way round: %+v, %+v, %+v", l.Without, l.With, l.WithoutAgain)
	case l.Publish.Enrolments == 0 || l.With.Probes.Called.N != 10 || l.With.Probes.Mailed.P50Millis <= 0 || l.With.Probes.Seen.P50Millis <= 0:
		t.Errorf("load: %+v, %+v", l.Publish, l.With.Probes)
	case s.Enrol.Enrolments != 1000 || s.Alone.N != 20 || s.Alone.MaxMillis <= 0 || s.Many.Sleepers != 100 || s.Many.Late.N != 100:
		t.Errorf("sleepers: %+v, %+v, %+v", s.Enrol, s.Alone, s.Many)
	case s.Started.StartSeconds <= 0 || s.Killed.StartSeconds <= 0 || s.Started.HeapBytes <= 0 || s.Started.RSSHeldBytes <= 0:
		t.Errorf("sleepers: %+v, %+v", s.Started, s.Killed)
	}
}
