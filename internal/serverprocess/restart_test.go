package serverprocess

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/eventually"
)

// TestRestartWaitsForTheNewProcess: a process that was ready once more, unseen, before it was
// killed does not make the next one ready.
func TestRestartWaitsForTheNewProcess(t *testing.T) {
	t.Parallel()
	says := []string{
		"echo 'ready: http://127.0.0.1:1 (x)'; echo 'ready: http://127.0.0.1:2 (x)'; exec sleep 300",
		"sleep 0.2; echo 'ready: http://127.0.0.1:3 (x)'; exec sleep 300",
	}
	s := Launch(t, t.TempDir(), func(...string) *exec.Cmd {
		script := says[0]
		says = says[1:]
		return exec.Command("sh", "-c", script)
	})
	eventually.Holds(t, "it is ready twice", func() bool { return strings.Count(s.Log(), "ready: ") == 2 })
	s.Origin = "http://127.0.0.1:1" // where the next one is asked to be
	s.Kill()
	s.Restart()
	if s.Origin != "http://127.0.0.1:3" {
		t.Errorf("the next process is said to be at %s", s.Origin)
	}
}
