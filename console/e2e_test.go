package console_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/foreign"
	"github.com/musterhq/muster/internal/testlevel"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// storyTime bounds the story of a screen.
const storyTime = 5 * time.Minute

// TestScreens plays web/e2e/*.mjs in Chromium, each against a server of its own in a
// process of its own on an empty directory. They are skipped where Chromium or the
// packages of web are missing, unless MUSTER_REQUIRE_BROWSER is set.
func TestScreens(t *testing.T) {
	chromium := browser(t)
	muster := foreign.Muster(t)
	stories, err := filepath.Glob("web/e2e/*.mjs")
	ok(t, err)
	if len(stories) == 0 {
		t.Fatal("web/e2e has no story")
	}
	for _, story := range stories {
		t.Run(strings.TrimSuffix(filepath.Base(story), ".mjs"), func(t *testing.T) {
			t.Parallel()
			play(t, chromium, muster, story)
		})
	}
}

// browser finds Chromium, or skips the test with what is missing.
func browser(t *testing.T) string {
	t.Helper()
	absent := t.Skipf
	if os.Getenv("MUSTER_REQUIRE_BROWSER") != "" {
		absent = t.Fatalf
	}
	testlevel.SkipQuick(t, "starts a browser")
	if _, err := exec.LookPath("node"); err != nil {
		absent("the console is not tested in a browser: node is missing; install Node.js 20 or later (Debian: nodejs)")
	}
	if _, err := os.Stat("web/node_modules/playwright-core"); err != nil {
		absent("the console is not tested in a browser: its packages are missing; run npm ci in console/web")
	}
	if path := os.Getenv("MUSTER_CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	absent("the console is not tested in a browser: Chromium is missing; install it (Debian: chromium), or set MUSTER_CHROMIUM to its path")
	return ""
}

// play runs a story and does what it asks for.
func play(t *testing.T, chromium, muster, story string) {
	s := &server{t: t, binary: muster, dir: t.TempDir(), listen: freeAddress(t)}
	s.start()
	defer s.stop()
	ctx, cancel := context.WithTimeout(t.Context(), storyTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", filepath.Base(story))
	cmd.Dir = filepath.Dir(story)
	cmd.WaitDelay = 5 * time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = append(os.Environ(), "MUSTER_URL=http://"+s.listen, "MUSTER_CREDENTIALS="+s.credentials(), "MUSTER_LINK="+s.link, "MUSTER_CHROMIUM="+chromium, "MUSTER_FAILED="+os.TempDir())
	var said strings.Builder
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	ok(t, err)
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch line := lines.Text(); line {
		case "@restart":
			s.stop()
			s.start()
		case "@stop":
			s.stop()
		case "@start":
			s.start()
		default:
			t.Log(line)
			continue
		}
		if _, err := io.WriteString(in, "done\n"); err != nil {
			t.Errorf("the story is gone: %v", err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s\nthe server's log:\n%s", err, said.String(), s.log.tail())
	}
}

// freeAddress is one that the server can have again after a restart.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer l.Close()
	return l.Addr().String()
}

// server is muster serve in a process of its own.
type server struct {
	t      *testing.T
	binary string
	dir    string // of data and credentials
	listen string
	link   string // token of the sign-in link, from the first start
	log    tail
	cmd    *exec.Cmd
	ended  chan struct{}
}

func (s *server) credentials() string { return filepath.Join(s.dir, "credentials.json") }

// start returns when the server is ready.
func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command(s.binary, "serve", "--data", filepath.Join(s.dir, "data"), "--listen", s.listen, "--credentials", s.credentials(), "--allow-private-webhooks")
	s.cmd.Stderr = &s.log
	out, err := s.cmd.StdoutPipe()
	ok(s.t, err)
	ok(s.t, s.cmd.Start())
	ready, ended := make(chan struct{}), make(chan struct{})
	s.ended = ended
	var link string
	go func(cmd *exec.Cmd) {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if _, token, is := strings.Cut(lines.Text(), "#sign-in="); is {
				link = token
			}
			if strings.HasPrefix(lines.Text(), "ready: ") {
				close(ready)
			}
		}
		_ = cmd.Wait() // it may be killed
	}(s.cmd)
	select {
	case <-ready:
		if link != "" {
			s.link = link
		}
	case <-ended:
		s.t.Fatalf("the server ended before it was ready:\n%s", s.log.tail())
	case <-time.After(time.Minute):
		s.t.Fatalf("the server was not ready within a minute:\n%s", s.log.tail())
	}
}

// stop ends the server, if it runs.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-s.ended:
	case <-time.After(30 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (w *tail) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, b...)
	w.text = w.text[max(0, len(w.text)-8000):]
	return len(b), nil
}

func (w *tail) tail() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.text)
}
