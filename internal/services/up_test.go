package services

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/eventually"
)

// installed skips where services-up did not run yet: a test fetches nothing.
func installed(t *testing.T) *installer {
	t.Helper()
	in, err := newInstaller(false, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.kafkaJars(t.Context()); err != nil {
		missing(t, err)
	}
	if _, _, err := in.chdb(t.Context()); err != nil {
		missing(t, err)
	}
	return in
}

func TestUpAndDown(t *testing.T) {
	skipQuick(t)
	installed(t)
	root, copied := t.TempDir(), t.TempDir()
	ctx := within(t, patience)
	t.Cleanup(func() {
		if err := Down(root); err != nil {
			t.Error(err)
		}
	})
	up := func() Addresses {
		t.Helper()
		if err := Up(ctx, root, io.Discard); err != nil {
			t.Fatal(err)
		}
		a, err := readAddresses(root)
		if err != nil {
			t.Fatal(err)
		}
		if err := probeKafka(a.Kafka); err != nil {
			t.Fatal(err)
		}
		if err := probeClickHouse(a.ClickHouse); err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := up()
	if again := up(); again != first {
		t.Errorf("services-up while they run went from %v to %v", first, again)
	}

	if err := os.CopyFS(filepath.Join(copied, stateDir), os.DirFS(filepath.Join(root, stateDir))); err != nil {
		t.Fatal(err)
	}
	if err := Down(copied); err != nil {
		t.Fatal(err)
	}
	if err := probeClickHouse(first.ClickHouse); err != nil {
		t.Errorf("services-down in a copy of the directory stopped the original's servers: %v", err)
	}

	marks, err := readMarks(filepath.Join(root, stateDir))
	if err != nil || len(marks) != 2 {
		t.Fatalf("marks %v, %v", marks, err)
	}
	if err := Down(root); err != nil {
		t.Fatal(err)
	}
	for _, m := range marks {
		if m.alive() {
			t.Errorf("process %d of %s is still running", m.PID, m.Arg)
		}
		if isDir(m.Arg) {
			t.Errorf("%s is left", m.Arg)
		}
	}
	if _, err := readAddresses(root); !os.IsNotExist(err) {
		t.Errorf("%s after services-down: %v", addressFile, err)
	}
	if err := Down(root); err != nil {
		t.Errorf("a second services-down: %v", err)
	}
}

// A process id that belongs to another program by now is left alone.
func TestDownEndsNoStranger(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(root, stateDir)
	stranger := exec.Command("sleep", "60")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stranger.Process.Kill() // it has ended where the test failed
		_ = stranger.Wait()         // says "killed"
	})
	// /proc may show a process that was just started without its arguments, and
	// shows one that was killed the same way.
	named := func() bool { return strings.HasPrefix(commandLine(stranger.Process.Pid), "sleep") }
	eventually.Holds(t, "the process shows its arguments", named)
	if err := os.MkdirAll(state, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeMarks(state, []mark{{PID: stranger.Process.Pid, Arg: filepath.Join(state, "kafka-0")}}); err != nil {
		t.Fatal(err)
	}
	if err := Down(root); err != nil {
		t.Fatal(err)
	}
	if !named() {
		t.Errorf("process %d, a stranger, is now %q", stranger.Process.Pid, commandLine(stranger.Process.Pid))
	}
	if marks, err := readMarks(state); err != nil || len(marks) != 0 {
		t.Errorf("marks %v, %v: the stranger's is kept", marks, err)
	}
}

// Marks without an argument would match every process.
func TestMarksNameAnArgument(t *testing.T) {
	state := t.TempDir()
	if err := writeMarks(state, []mark{{PID: os.Getpid()}}); err != nil {
		t.Fatal(err)
	}
	if _, err := readMarks(state); err == nil {
		t.Error("a mark without an argument was read")
	}
}

func TestArtefactsAreCompared(t *testing.T) {
	const sumA = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
	for name, c := range map[string]struct{ list, want string }{
		"same":    {sumA + "  a.jar\n", ""},
		"other":   {strings.Repeat("0", 64) + "  a.jar\n", "a.jar has SHA-256 " + sumA},
		"unknown": {sumA + "  b.jar\n", "a.jar is not in SHA256SUMS"},
		"missing": {sumA + "  a.jar\n" + sumA + "  b.jar\n", "b.jar is in SHA256SUMS but was not fetched"},
		"broken":  {"a.jar\n", "is not `sum  name`"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := writeIn(dir, "a.jar", "a"); err != nil {
				t.Fatal(err)
			}
			err := checkSums(dir, []byte(c.list))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// What was fetched only in part is not taken for whole.
func TestEnsureKeepsNothingThatFailed(t *testing.T) {
	in := &installer{cache: t.TempDir(), fetch: true, out: io.Discard}
	broken := io.ErrUnexpectedEOF
	_, err := in.ensure(t.Context(), "x", func(_ context.Context, dir string) error {
		if _, err := writeIn(dir, "half", ""); err != nil {
			return err
		}
		return broken
	})
	if err == nil || isDir(filepath.Join(in.cache, "x")) {
		t.Fatalf("%v, and the directory is there", err)
	}
	for range 2 {
		dir, err := in.ensure(t.Context(), "x", func(_ context.Context, dir string) error {
			_, err := writeIn(dir, "whole", "")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%v, %v: want the whole file alone", entries, err)
		}
	}
}

// On a machine without a tool the error says what to install.
func TestMissingToolsAreNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for tool, p := range providers {
		_, err := look(tool)
		if err == nil || !strings.Contains(err.Error(), "apt-get install "+strings.Join(p.debian, " ")) {
			t.Errorf("%s: %v", tool, err)
		}
	}
	if got := debianPackages([]string{"java", "npm"}); strings.Join(got, " ") != "default-jre-headless npm" {
		t.Errorf("packages to install: %v", got)
	}
}

// As root, tools that are missing are installed with apt-get, and only for what
// the cache does not have.
func TestMissingToolsAreInstalled(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root installs")
	}
	bin, cache := t.TempDir(), t.TempDir()
	calls := filepath.Join(bin, "calls")
	script := "#!/bin/sh\necho \"$@\" >>" + calls + "\n"
	if err := os.WriteFile(filepath.Join(bin, "apt-get"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	env, err := look("env")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(env, filepath.Join(bin, "env")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{kafkaDir(), launcherDir()} {
		if err := os.Mkdir(filepath.Join(cache, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	var out bytes.Buffer
	if err := (&installer{cache: cache, fetch: true, out: &out}).tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	want := "update -qq\ninstall -y -qq --no-install-recommends default-jre-headless npm\n"
	if string(got) != want {
		t.Errorf("apt-get was called with\n%swant\n%s", got, want)
	}
}
