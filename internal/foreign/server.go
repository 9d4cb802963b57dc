package foreign

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Serve starts muster on an empty directory and returns its address and its file
// of credentials. The server stops at the end of the test.
func Serve(t *testing.T, muster string) (origin, credentials string) {
	t.Helper()
	dir := t.TempDir()
	credentials = filepath.Join(dir, "credentials.json")
	log, err := os.Create(filepath.Join(dir, "log"))
	ok(t, err)
	cmd := exec.Command(muster, "serve", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--credentials", credentials)
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	ready, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for in := bufio.NewScanner(out); in.Scan(); {
			if rest, is := strings.CutPrefix(in.Text(), "ready: "); is {
				ready <- strings.Fields(rest)[0]
			}
		}
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			b, _ := os.ReadFile(log.Name())
			t.Logf("the server's log:\n%s", Last(string(b), 4000))
		}
		log.Close()
	})
	select {
	case origin = <-ready:
	case <-ended:
		t.Fatal("the server ended before it was ready")
	case <-time.After(2 * time.Minute):
		t.Fatal("the server was not ready within two minutes")
	}
	return origin, credentials
}
