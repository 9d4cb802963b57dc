package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/logbuffer"
)

// line is where a goroutine waits until the test lets it continue.
type line struct {
	at chan time.Duration
	on chan struct{}
}

func newLine() line { return line{make(chan time.Duration), make(chan struct{})} }

// wait is the goroutine's.
func (l line) wait(ctx context.Context, d time.Duration) error {
	select {
	case l.at <- d:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-l.on:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rests waits until the goroutine waits for d.
func (l line) rests(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case have := <-l.at:
		if have != d {
			t.Fatalf("it waits for %v instead of %v", have, d)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("it does not wait for %v", d)
	}
}

// turn lets the goroutine do its work once more, until it waits for d.
func (l line) turn(t *testing.T, d time.Duration) {
	t.Helper()
	l.on <- struct{}{}
	l.rests(t, d)
}

// noise is n bytes that take as much room where they are compressed.
func noise(seed, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b) // it never fails
	return b
}

// TestScrub: damage to closed segments, and files that are removed, are found while the
// log is in use, said once, and counted until they are put back; records are taken
// meanwhile, and the end of the log ends it.
func TestScrub(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l, err := file.Open(dir, file.Options{SegmentBytes: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	put := func(n int) {
		t.Helper()
		for i := range n {
			if _, err := l.Append(t.Context(), 0, fmt.Appendf(nil, "record %d %s", i, noise(i, 200))); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(400)
	segments, err := filepath.Glob(filepath.Join(dir, "p0", "*.log"))
	if err != nil || len(segments) < 4 {
		t.Fatalf("%d segments, %v", len(segments), err)
	}
	var said logbuffer.Buffer
	read, look := newLine(), newLine()
	s := newScrubber(l, slog.New(slog.NewTextHandler(&said, nil)))
	s.now = func() time.Time { return time.UnixMilli(0) }
	s.wait = func(ctx context.Context, d time.Duration) error {
		if d == scrubLook {
			return look.wait(ctx, d)
		}
		return read.wait(ctx, d)
	}
	var scrubbed atomic.Int64
	s.throttle = func(ctx context.Context, n int) error { scrubbed.Add(int64(n)); return ctx.Err() }
	s.start()
	written := func() string {
		var b bytes.Buffer
		s.write(&b)
		return b.String()
	}
	count := func(text string) int { return strings.Count(said.String(), text) }

	look.rests(t, scrubLook)
	read.rests(t, scrubFirst)
	read.turn(t, scrubEvery)
	if out := written(); !strings.Contains(out, "muster_log_damaged_files 0\n") || !strings.Contains(out, "muster_log_scrubs_total 1\n") || said.String() != "" {
		t.Fatalf("%s %s", out, said.String())
	}
	if total := l.Stats().DiskBytes; scrubbed.Load() < total/2 {
		t.Errorf("%d bytes were read of %d", scrubbed.Load(), total)
	}

	whole, err := os.ReadFile(segments[1])
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Clone(whole)
	bad[5000] ^= 1
	replace(t, segments[1], bad)
	put(50)
	read.turn(t, scrubEvery)
	read.turn(t, scrubEvery)
	if count("the log is damaged") != 1 || count(segments[1]) != 1 || count("at byte") != 1 || count("Restore it from a backup") != 1 {
		t.Errorf("%s", said.String())
	}
	if out := written(); !strings.Contains(out, "muster_log_damaged_files 1\n") {
		t.Error(out)
	}
	replace(t, segments[1], whole)
	read.turn(t, scrubEvery)
	read.turn(t, scrubEvery)
	if out := written(); !strings.Contains(out, "muster_log_damaged_files 0\n") {
		t.Error(out)
	}

	// Removed: the one that is written, and one that is closed.
	now, err := filepath.Glob(filepath.Join(dir, "p0", "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	last := now[len(now)-1]
	for _, path := range []string{last, segments[2]} {
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
	}
	look.turn(t, scrubLook)
	look.turn(t, scrubLook)
	look.turn(t, scrubLook)
	if count("is missing") != 2 || count(last) != 1 || count(segments[2]) != 1 {
		t.Errorf("%s", said.String())
	}
	if out := written(); !strings.Contains(out, "muster_log_damaged_files 2\n") {
		t.Error(out)
	}
	for _, path := range []string{last, segments[2]} {
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
	look.turn(t, scrubLook)
	look.turn(t, scrubLook)
	if out := written(); !strings.Contains(out, "muster_log_damaged_files 0\n") {
		t.Error(out)
	}

	// What is trimmed is no damage.
	if err := l.Trim(0, 200); err != nil {
		t.Fatal(err)
	}
	read.turn(t, scrubEvery)
	read.turn(t, scrubEvery)
	look.turn(t, scrubLook)
	look.turn(t, scrubLook)
	if out := written(); !strings.Contains(out, "muster_log_damaged_files 0\n") {
		t.Error(out, said.String())
	}
	s.stop()
}

// replace replaces a file at one instant.
func replace(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// endless is a log that is read for ever.
type endless struct{}

func (endless) Scrub(ctx context.Context, throttle func(context.Context, int) error, _ func(error)) error {
	for {
		if err := throttle(ctx, 1<<20); err != nil {
			return err
		}
	}
}

func (endless) Missing() ([]error, error) { return nil, errors.New("it cannot be looked up") }

func (endless) Noticed() []*eventlog.CorruptError { return nil }

// TestDamageThatIsMetIsCounted at once: by a reader, by a redaction, and by a copy for a
// backup; each file once, until a reading of all finds it whole.
func TestDamageThatIsMetIsCounted(t *testing.T) {
	for name, meet := range map[string]func(l *file.Log, dir string) error{
		"reader": func(l *file.Log, _ string) error {
			r, err := l.Read(0, 0)
			if err != nil {
				return err
			}
			defer r.Close()
			for err == nil {
				_, err = r.Next(t.Context())
			}
			return err
		},
		"redaction": func(l *file.Log, _ string) error {
			return l.Redact(t.Context(), 0, []eventlog.Redaction{{Offset: 50, Splices: []eventlog.Splice{{At: 0, Len: 3, New: []byte("y")}}}})
		},
		"backup": func(l *file.Log, dir string) error {
			links, err := l.Link(filepath.Join(dir, "links"))
			if err != nil {
				return err
			}
			return errors.Join(l.CheckLinked(t.Context(), filepath.Join(dir, "links"), links, nil, nil), os.RemoveAll(filepath.Join(dir, "links")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l, err := file.Open(filepath.Join(dir, "log"), file.Options{SegmentBytes: 16 << 10})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 400 {
				if _, err := l.Append(t.Context(), 0, fmt.Appendf(nil, "record %d %s", i, noise(i, 200))); err != nil {
					t.Fatal(err)
				}
			}
			// Opened again, it has no records in memory.
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if l, err = file.Open(filepath.Join(dir, "log"), file.Options{SegmentBytes: 16 << 10}); err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			s := newScrubber(l, nil)
			counted := func(want int) {
				t.Helper()
				var b bytes.Buffer
				s.write(&b)
				if !strings.Contains(b.String(), fmt.Sprintf("muster_log_damaged_files %d\n", want)) {
					t.Errorf("not %d: %s", want, b.String())
				}
			}
			segment := filepath.Join(dir, "log", "p0", "00000000000000000000.log")
			whole, err := os.ReadFile(segment)
			if err != nil {
				t.Fatal(err)
			}
			bad := bytes.Clone(whole)
			bad[bytes.Index(bad, []byte("record 50 "))] ^= 1
			replace(t, segment, bad)
			counted(0)
			for range 2 {
				var damaged *eventlog.CorruptError
				if err := meet(l, dir); !errors.As(err, &damaged) || damaged.File != segment {
					t.Fatal(err)
				}
				counted(1)
			}
			free := func(context.Context, int) error { return nil }
			if err := l.Scrub(t.Context(), free, func(error) {}); err != nil {
				t.Fatal(err)
			}
			counted(1)
			replace(t, segment, whole)
			if err := l.Scrub(t.Context(), free, func(error) {}); err != nil {
				t.Fatal(err)
			}
			counted(0)
		})
	}
}

// TestScrubEnds: a reading that is bounded by its rate ends at once at a stop.
func TestScrubEnds(t *testing.T) {
	s := newScrubber(endless{}, nil)
	reading := make(chan struct{})
	s.wait = func(ctx context.Context, d time.Duration) error {
		if d == scrubFirst {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	throttle, once := s.throttle, sync.OnceFunc(func() { close(reading) })
	s.throttle = func(ctx context.Context, n int) error {
		once()
		return throttle(ctx, n)
	}
	s.start()
	<-reading
	s.stop()
	if s.bytes.Load() == 0 || s.bytes.Load() > 1<<30 {
		t.Errorf("%d bytes", s.bytes.Load())
	}
}
