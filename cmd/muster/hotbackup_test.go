package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// rounds is how often a test that kills does so: a few, or all with MUSTER_LONG.
func rounds(few, all int) int {
	if testlevel.Long() {
		return all
	}
	return few
}

// sender sends single events until it is stopped, and counts those acknowledged.
type sender struct {
	acknowledged atomic.Int64
	stop         func()
}

// send begins to send events of a type to a server, which may be killed meanwhile.
func (s *server) send(kind string, clients int) *sender {
	out := &sender{}
	end := make(chan struct{})
	var running sync.WaitGroup
	for c := range clients {
		running.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-end:
					return
				default:
				}
				body := fmt.Sprintf(`{"event_type":%q,"user":{"email":"%d-%d@x.io"}}`, kind, c, i%50)
				req, err := http.NewRequest("POST", s.origin+"/api/v1/events", strings.NewReader(body))
				if err != nil {
					panic(err)
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("X-App-Id", s.creds.AppID)
				req.Header.Set("X-App-Secret", s.creds.AppSecret)
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					return // killed
				}
				res.Body.Close()
				if res.StatusCode == http.StatusAccepted {
					out.acknowledged.Add(1)
				}
			}
		})
	}
	out.stop = sync.OnceFunc(func() { close(end); running.Wait() })
	s.t.Cleanup(out.stop)
	return out
}

// untilEvents waits until the catalog counts so many events: history may be rebuilt
// first.
func (s *server) untilEvents(key string, atLeast int) int {
	s.t.Helper()
	n := 0
	eventually.Succeeds(s.t, func() error {
		if n = s.events(key); n < atLeast {
			return fmt.Errorf("%d events of %s instead of at least %d\n%s", n, key, atLeast, s.log())
		}
		return nil
	})
	return n
}

// untilMembers waits until history answers how many profiles had an event, which may
// have to be rebuilt first.
func (s *server) untilMembers(event string, want int) {
	s.t.Helper()
	eventually.Succeeds(s.t, func() error {
		var a struct {
			Data struct{ Count int }
		}
		s.console("GET", "/catalog", "", nil) // signs in
		status := s.call("POST", "/console/api/v1/segments/preview", fmt.Sprintf(`{"definition":{"kind":"activity","event":%q}}`, event), &a, "Authorization", "Bearer "+s.token)
		if status != 200 || a.Data.Count != want {
			return fmt.Errorf("%d, %d profiles instead of %d\n%s", status, a.Data.Count, want, s.log())
		}
		return nil
	})
}

// restored restores the newest backup to a new directory and serves it.
func restored(t *testing.T, credentials, store string, more ...string) *server {
	t.Helper()
	dir := t.TempDir()
	b, err := os.ReadFile(credentials)
	ok(t, err)
	ok(t, os.WriteFile(filepath.Join(dir, "credentials.json"), b, 0o600))
	if code, out, errs := muster(t, "", append([]string{"restore", "--from", store, "--data", filepath.Join(dir, "data")}, more...)...); code != 0 {
		t.Fatalf("restore: %d %s %s", code, out, errs)
	}
	return serve(t, dir)
}

// TestHotBackup: a backup of a server that takes events has all that was acknowledged
// before it began; a second one sends what is new; history comes again from the log.
func TestHotBackup(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	dir, store := t.TempDir(), "file://"+filepath.ToSlash(t.TempDir())
	data := filepath.Join(dir, "data")
	s := serve(t, dir, "--checkpoint-interval", "200ms")
	for i := range 40 {
		s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"%d@x.io"}}`, i))
	}
	events := s.send("busy", 2)
	for range 3 {
		before := events.acknowledged.Load()
		code, out, errs := muster(t, "", "backup", "--data", data, "--to", store)
		if code != 0 || !strings.Contains(out, "backup 2") || !strings.Contains(errs, "running service") {
			t.Fatalf("%d %s %s", code, out, errs)
		}
		r := restored(t, filepath.Join(dir, "credentials.json"), store)
		r.untilEvents("seen", 40)
		if n := r.untilEvents("busy", int(before)); int64(n) > events.acknowledged.Load()+10 {
			t.Errorf("%d events of %d", n, events.acknowledged.Load())
		}
		r.untilMembers("seen", 40)
		r.stop()
	}
	events.stop()
	if _, err := os.Stat(filepath.Join(data, "backup.tmp")); err == nil {
		t.Error("links are left behind")
	}
	s.stop()
	if _, err := os.Lstat(filepath.Join(data, "control.sock")); err == nil {
		t.Error("the socket is left behind")
	}
	// A stopped directory goes to the same place.
	if code, out, errs := muster(t, "", "backup", "--data", data, "--to", store); code != 0 {
		t.Fatalf("%d %s %s", code, out, errs)
	}
}

// TestHotBackupOfATrimmedLog: history cannot be made from a log that lacks its beginning,
// so a backup of a running server has a copy of it, of one instant with the rest.
func TestHotBackupOfATrimmedLog(t *testing.T) {
	testlevel.SkipQuick(t, "backs up a large log")
	t.Parallel()
	dir, store := t.TempDir(), "file://"+filepath.ToSlash(t.TempDir())
	data := filepath.Join(dir, "data")
	s := serve(t, dir)
	for i := range 40 {
		s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"%d@x.io"},"properties":{"n":%d}}`, i%20, i))
	}
	// An erasure begins a new segment, so that the first one is trimmed once the
	// checkpoints are beyond it.
	s.console("DELETE", "/profiles/"+s.event(`{"event_type":"gone","user":{"email":"gone@x.io"}}`), "", nil)
	s.until("msg=erased")
	early := "file://" + filepath.ToSlash(t.TempDir())
	if code, out, errs := muster(t, "", "backup", "--data", data, "--to", early); code != 0 {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	s.stop()
	s = serve(t, dir, "--trim-log", "--checkpoint-interval", "100ms")
	more := 0
	eventually.Succeeds(t, func() error {
		s.event(fmt.Sprintf(`{"event_type":"more","user":{"email":"%d@x.io"}}`, more%20))
		more++
		if _, err := os.Stat(filepath.Join(data, "log/p0/start")); err != nil {
			return fmt.Errorf("the log was not trimmed\n%s", s.log())
		}
		return nil
	})
	events := s.send("busy", 2)
	for range 2 {
		before := int(events.acknowledged.Load())
		if code, out, errs := muster(t, "", "backup", "--data", data, "--to", store); code != 0 {
			t.Fatalf("%d %s %s", code, out, errs)
		}
		restoredTo := t.TempDir()
		if code, out, errs := muster(t, "", "restore", "--from", store, "--data", filepath.Join(restoredTo, "data")); code != 0 {
			t.Fatalf("restore: %d %s %s", code, out, errs)
		}
		if code, out, errs := muster(t, "", "check", "--data", filepath.Join(restoredTo, "data"), "--deep", "--temp", t.TempDir()); code != 0 {
			t.Errorf("what was restored: %d %s %s", code, out, errs)
		}
		r := restored(t, filepath.Join(dir, "credentials.json"), store)
		if n, m := r.events("seen"), r.events("more"); n != 40 || m != more {
			t.Errorf("%d events, and %d of %d", n, m, more)
		}
		r.untilEvents("busy", before)
		r.untilMembers("seen", 20)
		r.untilMembers("more", min(more, 20))
		r.untilMetric(fmt.Sprintf("muster_history_rows %d", 40+more+r.events("busy")))
		if strings.Contains(r.log(), "lacks events") {
			t.Errorf("history was rebuilt\n%s", r.log())
		}
		r.stop()
	}
	events.stop()
	acknowledged := int(events.acknowledged.Load())
	s.stop()
	// What is left of the log continues a backup from before it was trimmed.
	r := restored(t, filepath.Join(dir, "credentials.json"), early, "--log", filepath.Join(data, "log"))
	r.untilEvents("seen", 40)
	r.untilEvents("more", more)
	r.untilEvents("busy", acknowledged)
	r.stop()
	// Where the log begins follows from its segments.
	flip(t, filepath.Join(data, "log/p0/start"))
	if code, out, errs := muster(t, "", "check", "--data", data); code != 3 || !strings.Contains(out, "log/p0/start is damaged") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if code, out, errs := muster(t, "", "repair", "--data", data); code != 0 {
		t.Errorf("%d %s %s", code, out, errs)
	}
	// History has to be there: the log lacks its rows.
	ok(t, os.Truncate(filepath.Join(data, "history.duckdb"), 20_000))
	if code, out, errs := muster(t, "", "check", "--data", data); code != 4 || !strings.Contains(out, "the log was trimmed") {
		t.Errorf("%d %s %s", code, out, errs)
	}
}

// TestBackupSchedule: a server with --backup-to makes backups by itself.
func TestBackupSchedule(t *testing.T) {
	testlevel.SkipQuick(t, "waits for the schedule")
	t.Parallel()
	dir, store := t.TempDir(), "file://"+filepath.ToSlash(t.TempDir())
	s := serve(t, dir, "--backup-to", store, "--backup-interval", "1s")
	made := func(n int) {
		t.Helper()
		eventually.Holds(t, "a backup", func() bool { return strings.Count(s.log(), "made a backup") >= n })
	}
	metrics := map[string][]string{}
	s.export(metrics) // sends an event
	made(strings.Count(s.log(), "made a backup") + 2)
	if _, there := metrics["muster_backup_newest_timestamp_seconds"]; !there {
		t.Error("no metrics")
	}
	s.stop()
	// One that a wrong clock named is not waited for.
	manifests := filepath.Join(strings.TrimPrefix(store, "file://"), "backup", "manifests")
	names, err := os.ReadDir(manifests)
	ok(t, err)
	right, wrong := names[len(names)-1].Name(), "20990101T000000Z.json"
	ok(t, os.Rename(filepath.Join(manifests, right), filepath.Join(manifests, wrong)))
	s = serve(t, dir, "--backup-to", store, "--backup-interval", "1s")
	s.until("is of a time that has not come yet")
	s.until(wrong)
	if at := s.metric("muster_backup_newest_timestamp_seconds"); at > 4e9 {
		t.Errorf("the newest backup is of %v", at)
	}
	ok(t, os.Rename(filepath.Join(manifests, wrong), filepath.Join(manifests, right)))
	made(strings.Count(s.log(), "made a backup") + 1)
	s.stop()
	r := restored(t, filepath.Join(dir, "credentials.json"), store)
	r.untilEvents("seen", 1)
	r.stop()
	if code, _, errs := muster(t, "", "serve", "--data", t.TempDir(), "--backup-to", "x"); code != 2 || !strings.Contains(errs, "--backup-to") {
		t.Errorf("%d %s", code, errs)
	}
	if code, _, errs := muster(t, "", "serve", "--data", t.TempDir(), "--backup-to", store, "--backup-interval", "1ms"); code != 2 || !strings.Contains(errs, "--backup-interval") {
		t.Errorf("%d %s", code, errs)
	}
}

// TestKilledDuringBackup: a server, or the command, that is killed during a backup
// leaves the older ones restorable, loses nothing, and the next backup is whole.
func TestKilledDuringBackup(t *testing.T) {
	testlevel.SkipQuick(t, "kills many processes")
	t.Parallel()
	dir, store := t.TempDir(), "file://"+filepath.ToSlash(t.TempDir())
	data := filepath.Join(dir, "data")
	r := rand.New(rand.NewPCG(3, 4))
	acknowledged := 0
	for round := range rounds(2, 20) {
		s := serve(t, dir, "--checkpoint-interval", "200ms")
		s.untilEvents("busy", acknowledged)
		if code, _, errs := muster(t, "", "backup", "--data", data, "--to", store); code != 0 {
			t.Fatalf("round %d: %d %s", round, code, errs)
		}
		sure := acknowledged
		events := s.send("busy", 2)
		for _, kill := range []string{"the command", "the server"} {
			cmd := command("backup", "--data", data, "--to", store)
			ok(t, cmd.Start())
			time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond) // the moment of a kill is random
			if kill == "the server" {
				s.kill()
			} else {
				ok(t, cmd.Process.Kill())
			}
			late := time.AfterFunc(patience, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
			_ = cmd.Wait()
			if !late.Stop() {
				t.Fatalf("round %d: a backup continues %v after %s was killed", round, patience, kill)
			}
		}
		events.stop()
		acknowledged += int(events.acknowledged.Load())
		if round%5 == 0 {
			back := restored(t, filepath.Join(dir, "credentials.json"), store)
			back.untilEvents("busy", sure)
			back.stop()
		}
	}
	s := serve(t, dir)
	s.untilEvents("busy", acknowledged)
	if code, _, errs := muster(t, "", "backup", "--data", data, "--to", store); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	s.stop()
	back := restored(t, filepath.Join(dir, "credentials.json"), store)
	back.untilEvents("busy", acknowledged)
	back.stop()
}

// TestRestoreWithTheLogThatIsLeft: a backup and what is left of the log have everything
// that was acknowledged, however much else was lost.
func TestRestoreWithTheLogThatIsLeft(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	base, store := t.TempDir(), "file://"+filepath.ToSlash(t.TempDir())
	s := serve(t, base, "--checkpoint-interval", "100ms")
	for i := range 40 {
		s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"%d@x.io"}}`, i))
	}
	if code, out, errs := muster(t, "", "backup", "--data", filepath.Join(base, "data"), "--to", store); code != 0 {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	for i := range 30 {
		s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"later-%d@x.io"}}`, i))
	}
	s.kill()
	segment := one(t, filepath.Join(base, "data/log/p0/*.log"))
	b, err := os.ReadFile(segment)
	ok(t, err)
	for name, damage := range map[string]func(log string){
		"only the log is left":              func(string) {},
		"and its meta file is lost":         func(log string) { ok(t, os.Remove(filepath.Join(log, "meta"))) },
		"and a record of before is damaged": func(log string) { damageByte(t, filepath.Join(log, "p0", filepath.Base(segment)), 2000) },
	} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			ok(t, os.CopyFS(log, os.DirFS(filepath.Join(base, "data/log"))))
			damage(log)
			r := restored(t, filepath.Join(base, "credentials.json"), store, "--log", log)
			if n := r.events("seen"); n != 70 {
				t.Errorf("%d events", n)
			}
			r.untilMembers("seen", 70)
			r.stop()
		})
	}
	refused := func(damage func(log string), want string) (left []string) {
		t.Helper()
		log := filepath.Join(t.TempDir(), "log")
		ok(t, os.CopyFS(log, os.DirFS(filepath.Join(base, "data/log"))))
		damage(log)
		data := filepath.Join(t.TempDir(), "data")
		if code, _, errs := muster(t, "", "restore", "--from", store, "--data", data, "--log", log); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%d %s", code, errs)
		}
		ok(t, filepath.WalkDir(data, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				left = append(left, filepath.Base(path))
			}
			return err
		}))
		if code, _, errs := muster(t, "", "restore", "--from", store, "--data", data); code != 0 {
			t.Errorf("without the log: %d %s", code, errs)
		}
		return left
	}
	// A record behind the backup, well before the end of the log.
	behind := int64(strings.Index(string(b), "later-2@x.io"))
	refused(func(log string) { damageByte(t, filepath.Join(log, "p0", filepath.Base(segment)), behind) }, "does not continue the backup")
	other := t.TempDir()
	serve(t, other).stop()
	// Closed, so that it says how far it went, and then cut short in a record that the
	// backup lacks.
	s = serve(t, base)
	s.stop()
	refused(func(log string) {
		b, err := os.ReadFile(segment)
		ok(t, err)
		ok(t, os.Truncate(filepath.Join(log, "p0", filepath.Base(segment)), int64(strings.Index(string(b), "later-20@x.io"))))
	}, "records are missing")
	left := refused(func(log string) {
		ok(t, os.RemoveAll(log))
		ok(t, os.CopyFS(log, os.DirFS(filepath.Join(other, "data/log"))))
	}, "the backup is of log")
	if slices.Sort(left); !slices.Equal(left, []string{"LOCK", "RESTORING", "meta"}) {
		t.Errorf("a log of another directory was refused after these were restored: %q", left)
	}
}

// damageByte damages a byte of a file.
func damageByte(t *testing.T, path string, at int64) {
	t.Helper()
	b, err := os.ReadFile(path)
	ok(t, err)
	b[at] ^= 0x55
	ok(t, os.WriteFile(path, b, 0o600))
}
