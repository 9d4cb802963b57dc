package capture

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var t0 = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

func open(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func reopen(t testing.TB, s *Store) *Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, s.o)
}

func mail(i int) Message {
	return Message{
		ID: fmt.Sprintf("m%d", i), Channel: []string{"email", "sms", "push"}[i%3], To: fmt.Sprintf("user%d@example.org", i%5), From: "news@example.com",
		Subject: "Grüße", HTML: "<p>" + fmt.Sprint(i), Text: "x", Body: "b", Headers: map[string]string{"X-A": "1"}, SendID: "snd", At: t0.Add(time.Duration(i) * time.Second),
	}
}

func add(t testing.TB, s *Store, m Message, want int) {
	t.Helper()
	if n, err := s.Add(m); err != nil || n != want {
		t.Fatalf("%s: %d attempts, %v; want %d", m.ID, n, err, want)
	}
}

func ids(t testing.TB, s *Store, f Filter) (all []string) {
	t.Helper()
	for cursor := uint64(0); ; {
		page, next, err := s.List(f, 7, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page {
			all = append(all, m.ID)
		}
		if next == 0 {
			return all
		}
		cursor = next
	}
}

func TestMessagesSurviveARestartAsTheyWere(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir()})
	for i := range 20 {
		add(t, s, mail(i), 1)
	}
	again := mail(3)
	again.At, again.Subject = t0.Add(time.Hour), "changed"
	add(t, s, again, 2)
	add(t, s, again, 3)
	for round := range 2 {
		m, ok, err := s.Get("m3")
		want := mail(3)
		if err != nil || !ok || m.Subject != want.Subject || m.HTML != want.HTML || m.Text != "x" || m.Body != "b" || m.To != want.To || m.From != want.From ||
			m.Channel != want.Channel || m.Headers["X-A"] != "1" || m.SendID != "snd" || !m.At.Equal(want.At) || m.Attempts != 3 || !m.LastAt.Equal(again.At) || m.Seq != 4 {
			t.Errorf("round %d: %+v, %v, %v", round, m, ok, err)
		}
		if _, ok, _ := s.Get("m99"); ok {
			t.Error("m99 is there")
		}
		s = reopen(t, s)
	}
	add(t, s, mail(20), 1)
	add(t, s, mail(4), 2)
	if got := ids(t, s, Filter{}); len(got) != 21 || got[0] != "m20" || got[20] != "m0" {
		t.Errorf("%v", got)
	}
}

func TestListFiltersAndPages(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir()})
	for i := range 60 {
		add(t, s, mail(i), 1)
	}
	for _, f := range []Filter{{}, {Channel: "sms"}, {To: "USER2@example.org"}, {Channel: "email", To: "user0@example.org"}, {Channel: "none"}} {
		var want []string
		for i := 59; i >= 0; i-- {
			if m := mail(i); (f.Channel == "" || f.Channel == m.Channel) && (f.To == "" || strings.EqualFold(f.To, m.To)) {
				want = append(want, m.ID)
			}
		}
		if got := ids(t, s, f); !slices.Equal(got, want) {
			t.Errorf("%+v:\n got %v\nwant %v", f, got, want)
		}
	}
	// A cursor stays good while messages arrive.
	page, next, err := s.List(Filter{}, 10, 0)
	if err != nil || len(page) != 10 {
		t.Fatal(err)
	}
	add(t, s, mail(60), 1)
	if page, _, _ = s.List(Filter{}, 10, next); page[0].ID != "m49" {
		t.Errorf("%s follows m50", page[0].ID)
	}
	if page, _, _ := s.List(Filter{}, 0, 0); len(page) != DefaultPage {
		t.Errorf("%d by default", len(page))
	}
	for _, limit := range []int{-1, MaxPage + 1} {
		if _, _, err := s.List(Filter{}, limit, 0); err == nil {
			t.Errorf("limit %d was taken", limit)
		}
	}
}

func TestRingByCount(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), MaxMessages: 10, MaxBytes: 64 << 10})
	for i := range 500 {
		add(t, s, mail(i), 1)
	}
	for range 2 {
		if got := ids(t, s, Filter{}); len(got) != 10 || got[0] != "m499" || got[9] != "m490" {
			t.Errorf("%v", got)
		}
		// Files of forgotten messages go, although there is room for them.
		if st := s.Stats(); st.Messages != 10 || st.Bytes > 3*(64<<10)/16 || st.Bytes != onDisk(t, s.o.Dir) {
			t.Errorf("%+v, %d on disk", st, onDisk(t, s.o.Dir))
		}
		s = reopen(t, s)
	}
	// Forgotten, added again, and still there after a restart.
	add(t, s, mail(485), 1)
	s = reopen(t, s)
	if got := ids(t, s, Filter{}); got[0] != "m485" || len(got) != 10 {
		t.Errorf("%v", got)
	}
	if m, _, _ := s.Get("m485"); m.Attempts != 1 {
		t.Errorf("%d attempts", m.Attempts)
	}
}

func onDisk(t *testing.T, dir string) (total int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		st, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		total += st.Size()
	}
	return total
}

func TestRingByBytes(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), MaxBytes: 256 << 10})
	for i := range 300 {
		m := mail(i)
		m.HTML = strings.Repeat("<p>", 1000)
		add(t, s, m, 1)
		if st := s.Stats(); st.Bytes > 256<<10 {
			t.Fatalf("%+v after %d", st, i)
		}
	}
	got := ids(t, s, Filter{})
	if len(got) < 60 || got[0] != "m299" {
		t.Errorf("%d are kept", len(got))
	}
	if s = reopen(t, s); !slices.Equal(ids(t, s, Filter{}), got) {
		t.Error("a restart changed what is kept")
	}
	// Repeats alone may not grow the files without end either.
	for i := range 5000 {
		if _, err := s.Add(mail(299)); err != nil {
			t.Fatal(i, err)
		}
	}
	if st := s.Stats(); st.Bytes > 256<<10 || st.Bytes != onDisk(t, s.o.Dir) {
		t.Errorf("%+v", st)
	}
}

func TestLongTextsAreCut(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir()})
	m := mail(0)
	m.HTML, m.Subject = strings.Repeat("ä", MaxText), strings.Repeat("\x00", 3*MaxField)
	m.Text = strings.Repeat("\x01", MaxText+1)
	m.Body = m.Text
	for i := range 100 {
		m.Headers[fmt.Sprint(i)] = "x"
	}
	m.Headers["long"] = strings.Repeat("x", MaxField)
	add(t, s, m, 1)
	got, ok, err := s.Get("m0")
	if err != nil || !ok || !got.Truncated || len(got.HTML) != MaxText || len(got.Headers) != MaxHeaders || len(got.Subject) > MaxField || got.Headers["long"] != "" {
		t.Errorf("%v, %v, %d, %d headers", err, ok, len(got.HTML), len(got.Headers))
	}
	for _, id := range []string{"", strings.Repeat("x", MaxField+1), "\xff"} {
		if _, err := s.Add(Message{ID: id}); err == nil {
			t.Errorf("id %.10q was taken", id)
		}
	}
}

// Whatever byte a kill tore the file at, the messages before it are there and
// the store continues.
func TestTornTail(t *testing.T) {
	src := open(t, Options{Dir: t.TempDir()})
	for i := range 2 {
		add(t, src, mail(i), 1)
	}
	path := src.mu.segments[0].path
	var ends []int64 // of each message
	for _, e := range src.mu.entries {
		ends = append(ends, e.offset+int64(e.size))
	}
	src.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for n := 0; n <= len(whole); n++ {
		name := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(name, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		want := 0
		for _, end := range ends {
			if int64(n) >= end {
				want++
			}
		}
		if got := s.Stats().Messages; got != want {
			t.Fatalf("cut at %d: %d messages, want %d", n, got, want)
		}
		// Shorter than what was torn: its remains must not follow it.
		add(t, s, Message{ID: "n"}, 1)
		s = reopen(t, s)
		if got := ids(t, s, Filter{}); len(got) != want+1 || got[0] != "n" || s.Stats().Damaged != 0 {
			t.Fatalf("cut at %d: then %v, %+v", n, got, s.Stats())
		}
		s.Close()
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, f := range files {
			os.Remove(f)
		}
	}
}

// A flipped byte hides one message, never shows a wrong one and never keeps the store
// from opening. No byte of the file is cut off, the log names it, and what is added
// later is there after another start.
func TestDamageAnywhere(t *testing.T) {
	src := open(t, Options{Dir: t.TempDir(), MaxBytes: 64 << 10})
	for i := range 40 {
		add(t, src, mail(i), 1)
	}
	all := src.Stats().Messages
	src.Close()
	paths, _ := filepath.Glob(filepath.Join(src.o.Dir, "*"))
	if len(paths) < 2 {
		t.Fatal("one segment only")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		dir := t.TempDir()
		victim := rng.IntN(len(paths))
		for i, p := range paths {
			b, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			if i == victim {
				b[rng.IntN(len(b))] ^= byte(1 + rng.IntN(255))
			}
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(p)), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var said bytes.Buffer
		path := filepath.Join(dir, filepath.Base(paths[victim]))
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, found, err := Check(dir); err != nil || len(found) != 1 || found[0].Path != path || found[0].Lost == 0 {
			t.Fatalf("round %d: check found %v, %v", round, found, err)
		}
		s, err := Open(Options{Dir: dir, MaxBytes: 64 << 10, Logger: slog.New(slog.NewTextHandler(&said, nil))})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		page, _, err := s.List(Filter{}, MaxPage, 0)
		if err != nil || s.Stats().Damaged != 1 {
			t.Fatalf("round %d: %v, %+v", round, err, s.Stats())
		}
		if n := len(page); n < all-1 {
			t.Fatalf("round %d: %d messages of %d", round, n, all)
		}
		if strings.Count(said.String(), path+" is damaged at byte ") != 1 {
			t.Fatalf("round %d: %s", round, said.String())
		}
		for _, m := range page {
			var i int
			fmt.Sscanf(m.ID, "m%d", &i)
			if want := mail(i); m.HTML != want.HTML || m.To != want.To {
				t.Fatalf("round %d: %+v", round, m)
			}
		}
		add(t, s, mail(1000), 1)
		if after, err := os.ReadFile(path); err == nil && !bytes.HasPrefix(after, before) {
			t.Fatalf("round %d: %s was changed", round, path)
		}
		s = reopen(t, s)
		if _, found, err := s.Get("m1000"); !found || err != nil {
			t.Fatalf("round %d: what was added is not found: %v", round, err)
		}
		s.Close()
	}
}

// Files that were put in from elsewhere, under their own name or behind another's
// records, are read without a panic; each message is there once, the newest first.
func TestFilesFromElsewhere(t *testing.T) {
	made := func(first, n int) []byte {
		s := open(t, Options{Dir: t.TempDir()})
		for i := range n {
			add(t, s, mail(first+i), 1)
		}
		path := s.mu.segments[0].path
		s.Close()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	own := made(0, 5)
	foreign := made(100, 3)
	for _, c := range []struct {
		name  string
		files [][]byte
		want  []string
	}{
		{"twice in one file", [][]byte{slices.Concat(own, own)}, []string{"m4", "m3", "m2", "m1", "m0"}},
		{"twice", [][]byte{own, own}, []string{"m4", "m3", "m2", "m1", "m0"}},
		{"three times", [][]byte{own, own, own}, []string{"m4", "m3", "m2", "m1", "m0"}},
		{"of another store behind", [][]byte{own, foreign}, []string{"m102", "m101", "m100", "m4", "m3", "m2", "m1", "m0"}},
		{"of another store before and behind", [][]byte{foreign, own, foreign}, []string{"m102", "m101", "m100", "m4", "m3", "m2", "m1", "m0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for i, b := range c.files {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("capture-%016x.seg", i+1)), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s := open(t, Options{Dir: dir})
			if got := ids(t, s, Filter{}); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
			page, next, err := s.List(Filter{}, 2, 0)
			for seen := map[uint64]bool{}; ; page, next, err = s.List(Filter{}, 2, next) {
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range page {
					if seen[m.Seq] {
						t.Errorf("%s has the number of another", m.ID)
					}
					seen[m.Seq] = true
				}
				if next == 0 {
					break
				}
			}
			for i := range 20 { // and they are let go of
				add(t, s, mail(1000+i), 1)
			}
			s.o.MaxMessages = 10
			add(t, s, mail(2000), 1)
			if got := ids(t, s, Filter{}); len(got) != 10 || got[0] != "m2000" {
				t.Errorf("%v", got)
			}
			s = reopen(t, s)
			if got := ids(t, s, Filter{}); len(got) != 10 || got[0] != "m2000" {
				t.Errorf("after a start: %v", got)
			}
		})
	}
}

// The store against a slice, with restarts at any time.
func TestStoreMatchesModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			r.Fatal(err)
		}
		limit := rapid.IntRange(1, 12).Draw(r, "limit")
		s, err := Open(Options{Dir: dir, MaxMessages: limit, MaxBytes: 1 << 20})
		if err != nil {
			r.Fatal(err)
		}
		defer func() { s.Close() }()
		type kept struct {
			id       string
			attempts int
		}
		var model []kept
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			if rapid.IntRange(0, 9).Draw(r, "restart") == 0 {
				s.Close()
				if s, err = Open(s.o); err != nil {
					r.Fatal(err)
				}
			}
			m := mail(rapid.IntRange(0, 20).Draw(r, "id"))
			i := slices.IndexFunc(model, func(k kept) bool { return k.id == m.ID })
			want := 1
			if i >= 0 {
				model[i].attempts++
				want = model[i].attempts
			} else {
				model = append(model, kept{m.ID, 1})
				model = model[max(0, len(model)-limit):]
			}
			if n, err := s.Add(m); err != nil || n != want {
				r.Fatalf("%s: %d, %v; want %d", m.ID, n, err, want)
			}
			page, _, err := s.List(Filter{}, MaxPage, 0)
			if err != nil || len(page) != len(model) {
				r.Fatalf("%d of %d, %v", len(page), len(model), err)
			}
			for j, m := range page {
				if k := model[len(model)-1-j]; m.ID != k.id || m.Attempts != k.attempts {
					r.Fatalf("%d: %s with %d, want %+v", j, m.ID, m.Attempts, k)
				}
			}
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), MaxMessages: 100, MaxBytes: 128 << 10})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				m := mail(i)
				m.ID = fmt.Sprintf("g%d-%d", g, i)
				if _, err := s.Add(m); err != nil {
					t.Error(err)
				}
				if _, _, err := s.List(Filter{Channel: "sms"}, 5, 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if st := s.Stats(); st.Messages != 100 {
		t.Errorf("%+v", st)
	}
	s.Close()
	if _, err := s.Add(mail(1)); err != ErrClosed {
		t.Error(err)
	}
	if _, _, err := s.List(Filter{}, 1, 0); err != ErrClosed {
		t.Error(err)
	}
}

// FuzzSegment: any bytes are read without a panic, and what is sound stays so
// when the rest is cut off.
func FuzzSegment(f *testing.F) {
	good := append([]byte(nil), segmentMagic[:]...)
	for _, p := range []struct {
		kind byte
		v    any
	}{{kindMessage, mail(1)}, {kindRepeat, repeat{"m1", t0}}, {9, "future"}, {kindMessage, mail(2)}} {
		rec, err := encodeRecord(p.kind, p.v)
		if err != nil {
			f.Fatal(err)
		}
		good = append(good, rec...)
	}
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(good[:9])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		count := func(b []byte) (n int, found scanned) {
			found = scan(b, func(m *Message, offset, size int) {
				n++
				if kind, _, s, err := nextRecord(b[offset:]); err != nil || kind != kindMessage || s != size || m.ID == "" {
					t.Fatalf("a message at %d is not there: %v", offset, err)
				}
			}, func(*repeat) { n++ })
			return n, found
		}
		n, found := count(b)
		if found.sound > len(b) || found.damage >= found.sound && found.damage > 0 || found.lost > found.sound || (found.damage >= 0) != (found.lost > 0) {
			t.Fatalf("of %d: %+v", len(b), found)
		}
		if found.sound >= len(segmentMagic) {
			if n2, again := count(b[:found.sound]); n2 != n || again.damage != found.damage || again.lost != found.lost || again.sound != found.sound {
				t.Fatalf("%+v, then %+v with %d messages of %d", found, again, n2, n)
			}
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	s := open(b, Options{Dir: b.TempDir()})
	m := mail(0)
	m.HTML = strings.Repeat("<p>text</p>", 400)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.ID = fmt.Sprint(i)
		if _, err := s.Add(m); err != nil {
			b.Fatal(err)
		}
	}
}
