package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/bench/internal/flows"
)

// F1, as far as a bench sees it: whoever an event enrols is enrolled when it is
// answered, once, and each effect comes once. All of flows on a small account: a
// run whose checks fail is an error. Times are not judged here.
func TestF1Flows(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts the real binary; not with -short")
	}
	t.Setenv("TMPDIR", t.TempDir())
	path := filepath.Join(t.TempDir(), "report.json")
	table, said, err := runCommand(t, "", "flows", "--flows", "22", "--profiles", "300", "--duration", "500ms", "--connections", "8", "--probes", "20",
		"--sleepers", "1000", "--budget", "5m", "--binary", musterBinary(t), "--json", path)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("%v is left behind", left)
	}
	for _, want := range []string{"22 flows, saturated", "counted at the end: 60 probes, entered [60 60], completed [60 60], calls of 60 (0 repeated), e-mails of 60 (0 repeated)", "1000 sleeping enrolments"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r flows.Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	l, s := r.Load, r.Sleep
	switch {
	case r.Stopped != "" || l == nil || s == nil || len(l.Paced) != 5 || len(r.Targets) < 8:
		t.Fatalf("%s", text)
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
