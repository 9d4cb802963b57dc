package serverprocess

import (
	"bytes"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
	ready   chan string // its origin, each time that it is ready
	over    atomic.Bool // the test ended it

	mu             sync.Mutex
	stdout, stderr bytes.Buffer // of all starts
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
	s.start("127.0.0.1:0")
	t.Cleanup(func() {
		s.Kill()
		if log := s.Log(); t.Failed() {
			t.Logf("the output of process %d, %s:\n%s", s.Cmd.Process.Pid, s.Origin, log[max(0, len(log)-100_000):])
		}
	})
	return s
}

func (s *Server) start(address string) {
	s.t.Helper()
	s.Cmd = s.command(append([]string{"serve", "--data", filepath.Join(s.dir, "data"), "--listen", address, "--credentials", s.Credentials()}, s.args...)...)
	s.ready, s.Ended = make(chan string, 1), make(chan struct{})
	s.over.Store(false)
	s.Cmd.Stdout, s.Cmd.Stderr = &output{s: s, buffer: &s.stdout, from: s.stdout.Len(), ready: s.ready}, &output{s: s, buffer: &s.stderr}
	if err := s.Cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait() // ProcessState says how it ended
		close(ended)
	}(s.Cmd, s.Ended)
}

// output keeps what a process writes, and sends the origin of each line "ready: ORIGIN
// (ADDRESS)": a process that finds its state damaged starts again by itself.
type output struct {
	s      *Server
	buffer *bytes.Buffer
	from   int         // where the first line begins that was not looked at
	ready  chan string // nil when there are none
}

func (w *output) Write(b []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.buffer.Write(b)
	for w.ready != nil {
		line, _, whole := strings.Cut(w.buffer.String()[w.from:], "\n")
		if !whole {
			break
		}
		w.from += len(line) + 1
		if text, is := strings.CutPrefix(line, "ready: "); is {
			select {
			case <-w.ready: // no test waited for the one before
			default:
			}
			w.ready <- strings.Fields(text)[0]
		}
	}
	return len(b), nil
}

// UntilReady waits until the server says that it is ready. Other than GET /readyz this is
// when the first company and its credentials are there too, and it tells the port. A second
// call waits until a server that starts again by itself is ready anew.
func (s *Server) UntilReady() {
	s.t.Helper()
	select {
	case s.Origin = <-s.ready:
	case <-s.Ended:
		s.t.Fatal("the server ended before it was ready")
	case <-time.After(eventually.Limit):
		s.t.Fatalf("the server was not ready within %v", eventually.Limit)
	}
}

// Credentials is the file of credentials that the first start writes.
func (s *Server) Credentials() string { return filepath.Join(s.dir, "credentials.json") }

// Log is what the server wrote, on standard output and then on standard error.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stdout.String() + s.stderr.String()
}

// Errors is what the server wrote on standard error.
func (s *Server) Errors() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stderr.String()
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
