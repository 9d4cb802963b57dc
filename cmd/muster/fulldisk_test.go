package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// smallDisk is a file system of its own, of so many MiB. Mounting needs root; where
// that is not to be had the test is skipped, but not in CI.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("cannot mount a small file system: %v", err)
		}
		t.Skipf("cannot mount a small file system (run as root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// ballast is a file that takes all space left.
type ballast struct {
	t    *testing.T
	path string
}

func (b ballast) fill() {
	b.t.Helper()
	f, err := os.OpenFile(b.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	ok(b.t, err)
	defer f.Close()
	for n := 1 << 20; n > 0; {
		if _, err := f.Write(make([]byte, n)); errors.Is(err, syscall.ENOSPC) {
			n /= 2
		} else {
			ok(b.t, err)
		}
	}
}

func (b ballast) drop() {
	b.t.Helper()
	ok(b.t, os.Remove(b.path))
}

// try sends an event of a person of its own and returns the answer. The padding is text
// that does not compress: the log would make nothing of one letter repeated, and a disk
// would not become full of it.
func (s *server) try(i int, padding int) (status int, retryAfter, fault string) {
	s.t.Helper()
	pad := make([]byte, padding)
	seed := [32]byte{byte(i), byte(i >> 8), byte(i >> 16)}
	_, _ = rand.NewChaCha8(seed).Read(pad) // never fails
	text := base64.RawURLEncoding.EncodeToString(pad)[:padding]
	body := fmt.Sprintf(`{"event_type":"seen","user":{"email":"p%d@x.io"},"properties":{"n":%d,"pad":%q}}`, i, i, text)
	req, err := http.NewRequestWithContext(s.t.Context(), "POST", s.origin+"/api/v1/events", strings.NewReader(body))
	ok(s.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-App-Id", s.creds.AppID)
	req.Header.Set("X-App-Secret", s.creds.AppSecret)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.log())
	}
	defer res.Body.Close()
	var a struct{ Error *string }
	b, err := io.ReadAll(res.Body)
	ok(s.t, err)
	if err := json.Unmarshal(b, &a); err != nil {
		s.t.Fatalf("%d %s: %v", res.StatusCode, b, err)
	}
	if a.Error != nil {
		fault = *a.Error
	}
	return res.StatusCode, res.Header.Get("Retry-After"), fault
}

// has reports whether a person is known.
func (s *server) has(i int) bool {
	s.t.Helper()
	if s.token == "" {
		s.events("seen")
	}
	switch status := s.call("GET", fmt.Sprintf("/console/api/v1/profiles?email=p%d@x.io", i), "", nil, "Authorization", "Bearer "+s.token); status {
	case 200:
		return true
	case 404:
		return false
	default:
		s.t.Fatalf("profile %d: %d\n%s", i, status, s.log())
		return false
	}
}

// TestFullDisk (L1): on a full disk events are refused with 503 and reads continue; with
// space again events are taken, without a start; and after kill -9 exactly what was
// acknowledged is there.
func TestFullDisk(t *testing.T) {
	testlevel.SkipQuick(t, "fills a disk")
	t.Parallel()
	disk := smallDisk(t, 32)
	s := serve(t, disk, "--checkpoint-interval", "300ms")
	weight := ballast{t, filepath.Join(disk, "ballast")}
	const seen = `{"kind":"activity","event":"seen"}`
	var seg struct {
		ID    string `json:"_id"`
		Count *int
	}
	s.console("POST", "/segments", `{"name":"Seen","definition":`+seen+`}`, &seg)
	var acked, refused []int
	next, said := 0, 0 // said: how many refusals say that the disk is full
	send := func(padding int) bool {
		t.Helper()
		i := next
		next++
		status, retry, fault := s.try(i, padding)
		switch {
		case status == 202:
			acked = append(acked, i)
			return true
		case status == 503 && retry != "" && strings.Contains(fault, "nothing was stored"):
			refused = append(refused, i)
			if strings.Contains(fault, "disk is full") {
				said++
			}
			return false
		}
		t.Fatalf("event %d: %d %q %q\n%s", i, status, retry, fault, s.log())
		return false
	}
	count := func() int {
		t.Helper()
		s.console("GET", "/segments/"+seg.ID, "", &seg)
		if seg.Count == nil {
			return -1
		}
		return *seg.Count
	}
	for range 2 {
		for range 20 {
			if !send(10) {
				t.Fatalf("refused with space left\n%s", s.log())
			}
		}
		weight.fill()
		before, saidBefore := len(refused), said
		eventually.Holds(t, "events are refused for want of space", func() bool {
			send(30_000)
			return len(refused) >= before+10
		})
		if said == saidBefore {
			t.Error("no refusal says that the disk is full")
		}
		// What a checkpoint that failed gives back may hold some more events.
		eventually.Holds(t, "muster_disk_full is 1", func() bool {
			send(30_000)
			return s.metric("muster_disk_full") == 1
		})
		eventually.Holds(t, "a checkpoint finds no space", func() bool { return strings.Contains(s.log(), "no checkpoint is written until there is space") })
		// Reads continue.
		if status := s.call("GET", "/readyz", "", nil); status != 200 {
			t.Errorf("/readyz: %d", status)
		}
		if n := count(); n != len(acked) {
			t.Errorf("the segment counts %d, %d were acknowledged", n, len(acked))
		}
		if !s.has(acked[len(acked)-1]) || !s.has(acked[0]) || s.has(refused[len(refused)-1]) {
			t.Error("a profile is missing, or one is there that was refused")
		}
		// So are files that people upload.
		file := fmt.Sprintf(`{"name":"a.csv","kind":"people","text":%q}`, "email\n"+strings.Repeat("a@people.example\n", 6000))
		// What a checkpoint that failed gives back may hold some of them.
		eventually.Holds(t, "an upload finds no space", func() bool {
			status := s.call("POST", "/console/api/v1/imports", file, nil, "Authorization", "Bearer "+s.token)
			if status != 200 && status != 503 {
				t.Errorf("an upload on a full disk: %d", status)
			}
			return status == 503
		})
		weight.drop()
		eventually.Holds(t, "events are taken again", func() bool { return send(10) })
		eventually.Holds(t, "muster_disk_full is 0", func() bool { return s.metric("muster_disk_full") == 0 })
		eventually.Holds(t, "history is stored again", func() bool { return s.metric("muster_history_failing{partition=\"0\"}") == 0 })
	}
	if n := count(); n != len(acked) {
		t.Errorf("the segment counts %d, %d were acknowledged", n, len(acked))
	}
	// History has all rows, and a checkpoint none of them.
	eventually.Holds(t, "history and a checkpoint are at the end", func() bool {
		at := s.metric(`muster_applied_offset{partition="0"}`)
		return s.metric(`muster_history_offset{partition="0"}`) == at && s.metric(`muster_checkpoint_offset{partition="0"}`) == at
	})
	s.kill()
	s = serve(t, disk)
	if n := count(); n != len(acked) || s.events("seen") != len(acked) {
		t.Errorf("after kill -9 %d persons and %d events, %d were acknowledged", n, s.events("seen"), len(acked))
	}
	// Of history, which no segment answers.
	if n := s.preview(`{"kind":"activity","event":"seen","aggregate":{"fn":"sum","property":"n","op":">=","value":0}}`); n != len(acked) {
		t.Errorf("after kill -9 history counts %d persons, %d were acknowledged", n, len(acked))
	}
	for _, i := range acked {
		if !s.has(i) {
			t.Errorf("acknowledged event %d is missing", i)
		}
	}
	for _, i := range refused {
		if s.has(i) {
			t.Errorf("refused event %d is there", i)
		}
	}
	// A stop on a full disk is a stop like any other.
	weight.fill()
	before := len(refused)
	eventually.Holds(t, "events are refused for want of space", func() bool {
		send(30_000)
		return len(refused) > before
	})
	s.stop()
	if strings.Contains(s.log(), "goroutine") {
		t.Error(s.log())
	}
	weight.drop()
	s = serve(t, disk)
	if n := count(); n != len(acked) {
		t.Errorf("after a stop on a full disk %d persons, %d were acknowledged", n, len(acked))
	}
	s.stop()
	t.Logf("%d acknowledged, %d refused", len(acked), len(refused))
}

// refusedStart starts a server that is to refuse, and returns its one line.
func refusedStart(t *testing.T, dir string, args ...string) string {
	t.Helper()
	s := launch(t, dir, args...)
	code := s.untilEnded(time.Minute)
	said := s.log()
	var lines []string
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "muster: ") {
			lines = append(lines, line)
		}
	}
	// A mistake in how it was called is followed by where help is.
	said = strings.TrimSuffix(said, "muster serve --help lists the flags\n")
	if code == 0 || len(lines) != 1 || !strings.HasSuffix(said, lines[0]) || strings.Contains(said, "goroutine") {
		t.Fatalf("a refused start ends with %d and says\n%s", code, said)
	}
	return lines[0]
}

// TestFullDiskAtStart: a start on a full disk says so in one line, with the file system
// and what to do, and one with space again has everything.
func TestFullDiskAtStart(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	disk := smallDisk(t, 32)
	weight := ballast{t, filepath.Join(disk, "ballast")}
	says := func(left int) {
		t.Helper()
		weight.fill()
		if left > 0 {
			ok(t, os.Truncate(weight.path, size(t, weight.path)-int64(left)))
		}
		line := refusedStart(t, disk)
		if !strings.Contains(line, "file system "+disk+" is full") && !strings.Contains(line, "file system of the data directory is full") || !strings.Contains(line, "free space elsewhere") {
			t.Errorf("with %d bytes left a start says %s", left, line)
		}
		weight.drop()
	}
	// A new directory: in the log, in the state, in history.
	for _, left := range []int{0, 8 << 10, 600 << 10, 1<<20 + 16<<10, 1<<20 + 28<<10} {
		says(left)
		ok(t, os.RemoveAll(filepath.Join(disk, "data")))
	}
	s := serve(t, disk, "--checkpoint-interval", "300ms")
	for i := range 30 {
		if status, _, fault := s.try(i, 1000); status != 202 {
			t.Fatal(status, fault)
		}
	}
	eventually.Holds(t, "a checkpoint", func() bool { return s.metric(`muster_checkpoint_offset{partition="0"}`) >= 30 })
	s.kill()
	// What a start removes first would give it the space that it needs.
	live := filepath.Join(disk, "data", "state", "p0", "live")
	ok(t, os.RemoveAll(live))
	says(0)
	s = serve(t, disk)
	if n := s.events("seen"); n != 30 {
		t.Errorf("%d events, want 30", n)
	}
	s.stop()
	ok(t, os.RemoveAll(live))
	says(0)
	s = serve(t, disk)
	if n := s.events("seen"); n != 30 {
		t.Errorf("%d events, want 30", n)
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	ok(t, err)
	return info.Size()
}
