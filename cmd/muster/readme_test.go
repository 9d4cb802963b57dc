package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	servers "github.com/musterhq/muster/internal/services"
	"github.com/musterhq/muster/internal/testlevel"
)

// tourStep is a block of commands of a page and what it says they print.
type tourStep struct{ commands, prints string }

// tour are the blocks of a section of a page.
func tour(t *testing.T, page, section string) (steps []tourStep) {
	t.Helper()
	text, err := os.ReadFile("../../" + page)
	ok(t, err)
	_, rest, found := strings.Cut(string(text), "\n## "+section+"\n")
	if !found {
		t.Fatalf("%s has no section %q", page, section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	for _, m := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(rest, -1) {
		switch {
		case m[1] == "sh":
			steps = append(steps, tourStep{commands: m[2]})
		case m[1] == "" && len(steps) > 0 && steps[len(steps)-1].prints == "":
			steps[len(steps)-1].prints = m[2]
		default:
			t.Fatalf("a block of %q is neither commands nor what commands before it print:\n%s", section, m[2])
		}
	}
	return steps
}

var (
	printedTime    = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	printedProfile = regexp.MustCompile(`prf_[0-9a-f]{32}`)
	printedPlace   = regexp.MustCompile(`"position":"\d+-\d+"`)
	printedSpeed   = regexp.MustCompile(`\d+\.\d s, \d+ rows/s`)
)

// alike puts names in the place of what differs from run to run; one profile has
// one name.
func alike(prints string, names map[string]string) string {
	prints = printedTime.ReplaceAllString(prints, "TIME")
	prints = printedPlace.ReplaceAllString(prints, `"position":"PLACE"`)
	prints = printedSpeed.ReplaceAllString(prints, "SPEED")
	return printedProfile.ReplaceAllStringFunc(prints, func(id string) string {
		if names[id] == "" {
			names[id] = fmt.Sprintf("PROFILE-%d", len(names)+1)
		}
		return names[id]
	})
}

// TestReadmeTour does what the README has a new user do.
func TestReadmeTour(t *testing.T) { follow(t, "README.md", "Five minutes", 10) }

// TestTheShopsStory does what the page about a shop says: a form with double opt-in, a first
// order, a segment, a campaign over several channels, and its revenue.
func TestTheShopsStory(t *testing.T) { follow(t, "docs/a-shop.md", "Step by step", 7) }

// follow runs the commands of a page, of at least as many steps, and compares what they
// print, to the letter but for times, ids and places in the log.
func follow(t *testing.T, page, section string, atLeast int) {
	t.Helper()
	testlevel.SkipQuick(t, "carries out a page of docs")
	t.Parallel()
	for _, tool := range []string{"bash", "curl", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv(servers.EnvRequire) == "1" {
				t.Fatal(err)
			}
			t.Skipf("%s needs %s: %v", page, tool, err)
		}
	}
	dir := t.TempDir()
	serve(t, dir)
	steps := tour(t, page, section)
	if len(steps) < atLeast {
		t.Fatalf("%s has %d steps", page, len(steps))
	}
	const mark = "--- end of a step ---"
	var script strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&script, "%s\necho '%s'\n", s.commands, mark)
	}
	// A reader's machine is not as busy as that of the tests, which wait longer for
	// what comes after an answer.
	commands := strings.NewReplacer(
		"credentials.json", filepath.Join(dir, "credentials.json"),
		"go run ./cmd/muster", fmt.Sprintf("%s=1 '%s'", roleVariable, os.Args[0]),
		"--max-time 1 ", "--max-time 5 ",
		"sleep 1;", "sleep 5;",
		`con "outbox`, `sleep 5; con "outbox`,
		"con segments/$S | jq", `for _ in $(seq 300); do con segments/$S | grep -q '"live"' && break; sleep 0.1; done; con segments/$S | jq`,
	).Replace(script.String())
	cmd := exec.CommandContext(t.Context(), "bash", "-c", commands)
	cmd.Dir, cmd.WaitDelay = "../..", time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || errs.Len() > 0 {
		t.Errorf("%s ends with %v and says %s", page, err, errs.Bytes())
	}
	printed := strings.Split(string(out), mark+"\n")
	if len(printed) != len(steps)+1 {
		t.Fatalf("%d steps printed something, not %d:\n%s", len(printed)-1, len(steps), out)
	}
	said, heard := map[string]string{}, map[string]string{}
	for i, s := range steps {
		got := printed[i]
		if got != "" && !strings.HasSuffix(got, "\n") {
			got += "\n" // an answer has no end of line, a block has
		}
		if want, got := alike(s.prints, said), alike(got, heard); got != want {
			t.Errorf("%s:\n%s\nprints\n%s\nnot\n%s", page, s.commands, got, want)
		}
	}
}
