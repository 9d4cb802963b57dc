package serverprocess

import (
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
)

// stopTime is how long a server may take to stop. One that takes longer hangs, and its log
// says where.
const stopTime = 3 * time.Minute

// Server is muster serve in a process of its own. It is killed when the test ends, and its
// output is logged if the test failed.
type Server struct {
	// Origin is where it serves, once it is ready. A restart keeps it.
	Origin string
	// Cmd is the process, of the last start.
	Cmd *exec.Cmd
	// Ended is closed when that process has ended. Cmd.ProcessState says how.
	Ended chan struct{}

	t       testing.TB
	dir     string
	command func(args ...string) *exec.Cmd
	args    []string
	over    atomic.Bool // the test ended it

	// The files that it writes its output to. What it wrote before it answered a request is in
	// them when the answer arrives; through a pipe it could come later.
	stdout, stderr *os.File
	seen           int // the bytes of stdout that isReady has looked at
}

// Start starts the server of [Binary] in an empty directory, and waits until it is ready.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	binary := Binary(t)
	s := Launch(t, t.TempDir(), func(args ...string) *exec.Cmd { return exec.Command(binary, args...) }, args...)
	s.UntilReady()
	return s
}

// Launch starts a server on a free port and does not wait until it is ready. dir has its data
// and its credentials. command makes the command that is muster.
func Launch(t testing.TB, dir string, command func(args ...string) *exec.Cmd, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, dir: dir, command: command, args: args}
	output := t.TempDir()
	for path, f := range map[string]**os.File{"stdout": &s.stdout, "stderr": &s.stderr} {
		var err error
		if *f, err = os.OpenFile(filepath.Join(output, path), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.start("127.0.0.1:0")
	t.Cleanup(func() {
		s.Kill()
		defer s.stdout.Close()
		defer s.stderr.Close()
		if log := s.Log(); t.Failed() {
			t.Logf("the output of process %d, %s:\n%s", s.Cmd.Process.Pid, s.Origin, log[max(0, len(log)-100_000):])
		}
	})
	return s
}

func (s *Server) start(address string) {
	s.t.Helper()
	s.Cmd = s.command(append([]string{"serve", "--data", filepath.Join(s.dir, "data"), "--listen", address, "--credentials", s.Credentials()}, s.args...)...)
	s.Ended = make(chan struct{})
	s.over.Store(false)
	s.seen = len(s.read(s.stdout)) // that the process before was ready counts no more
	s.Cmd.Stdout, s.Cmd.Stderr = s.stdout, s.stderr
	if err := s.Cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait() // ProcessState says how it ended
		close(ended)
	}(s.Cmd, s.Ended)
}

// UntilReady waits until the server says "ready: ORIGIN (ADDRESS)". Other than GET /readyz
// this is when the first company and its credentials are there too, and it tells the port. A
// second call waits until a server that starts again by itself, because it found its state
// damaged, is ready again.
func (s *Server) UntilReady() {
	s.t.Helper()
	for end := time.Now().Add(eventually.Limit); !s.isReady(); {
		select {
		case <-s.Ended:
			if !s.isReady() {
				s.t.Fatal("the server ended before it was ready")
			}
			return
		case <-time.After(20 * time.Millisecond): // the next look at its output
		}
		if time.Now().After(end) {
			s.t.Fatalf("the server was not ready within %v", eventually.Limit)
		}
	}
}

// isReady reports whether there is a new line that says so, and takes the origin from it.
func (s *Server) isReady() bool {
	s.t.Helper()
	out, found := s.read(s.stdout)[s.seen:], false
	for line := range strings.Lines(out) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		s.seen += len(line)
		if text, is := strings.CutPrefix(line, "ready: "); is {
			s.Origin, found = strings.Fields(text)[0], true
		}
	}
	return found
}

// Credentials is the file of credentials that the first start writes.
func (s *Server) Credentials() string { return filepath.Join(s.dir, "credentials.json") }

// Log is what the server wrote, on standard output and then on standard error, of all starts.
func (s *Server) Log() string { return s.read(s.stdout) + s.read(s.stderr) }

// Errors is what the server wrote on standard error.
func (s *Server) Errors() string { return s.read(s.stderr) }

func (s *Server) read(f *os.File) string {
	s.t.Helper()
	b, err := os.ReadFile(f.Name())
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// Running reports whether the test has neither stopped nor killed the server.
func (s *Server) Running() bool { return !s.over.Load() }

// Stop asks the server to end, and fails the test unless it does so in order.
func (s *Server) Stop() {
	s.t.Helper()
	s.over.Store(true)
	if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		<-s.Ended
		s.t.Fatalf("SIGTERM: %v: %v", err, s.Cmd.ProcessState)
	}
	defer time.AfterFunc(stopTime, func() { _ = s.Cmd.Process.Signal(syscall.SIGQUIT) }).Stop()
	if <-s.Ended; !s.Cmd.ProcessState.Success() {
		s.t.Fatalf("after SIGTERM: %v", s.Cmd.ProcessState)
	}
}

// Kill ends the server as kill -9 does. One that has ended is no error.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Quit ends a server that hangs; its goroutines are in its log.
func (s *Server) Quit() { s.end(syscall.SIGQUIT) }

func (s *Server) end(signal syscall.Signal) {
	s.t.Helper()
	s.over.Store(true)
	if err := s.Cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Fatal(err)
	}
	<-s.Ended
}

// Restart starts the server again after Stop or Kill, at the same address, and waits until it
// is ready.
func (s *Server) Restart() {
	s.t.Helper()
	at, err := url.Parse(s.Origin)
	if err != nil {
		s.t.Fatal(err)
	}
	s.start(at.Host)
	s.UntilReady()
}
