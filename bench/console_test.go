package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/bench/internal/editor"
	"github.com/musterhq/muster/internal/serverprocess"
	"github.com/musterhq/muster/internal/testlevel"
)

// The whole measurement, at a small size: every question is answered, and a preview and
// the segment saved from it agree.
func TestConsole(t *testing.T) {
	testlevel.SkipQuick(t, "starts the real binary under load")
	file := filepath.Join(t.TempDir(), "report.json")
	r, out := runReport[editor.Report](t, file, "console", "--profiles", "2000", "--searches", "20", "--suggestions", "10", "--definitions", "3", "--edits", "2",
		"--binary", serverprocess.Binary(t), "--json", file)
	if len(r.Lines) != 11 || r.Agreed == 0 || r.Agreed == 2000 {
		t.Errorf("%+v", r)
	}
	for _, l := range r.Lines {
		if l.N == 0 || l.P50 <= 0 || l.P99 < l.P50 || l.Max < l.P99 || !strings.Contains(out, l.Name) {
			t.Errorf("%+v", l)
		}
	}
}

func TestConsoleRefusesWrongSizes(t *testing.T) {
	t.Parallel()
	if _, _, err := runCommand(t, "", "console", "--profiles", "0"); err == nil || !strings.Contains(err.Error(), "profiles must be 1 to") {
		t.Error(err)
	}
}
