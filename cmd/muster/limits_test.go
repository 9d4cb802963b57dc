package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

func TestConnectionsFitTheLimitOfFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		wanted int
		limit  uint64
		fits   int
	}{
		{16384, 1 << 20, 16384}, {16384, 17384, 16384}, {16384, 17383, 16383}, {16384, 4096, 3096}, {16384, 2000, 1000},
		{16384, 1024, 512}, {16384, 256, 128}, {100, 256, 100}, {16384, 255, 0}, {16384, 64, 0},
		{16384, ^uint64(0), 16384}, // unlimited
	} {
		fits, err := fitConnections(tt.wanted, tt.limit)
		if fits != tt.fits || (err == nil) != (tt.fits > 0) {
			t.Errorf("%d of %d: %d %v, want %d", tt.wanted, tt.limit, fits, err, tt.fits)
		}
	}
}

// limitFiles has a command run under a limit of open files.
func limitFiles(cmd *exec.Cmd, which string, n int) {
	line := fmt.Sprintf(`ulimit -%sn %d && exec "$0" "$@"`, which, n)
	cmd.Args = append([]string{"sh", "-c", line}, cmd.Args...)
	cmd.Path = "/bin/sh"
}

// TestTooFewFilesToStart: with a limit of files that is no use the command ends with one
// line that names it and the remedy.
func TestTooFewFilesToStart(t *testing.T) {
	t.Parallel()
	cmd := command("serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0")
	limitFiles(cmd, "", 64)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitFailed {
		t.Errorf("%v", err)
	}
	if said := string(out); strings.Count(said, "\n") != 1 || !strings.Contains(said, "RLIMIT_NOFILE) is 64") || !strings.Contains(said, "ulimit -n") {
		t.Errorf("it says: %s", said)
	}
}

// TestFilesRunOut: however many connections come, idle, half sent or with many
// requests at once, the process continues, and answers when they are gone.
func TestFilesRunOut(t *testing.T) {
	testlevel.SkipQuick(t, "uses up the files that a process may open")
	t.Parallel()
	for name, tt := range map[string]struct {
		files, connections int
		which              string
		warns              bool
	}{
		"1024":       {1024, 512, "", true},
		"4096":       {4096, 3096, "", true},
		"soft alone": {64, 0, "S", false}, // the hard limit is what counts
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"--max-connections", "3500"}
			if !tt.warns {
				args[1] = "100"
			}
			s := launchWith(t, t.TempDir(), func(cmd *exec.Cmd) { limitFiles(cmd, tt.which, tt.files) }, args...)
			s.untilReady()
			if warned := strings.Count(s.log(), "RLIMIT_NOFILE"); warned > 1 || (warned == 1) != tt.warns {
				t.Errorf("%d warnings:\n%s", warned, s.log())
			}
			const head = "GET /healthz HTTP/1.1\r\nHost: x\r\n"
			if !tt.warns {
				return
			}
			for kind, request := range map[string]string{
				"idle": "", "half sent": head + "X-", "slow body": "POST /console/api/v1/session HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n{",
				"pipelined": strings.Repeat(head+"\r\n", 20) + head,
			} {
				conns, took := manyConns(s, tt.files+100, request)
				for range 5 { // idle ones are cut after 10 s
					if kind != "idle" || took < 8*time.Second {
						break
					}
					closeAll(conns)
					s.answersAgain(kind)
					conns, took = manyConns(s, tt.files+100, request)
				}
				turnedAway := 0
				for _, c := range conns[len(conns)-50:] { // the last came when all places were taken
					ok(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
					res, err := http.ReadResponse(bufio.NewReader(c), nil)
					if err != nil || res.StatusCode == 503 {
						turnedAway++
					}
				}
				if kind == "idle" && turnedAway < 50 {
					t.Errorf("%s: %d of the last 50 of %d connections are turned away", kind, turnedAway, len(conns))
				}
				closeAll(conns)
				s.answersAgain(kind)
			}
			s.stop()
		})
	}
}

// manyConns dials a server so many times and sends something on each connection. took is how
// long that was.
func manyConns(s *server, n int, request string) (conns []net.Conn, took time.Duration) {
	begun := time.Now()
	for range n {
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(s.origin, "http://"), time.Minute)
		if err != nil {
			continue // what the system does not take either
		}
		conns = append(conns, c)
		io.WriteString(c, request) // it may have been turned away
	}
	return conns, time.Since(begun)
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		c.Close()
	}
}

// answersAgain waits until the server answers new connections.
func (s *server) answersAgain(after string) {
	s.t.Helper()
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	eventually.Succeeds(s.t, func() error {
		res, err := client.Get(s.origin + "/readyz")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == 200 {
				return nil
			}
		}
		return fmt.Errorf("%s: it does not answer again: %v\n%s", after, err, s.log())
	})
}
