package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	servers "github.com/musterhq/muster/internal/services"
	"github.com/musterhq/muster/internal/testlevel"
)

// sample is a program of docs/sending-events.md and what it prints.
type sample struct{ language, text, prints string }

// samples are the blocks of code of docs/sending-events.md that print something.
func samples(t *testing.T) (list []sample) {
	t.Helper()
	text, err := os.ReadFile("../../docs/sending-events.md")
	ok(t, err)
	var last sample
	for _, m := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		if m[1] != "" {
			last = sample{language: m[1], text: m[2]}
			continue
		}
		last.prints = m[2]
		list = append(list, last)
	}
	return list
}

// TestSamplesOfSendingEvents runs each program of docs/sending-events.md. On its first
// request the server is busy, and the answer to the second, whose events are recorded,
// is lost on its way. The program prints what the page says, and each event counts once.
func TestSamplesOfSendingEvents(t *testing.T) {
	testlevel.SkipQuick(t, "runs the samples of docs")
	t.Parallel()
	list := samples(t)
	languages := map[string]bool{}
	for _, x := range list {
		languages[x.language] = true
	}
	for _, l := range []string{"sh", "go", "js", "python"} {
		if !languages[l] {
			t.Errorf("the page has no program in %s", l)
		}
	}
	s := serve(t, t.TempDir())
	target, err := url.Parse(s.origin)
	ok(t, err)
	for i, x := range list {
		t.Run(x.language, func(t *testing.T) {
			dir := t.TempDir()
			run := map[string]func(file string) *exec.Cmd{
				"sh":     func(file string) *exec.Cmd { return exec.CommandContext(t.Context(), "bash", file) },
				"js":     func(file string) *exec.Cmd { return exec.CommandContext(t.Context(), "node", file) },
				"python": func(file string) *exec.Cmd { return exec.CommandContext(t.Context(), "python3", file) },
				"go": func(file string) *exec.Cmd {
					here, err := filepath.Abs("../../muster-go")
					ok(t, err)
					ok(t, os.WriteFile(filepath.Join(dir, "go.mod"), fmt.Appendf(nil,
						"module sample\n\ngo 1.24\n\nrequire github.com/musterhq/muster/muster-go v0.0.0\n\nreplace github.com/musterhq/muster/muster-go => %s\n", here), 0o600))
					return exec.CommandContext(t.Context(), "go", "run", file)
				},
			}[x.language]
			name := map[string]string{"sh": "sample.sh", "js": "sample.mjs", "python": "sample.py", "go": "main.go"}[x.language]
			if run == nil {
				t.Fatalf("no test knows how to run a program in %s", x.language)
			}
			ok(t, os.WriteFile(filepath.Join(dir, name), []byte(x.text), 0o600))
			cmd := run(name)
			if cmd.Err != nil {
				if os.Getenv(servers.EnvRequire) == "1" {
					t.Fatal(cmd.Err)
				}
				t.Skipf("the sample is not run: %v", cmd.Err)
			}
			var requests atomic.Int32
			proxy := httputil.NewSingleHostReverseProxy(target)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch requests.Add(1) {
				case 1:
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(503)
				case 2:
					proxy.ServeHTTP(httptest.NewRecorder(), r)
					panic(http.ErrAbortHandler)
				default:
					proxy.ServeHTTP(w, r)
				}
			}))
			defer front.Close()
			before := s.events("item_purchased")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "MUSTER_URL="+front.URL, "MUSTER_APP_ID="+s.creds.AppID, "MUSTER_APP_SECRET="+s.creds.AppSecret)
			var errs strings.Builder
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("sample %d: %v\n%s", i, err, errs.String())
			}
			if got := string(out); got != x.prints {
				t.Errorf("it prints\n%s\nnot\n%s\n%s", got, x.prints, errs.String())
			}
			if n := requests.Load(); n != 3 {
				t.Errorf("it made %d requests, not 3", n)
			}
			if n := s.events("item_purchased") - before; n != 1 {
				t.Errorf("%d events are recorded, not 1", n)
			}
		})
	}
}
