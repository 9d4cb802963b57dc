package console_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/serverprocess"
	"github.com/musterhq/muster/internal/testlevel"
)

func TestMain(m *testing.M) { serverprocess.Main(m) }

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
	serverprocess.Binary(t)
	stories, err := filepath.Glob("web/e2e/*.mjs")
	ok(t, err)
	if len(stories) == 0 {
		t.Fatal("web/e2e has no story")
	}
	for _, story := range stories {
		t.Run(strings.TrimSuffix(filepath.Base(story), ".mjs"), func(t *testing.T) {
			t.Parallel()
			play(t, chromium, story)
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
func play(t *testing.T, chromium, story string) {
	s := serverprocess.Start(t, "--allow-private-webhooks")
	_, link, _ := strings.Cut(s.Log(), "#sign-in=")
	link, _, _ = strings.Cut(link, "\n")
	ctx, cancel := context.WithTimeout(t.Context(), storyTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", filepath.Base(story))
	cmd.Dir = filepath.Dir(story)
	cmd.WaitDelay = 5 * time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = append(os.Environ(), "MUSTER_URL="+s.Origin, "MUSTER_CREDENTIALS="+s.Credentials(), "MUSTER_LINK="+link, "MUSTER_CHROMIUM="+chromium, "MUSTER_FAILED="+os.TempDir())
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
			s.Stop()
			s.Restart()
		case "@stop":
			s.Stop()
		case "@start":
			s.Restart()
		default:
			t.Log(line)
			continue
		}
		if _, err := io.WriteString(in, "done\n"); err != nil {
			t.Errorf("the story is gone: %v", err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, said.String())
	}
}
