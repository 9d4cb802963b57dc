package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
)

// TestExportFromServerAndDirectory: both ways write the same profiles and
// events, and wrong usage says what is right.
func TestExportFromServerAndDirectory(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	for i := range 3 {
		s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"u%d@x.io"},"properties":{"i":%d}}`, i, i))
	}
	export := func(args ...string) (emails string, lines int) {
		t.Helper()
		code, out, errs := muster(t, "", append([]string{"export"}, args...)...)
		if code != exitOK {
			t.Fatalf("export %v: %d %s", args, code, errs)
		}
		for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
			var x struct {
				Identities struct{ Email []string }
				EventType  string `json:"event_type"`
			}
			ok(t, json.Unmarshal([]byte(line), &x))
			emails += strings.Join(x.Identities.Email, "") + x.EventType + " "
			lines++
		}
		return emails, lines
	}
	credentials := filepath.Join(dir, "credentials.json")
	remote := []string{"--to", s.origin, "--credentials", credentials}
	if got, _ := export(append(remote, "profiles")...); got != "u0@x.io u1@x.io u2@x.io " {
		t.Errorf("from the server: %s", got)
	}
	if got, _ := export(append(remote, "--event-type", "seen", "events")...); got != "seen seen seen " {
		t.Errorf("events from the server: %s", got)
	}
	if code, _, errs := muster(t, "", append(append([]string{"export"}, remote...), "segments/seg_none")...); code != exitFailed || !strings.Contains(errs, "404") {
		t.Errorf("a segment that is not there: %d %s", code, errs)
	}
	s.stop()
	local := []string{"--data", filepath.Join(dir, "data"), "--log-level", "error"}
	if got, _ := export(append(local, "profiles")...); got != "u0@x.io u1@x.io u2@x.io " {
		t.Errorf("from the directory: %s", got)
	}
	if _, n := export(append(local, "events")...); n != 3 {
		t.Errorf("%d events from the directory", n)
	}
	for _, args := range [][]string{{}, {"profiles"}, append(local, "people"), append(local, "profiles", "events")} {
		if code, _, _ := muster(t, "", append([]string{"export"}, args...)...); code != exitUsage {
			t.Errorf("export %v: %d", args, code)
		}
	}
}
