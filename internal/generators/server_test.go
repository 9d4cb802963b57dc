package generators

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serve starts muster on an empty directory and returns its address and its file
// of credentials. The server stops at the end of the test.
func serve(t *testing.T, muster string) (origin, credentials string) {
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
		cmd.Wait()
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(time.Minute):
			cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			b, _ := os.ReadFile(log.Name())
			t.Logf("the server's log:\n%s", last(string(b), 4000))
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

// fetch writes the document that a server answers to a file.
func fetch(t *testing.T, origin, file string) []byte {
	t.Helper()
	c := &http.Client{Timeout: time.Minute}
	res, err := c.Get(origin + "/openapi.json")
	ok(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ok(t, err)
	if res.StatusCode != 200 {
		t.Fatalf("/openapi.json: %s", res.Status)
	}
	ok(t, os.WriteFile(file, b, 0o644))
	return b
}
