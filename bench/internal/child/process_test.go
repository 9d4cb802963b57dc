package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/musterhq/muster/internal/eventually"
)

// The test binary is its own child: behaviour by the value of this variable.
const roleVariable = "MUSTER_CHILD_TEST_ROLE"

// lifetime is how long a child sleeps that its parent does not end: one whose parent
// died must not stay.
const lifetime = 30 * time.Second

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		goleak.VerifyTestMain(m)
	case "serve":
		fmt.Println("starting")
		fmt.Print("ready at ")
		time.Sleep(10 * time.Millisecond) // a line that comes in two pieces is what is tested
		fmt.Println("127.0.0.1:1")
		time.Sleep(lifetime) // a server that runs until the test stops it
	case "fail":
		fmt.Fprintln(os.Stderr, "cannot open the disk")
		os.Exit(3)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(lifetime) // only SIGKILL ends it earlier, which the test sends
	case "mute":
		time.Sleep(lifetime) // it never prints that it is ready; the test kills it
	case "burn":
		fmt.Println("ready")
		memory := make([]byte, 64<<20)
		for end := time.Now().Add(2 * eventually.Limit); time.Now().Before(end); {
			for i := range memory {
				memory[i]++
			}
		}
	}
}

func specFor(t *testing.T, role string) Spec {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Spec{
		Path: self, Env: []string{roleVariable + "=" + role},
		LogFile:      filepath.Join(t.TempDir(), "child.log"),
		Ready:        func(line string) bool { return strings.HasPrefix(line, "ready") },
		ReadyTimeout: time.Minute,
	}
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestStartAndKill(t *testing.T) {
	spec := specFor(t, "serve")
	p, line, err := Start(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if line != "ready at 127.0.0.1:1" {
		t.Errorf("ready line %q", line)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if !gone(p.PID()) {
		t.Error("the process is still there")
	}
	if err := p.Kill(); err != nil {
		t.Errorf("killing again: %v", err)
	}
	if err := p.Stop(time.Second); !errors.Is(err, ErrExited) {
		t.Errorf("stopping a dead process: %v", err)
	}
	log, err := os.ReadFile(spec.LogFile)
	if err != nil || !strings.Contains(string(log), "starting\nready at") {
		t.Errorf("log %q, %v", log, err)
	}
}

func TestStopKillsWhoIgnoresIt(t *testing.T) {
	p, _, err := Start(context.Background(), specFor(t, "stubborn"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(100 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("error %v", err)
	}
	if !gone(p.PID()) {
		t.Error("the process is still there")
	}
}

func TestStartReportsAFailure(t *testing.T) {
	_, _, err := Start(context.Background(), specFor(t, "fail"))
	if !errors.Is(err, ErrExited) || !strings.Contains(err.Error(), "cannot open the disk") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v", err)
	}
	mute := specFor(t, "mute")
	mute.ReadyTimeout = 100 * time.Millisecond
	if _, _, err := Start(context.Background(), mute); err == nil || !strings.Contains(err.Error(), "within 100ms") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := Start(ctx, specFor(t, "mute")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestUsage(t *testing.T) {
	p, _, err := Start(context.Background(), specFor(t, "burn"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	eventually.Succeeds(t, func() error {
		u, err := UsageOf(p.PID())
		if err != nil {
			t.Fatal(err)
		}
		if u.CPU < 100*time.Millisecond || u.PeakRSSBytes < 64<<20 {
			return fmt.Errorf("a process that burns 64 MiB and a core used %+v", u)
		}
		return nil
	})
}

func TestParseUsage(t *testing.T) {
	u, err := parseUsage([]byte("7 (a) b) c) S 1 7 7 0 -1 0 0 0 0 0 250 50 0 0 20 0"), []byte("Name:\ta\nVmHWM:\t    1024 kB\nVmRSS:\t 5 kB\n"))
	if err != nil || u.CPU != 3*time.Second || u.PeakRSSBytes != 1<<20 {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := parseUsage([]byte("7 (a) S 1"), nil); err == nil {
		t.Error("a short stat line passed")
	}
}
