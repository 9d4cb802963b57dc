package dirlock

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const lockVariable = "DIRLOCK_TEST_LOCK"

// TestMain holds a lock until its standard input ends, where a test has started it for
// that.
func TestMain(m *testing.M) {
	name := os.Getenv(lockVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	lock, err := Lock(vfs.Default, name)
	fmt.Println(err)
	_, _ = os.Stdin.Read(make([]byte, 1))
	if err == nil {
		err = lock.Close()
	}
	if err != nil {
		os.Exit(1)
	}
}

func TestHeldByAnotherProcess(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	cmd := exec.Command(os.Args[0], "serve", "--secret=x")
	cmd.Env = append(os.Environ(), lockVariable+"="+name)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "<nil>\n" {
		t.Fatal(line, err)
	}
	_, err = Lock(vfs.Default, name)
	var held *HeldError
	want := fmt.Sprintf("%s is held by %s serve (process %d)", filepath.Dir(name), filepath.Base(os.Args[0]), cmd.Process.Pid)
	if !errors.As(err, &held) || held.PID != cmd.Process.Pid || err.Error() != want && held.Command != "" {
		t.Errorf("%v, want %s", err, want)
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	lock, err := Lock(vfs.Default, name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(vfs.Default, name); !errors.As(err, &held) || held.PID != 0 || !strings.HasSuffix(err.Error(), "is held by another muster process") {
		t.Errorf("held by this process: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLockFileCannotBeOpened(t *testing.T) {
	_, err := Lock(vfs.Default, filepath.Join(t.TempDir(), "none", "LOCK"))
	var held *HeldError
	if err == nil || errors.As(err, &held) || !strings.Contains(err.Error(), "cannot be opened: no such file or directory") {
		t.Errorf("%v", err)
	}
}
