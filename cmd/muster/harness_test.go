package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/password"
	"github.com/musterhq/muster/internal/serverprocess"
	"github.com/musterhq/muster/internal/testlevel"
)

// The test binary is muster when this variable is set: tests run the real
// command in a process of its own.
const roleVariable = "MUSTER_TEST_BE_MUSTER"

// killVariable makes it one that is killed when it says what begins so.
const killVariable = "MUSTER_TEST_KILL_WHEN_SAID"

// cheapVariable makes it one whose passwords cost next to nothing to check, as at the quick
// level: each is 30 ms of a processor otherwise, for each company of each server.
const cheapVariable = "MUSTER_TEST_CHEAP_PASSWORDS"

// killed ends the process, as kill -9 does, when a line begins as told.
type killed struct{ said string }

func (k killed) Write(p []byte) (int, error) {
	if strings.HasPrefix(string(p), k.said) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return os.Stdout.Write(p)
}

func TestMain(m *testing.M) {
	if os.Getenv(cheapVariable) != "" {
		password.Default = password.Params{MemoryKiB: 64, Iterations: 1, Lanes: 1}
	}
	if said := os.Getenv(killVariable); said != "" {
		p := &process{args: os.Args[1:], env: os.LookupEnv, stdin: os.Stdin, stdout: killed{said}, stderr: os.Stderr}
		os.Exit(p.run(context.Background()))
	}
	if os.Getenv(roleVariable) != "" {
		main()
	}
	// A request that is never answered fails its test by name.
	http.DefaultClient.Timeout = patience
	os.Exit(m.Run())
}

// patience is how long a server may take for a request, or to stop; a command may take twice
// as long. What takes longer hangs, and says where.
const patience = 3 * time.Minute

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleVariable+"=1")
	if testlevel.Quick() {
		cmd.Env = append(cmd.Env, cheapVariable+"=1")
	}
	return cmd
}

// muster runs a command to its end.
func muster(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	ok(t, cmd.Start())
	defer time.AfterFunc(2*patience, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) }).Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// server is muster serve in a process of its own.
type server struct {
	*serverprocess.Server
	t      *testing.T
	origin string
	creds  api.Credentials
	token  string
}

// serve starts a server on a free port and waits until it is ready. dir holds
// data and credentials.
func serve(t *testing.T, dir string, args ...string) *server {
	t.Helper()
	return serveWith(t, dir, plainly, args...)
}

// serveWith is serve, with a last word on how the command is run.
func serveWith(t *testing.T, dir string, change func(*exec.Cmd), args ...string) *server {
	t.Helper()
	s := launchWith(t, dir, change, args...)
	s.untilReady()
	var err error
	s.creds, err = api.LoadCredentials(s.Credentials())
	ok(t, err)
	return s
}

// launch starts a server and does not wait.
func launch(t *testing.T, dir string, args ...string) *server {
	t.Helper()
	return launchWith(t, dir, plainly, args...)
}

// launchWith is launch, with a last word on how the command is run.
func launchWith(t *testing.T, dir string, change func(*exec.Cmd), args ...string) *server {
	t.Helper()
	return &server{t: t, Server: serverprocess.Launch(t, dir, func(args ...string) *exec.Cmd {
		cmd := command(args...)
		change(cmd)
		return cmd
	}, args...)}
}

// untilReady waits until the server serves.
func (s *server) untilReady() {
	s.t.Helper()
	s.UntilReady()
	s.origin = s.Origin
}

// untilEnded waits until the server ends by itself, which it must within a time, and returns its
// exit code.
func (s *server) untilEnded(limit time.Duration) int {
	s.t.Helper()
	select {
	case <-s.Ended:
	case <-time.After(limit):
		s.t.Fatalf("the server continues after %v", limit)
	}
	return s.Cmd.ProcessState.ExitCode()
}

func (s *server) log() string { return s.Log() }
func (s *server) stop()       { s.t.Helper(); s.Stop() }
func (s *server) kill()       { s.t.Helper(); s.Kill() }

// call makes a request and reads its JSON answer.
func (s *server) call(method, path, body string, v any, headers ...string) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.origin+path, strings.NewReader(body))
	ok(s.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if late, is := errors.AsType[net.Error](err); is && late.Timeout() {
		s.Quit()
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	ok(s.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ok(s.t, err)
	if v != nil {
		if err := json.Unmarshal(b, v); err != nil {
			s.t.Fatalf("%s %s: %d %s: %v", method, path, res.StatusCode, b, err)
		}
	}
	return res.StatusCode
}

// console calls the console API, which must succeed, and reads the data.
func (s *server) console(method, path, body string, data any) {
	s.t.Helper()
	if s.token == "" {
		var in struct{ Data struct{ Token string } }
		if status := s.call("POST", api.Prefix+"/session", fmt.Sprintf(`{"email":%q,"password":%q}`, s.creds.ConsoleEmail, s.creds.ConsolePassword), &in); status != 200 {
			s.t.Fatalf("signing in: %d", status)
		}
		s.token = in.Data.Token
	}
	var a struct {
		Message string
		Data    json.RawMessage
	}
	if status := s.call(method, api.Prefix+path, body, &a, "Authorization", "Bearer "+s.token); status != 200 {
		s.t.Fatalf("%s %s: %d %s", method, path, status, a.Message)
	}
	if data != nil {
		ok(s.t, json.Unmarshal(a.Data, data))
	}
}

// preview counts the people for whom a definition holds.
func (s *server) preview(definition string) int {
	s.t.Helper()
	var p struct{ Count int }
	s.console("POST", "/segments/preview", `{"definition":`+definition+`}`, &p)
	return p.Count
}

// event sends an event and returns the profile's id.
func (s *server) event(body string) string {
	s.t.Helper()
	var a struct {
		Success   bool
		ProfileID string `json:"profile_id"`
		Error     *string
	}
	if status := s.call("POST", "/api/v1/events", body, &a, "X-App-Id", s.creds.AppID, "X-App-Secret", s.creds.AppSecret); status != 202 || !a.Success {
		s.t.Fatalf("event %s: %d %v", body, status, a.Error)
	}
	return a.ProfileID
}

// events is how many events of a type the catalog counts.
func (s *server) events(key string) int {
	s.t.Helper()
	var list []struct {
		Key   string
		Count int
	}
	s.console("GET", "/catalog", "", &list)
	for _, x := range list {
		if x.Key == key {
			return x.Count
		}
	}
	return 0
}
