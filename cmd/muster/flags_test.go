package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/testlevel"
)

// refusedUsage runs a command with wrong flags. It is to end with status 2 and one line
// that has all of want, before it makes anything in dir.
func refusedUsage(t *testing.T, dir string, args []string, want ...string) {
	t.Helper()
	before := snapshot(t, dir)
	code, _, errs := muster(t, "", args...)
	line, rest, _ := strings.Cut(errs, "\n")
	for _, w := range want {
		if !strings.Contains(line, w) {
			t.Errorf("%v: it says %q, want %q in it", args, line, w)
		}
	}
	if code != exitUsage || !strings.HasPrefix(line, "muster: ") || rest != fmt.Sprintf("muster %s --help lists the flags\n", args[0]) {
		t.Errorf("%v: status %d, %q", args, code, errs)
	}
	compareSnapshots(t, fmt.Sprint(args), before, snapshot(t, dir))
}

// TestFlagsWithoutSense: values that cannot be meant are refused with the flag and what
// is wanted.
func TestFlagsWithoutSense(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	for _, x := range []struct{ flag, value, want string }{
		{"history-memory", "32MiB", "use at least 64MiB"},
		{"history-memory", "67108863", "use at least 64MiB"},
		{"history-threads", "-1", "use at least 0"},
		{"checkpoint-interval", "0s", "use at least 10ms"},
		{"checkpoint-interval", "25h", "use at most 24h"},
		{"checkpoint-log-bytes", "1023KiB", "use at least 1MiB"},
		{"generation-bytes", "0", "use at least 1MiB"},
		{"cache-bytes", "0", "use at least 1MiB"},
		{"cache-bytes", "2000TiB", "use at most 1024TiB"},
		{"spool-bytes", "0", "use at least 1MiB"},
		{"max-backlog", "0", "use at least 1"},
		{"max-backlog", "-5", "use at least 1"},
		{"drain-timeout", "-1s", "use at least 0s"},
		{"drain-timeout", "1000h", "use at most 24h"},
		{"start-timeout", "-1s", "use at least 0s"},
		{"max-body-bytes", "0", "use at least 1KiB"},
		{"max-body-bytes", "1GiB", "use at most 512MiB"},
		{"max-body-bytes", "100MiB", "--max-inflight-bytes must be at least four times --max-body-bytes"},
		{"max-batch-events", "0", "use at least 1"},
		{"max-inflight-bytes", "1MiB", "use at least 16MiB"},
		{"max-connections", "0", "use at least 1"},
		{"max-connections-per-address", "-1", "use at least 0"},
		{"smtp-connections", "0", "use at least 1"},
		{"smtp-connections", "65", "use at most 64"},
		{"smtp-tls", "perhaps", "use starttls, tls or none"},
		{"smtp", "relay", "use HOST:PORT"},
		{"smtp", "relay.example.com:587", "--public-url is missing"},
		{"smtp", "192.0.2.1:25", "--public-url is missing"},
		{"bounce-domain", "a@b", "use a domain"},
		{"dns", "192.0.2.1", "use HOST:PORT"},
		{"backup-interval", "0s", "use at least 1s"},
		{"backup-rate", "1", "use 0 or at least 64KiB"},
		{"backup-to", "/srv/backups", "use file:///DIRECTORY"},
		{"backup-to", "file:///no/such/directory", "Make the directory, or mount it"},
		{"checkpoints", "file:///no/such/directory", "Make the directory, or mount it"},
		{"clickhouse-ttl-days", "-1", "use at least 0"},
		{"clickhouse-ttl-days", "7301", "use at most 7300"},
		{"kafka-replication", "-1", "use at least 0"},
		{"kafka-partitions", "4097", "use at most 4096"},
		{"kafka-session-timeout", "0s", "use at least 1s"},
		{"kafka-compression", "rar", "use none, lz4, zstd, snappy or gzip"},
		{"kafka-sasl", "GSSAPI", "use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"},
		{"log-level", "loud", ""},
		{"log-format", "xml", ""},
		{"listen", "x", `is "x"; use HOST:PORT`},
		{"listen", "127.0.0.1:99999", "a port up to 65535"},
		{"listen", "127.0.0.1:", "use HOST:PORT"},
		{"public-url", "mail.example.com", ""},
		{"trusted-proxies", "ten", ""},
		{"skip-record", "1", ""},
	} {
		refusedUsage(t, dir, []string{"serve", "--data", data, "--" + x.flag, x.value}, "--"+x.flag, x.want)
	}
	for _, public := range []string{"http://localhost:8080", "http://127.0.0.1", "https://[::1]:8443/", "http://0.0.0.0:8080", "http://127.1", "http://ip6-localhost", "http://[::]:8080", "https://LocalHost./"} {
		refusedUsage(t, dir, []string{"serve", "--data", data, "--smtp", "relay.example.com:587", "--public-url", public}, "--public-url", "is on this one")
	}
	k := []string{"serve", "--data", data, "--kafka", "127.0.0.1:1", "--clickhouse", "clickhouse://127.0.0.1:1/x"}
	refusedUsage(t, dir, append(k, "--max-body-bytes", "64MiB"), "--max-body-bytes must be at most 66060288 with --kafka")
	refusedUsage(t, dir, append(k, "--kafka-topic", "a/b"), `--kafka-topic is "a/b"`)
	refusedUsage(t, dir, append(k, "--advertise", "x"), "--advertise", "use HOST:PORT")
	refusedUsage(t, dir, []string{"health", "--timeout", "-1s"}, "--timeout", "use at least 1ms")
	refusedUsage(t, dir, []string{"health", "--listen", "x"}, "--listen", "use HOST:PORT")
	refusedUsage(t, dir, []string{"export", "--data", data, "--cache-bytes", "0", "profiles"}, "--cache-bytes", "use at least 1MiB")
}

// TestPathsAtStart: directories and files that cannot be used are refused before
// anything is made.
func TestPathsAtStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, file, none := filepath.Join(dir, "data"), filepath.Join(dir, "file"), filepath.Join(dir, "none")
	ok(t, os.WriteFile(file, nil, 0o600))
	full := filepath.Join(dir, "full")
	ok(t, os.Mkdir(full, 0o700))
	for _, x := range []struct {
		args []string
		want []string
	}{
		{[]string{"serve", "--data", file}, []string{"--data", file + " is a file; name a directory"}},
		{[]string{"serve", "--data", filepath.Join(file, "x")}, []string{"--data", "a part of " + filepath.Join(file, "x") + " is a file"}},
		{[]string{"serve", "--data", data, "--credentials", filepath.Join(none, "c.json")}, []string{"--credentials", none + " does not exist"}},
		{[]string{"serve", "--data", data, "--credentials", full}, []string{"--credentials", full + " is a directory; name a file"}},
		{[]string{"serve", "--data", data, "--credentials", filepath.Join(file, "c.json")}, []string{"--credentials", "is a file; name a directory"}},
		{[]string{"serve", "--data", data, "--backup-to", "file://" + none}, []string{"--backup-to", "Make the directory"}},
		{[]string{"serve", "--data", data, "--backup-to", "file://" + file}, []string{"--backup-to"}},
		{[]string{"export", "--data", none, "profiles"}, []string{"--data", none + " does not exist"}},
		{[]string{"import", "--data", none, "x.jsonl"}, []string{"--data", none + " does not exist"}},
		{[]string{"backup", "--data", none, "--to", "file://" + full}, []string{"--data", none + " does not exist"}},
		{[]string{"export", "--to", "http://127.0.0.1:1", "--credentials", none, "profiles"}, []string{"--credentials", none + " does not exist"}},
	} {
		refusedUsage(t, dir, x.args, x.want...)
	}

	for _, command := range []string{"check", "repair"} {
		code, _, errs := muster(t, "", command, "--data", none)
		if code != exitFailed || errs != "muster: --data: "+none+" does not exist; name a directory that does\n" {
			t.Errorf("%s: %d %s", command, code, errs)
		}
	}

	// What this user may not write to; root may write everywhere.
	locked := filepath.Join(dir, "locked")
	ok(t, os.Mkdir(locked, 0o500))
	ok(t, os.Chmod(dir, 0o755))
	if os.Geteuid() == 0 {
		return
	}
	for flag, args := range map[string][]string{
		"--data":        {"--data", filepath.Join(locked, "data")},
		"--credentials": {"--data", data, "--credentials", filepath.Join(locked, "c.json")},
		"--backup-to":   {"--data", data, "--backup-to", "file://" + locked},
		"--checkpoints": {"--data", data, "--checkpoints", "file://" + locked},
	} {
		code, _, errs := muster(t, "", append([]string{"serve"}, args...)...)
		if code != exitFailed || !strings.Contains(errs, flag+": no files can be made in "+locked) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: %d %s", args, code, errs)
		}
		if _, err := os.Stat(data); err == nil {
			t.Errorf("%v: the data directory was made", args)
		}
	}
}

// TestListenErrors: an address that cannot be listened on is refused with what to do.
func TestListenErrors(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	t.Cleanup(func() { ok(t, taken.Close()) })
	for address, want := range map[string]string{
		taken.Addr().String(): "another process listens on " + taken.Addr().String(),
		"192.0.2.1:8080":      "192.0.2.1:8080 is no address of this machine",
		"no.invalid:8080":     "the host of no.invalid:8080 is unknown",
	} {
		dir := t.TempDir()
		code, _, errs := muster(t, "", "serve", "--data", filepath.Join(dir, "data"), "--listen", address, "--start-timeout", "0s", "--log-level", "error")
		if code != exitFailed || !strings.HasPrefix(errs, "muster: --listen: "+want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: %d %s", address, code, errs)
		}
	}
}

// TestDeadServer: commands that call a server which is not there, or does not take
// connections, say so within a few seconds.
func TestDeadServer(t *testing.T) {
	testlevel.SkipQuick(t, "waits for calls to give up")
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	credentials := filepath.Join(dir, "credentials.json")
	gone := strings.TrimPrefix(s.origin, "http://")
	s.stop()
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(tls.Close)
	deaf := deafAddr(t)
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"export", "--to", "http://" + gone, "--credentials", credentials, "profiles"}, "http://" + gone + " does not answer: nothing listens there; start the server, or give its address with --to"},
		{[]string{"admin", "--credentials", credentials, "company", "list"}, "http://" + gone + " does not answer: nothing listens there; start the server, or give its address with --to"},
		{[]string{"health", "--listen", gone}, "the server at " + gone + " does not answer: nothing listens there; start the server, or give its address with --listen"},
		{[]string{"export", "--to", "http://no.invalid:1", "--credentials", credentials, "profiles"}, "http://no.invalid:1 does not answer: its host is unknown; give the server's address with --to"},
		{[]string{"admin", "--to", tls.URL, "--credentials", credentials, "company", "list"}, "its certificate is not trusted"},
		{[]string{"export", "--to", "http://" + deaf, "--credentials", credentials, "profiles"}, "http://" + deaf + " does not answer: no answer in time; start the server"},
		{[]string{"admin", "--to", "http://" + deaf, "--credentials", credentials, "company", "list"}, "http://" + deaf + " does not answer: no answer in time; start the server"},
		{[]string{"health", "--listen", deaf}, "the server at " + deaf + " does not answer: no answer in time; start the server"},
	} {
		began := time.Now()
		code, _, errs := muster(t, "", x.args...)
		took := time.Since(began)
		if code != exitFailed || !strings.Contains(errs, x.want) || strings.Count(errs, "\n") != 1 || strings.Contains(errs, "dial tcp") {
			t.Errorf("%v: %d %s, want %s", x.args, code, errs, x.want)
		}
		if took > 2*connectTime { // the rest is for a busy machine
			t.Errorf("%v took %s", x.args, took)
		}
	}
}

// deafAddr is an address whose queue of connections is full: further ones come to
// nothing.
func deafAddr(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	ok(t, err)
	t.Cleanup(func() { syscall.Close(fd) })
	ok(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	ok(t, syscall.Listen(fd, 0))
	name, err := syscall.Getsockname(fd)
	ok(t, err)
	addr := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for {
		c, err := net.DialTimeout("tcp", addr, 300*time.Millisecond)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { c.Close() })
	}
}

// TestDirectoryOfARunningServer: a command that needs a directory which a server has
// names that server.
func TestDirectoryOfARunningServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	data := filepath.Join(dir, "data")
	rows := filepath.Join(dir, "x.jsonl")
	ok(t, os.WriteFile(rows, nil, 0o600))
	holder := fmt.Sprintf("%s is held by %s serve (process %d)", data, filepath.Base(os.Args[0]), s.Cmd.Process.Pid)
	for _, args := range [][]string{
		{"check", "--data", data}, {"repair", "--data", data},
		{"export", "--data", data, "profiles"}, {"import", "--data", data, rows},
		{"serve", "--data", data, "--listen", "127.0.0.1:0", "--start-timeout", "0s", "--log-level", "error"},
		{"restore", "--data", t.TempDir(), "--from", "file://" + t.TempDir(), "--log", filepath.Join(data, "log")},
	} {
		code, _, errs := muster(t, "", args...)
		if args[0] == "restore" {
			continue // there is no backup
		}
		if code != exitFailed || !strings.Contains(errs, holder) || strings.Contains(errs, "temporarily unavailable") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: %d %s, want %s", args, code, errs, holder)
		}
	}
	s.stop()
}

// TestExportWithoutHistory: an export of a stopped directory whose history is missing
// names the remedy, and the remedy works.
func TestExportWithoutHistory(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	for i := range 300 {
		s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"u%d@x.io"}}`, i))
	}
	s.stop()
	data := filepath.Join(dir, "data")
	ok(t, os.Remove(filepath.Join(data, "history.duckdb")))
	export := []string{"export", "--data", data, "--log-level", "error", "events"}
	code, out, errs := muster(t, "", export...)
	remedy := "run muster repair --data " + data
	if code == exitOK && strings.Count(out, "\n") == 300 {
		t.Skip("history was rebuilt before the export asked for it")
	}
	if code != exitFailed || out != "" || !strings.Contains(errs, remedy) {
		t.Fatalf("%d %q %s", code, out, errs)
	}
	if code, _, errs := muster(t, "", "repair", "--data", data); code != exitOK {
		t.Fatalf("repair: %d %s", code, errs)
	}
	if code, out, errs := muster(t, "", export...); code != exitOK || strings.Count(out, "\n") != 300 {
		t.Errorf("after the repair: %d, %d events, %s", code, strings.Count(out, "\n"), errs)
	}
}

// TestFileBesideTheData: a directory that is made with the data directory may have the
// credentials, too.
func TestFileBesideTheData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, x := range []struct{ data, credentials string }{{"new/data", "new/c.json"}, {"new", "new/c.json"}, {"a/b/c", "a/c.json"}} {
		if err := checkFileToMake("credentials", filepath.Join(dir, x.credentials), filepath.Join(dir, x.data)); err != nil {
			t.Error(err)
		}
	}
	if err := checkFileToMake("credentials", filepath.Join(dir, "other/c.json"), filepath.Join(dir, "new/data")); err == nil {
		t.Error("a directory that does not exist was accepted")
	}
}
