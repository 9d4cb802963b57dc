package columns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// sampleEvents is a multiple of 12: accounts, types and currencies take turns.
const sampleEvents = 96

// sample are events of two accounts and two types; the keys of one have as many values as
// there are events, those of the other three.
func sample() *Builder {
	b := NewBuilder()
	for i := range sampleEvents {
		b.Add(uint64(1+i%2), []byte([]string{"bought", "seen"}[i/2%2]), int64(i), uint32(i%17), int64(i)*1000,
			fmt.Appendf(nil, `{"value":%d,"currency":%q}`, i, []string{"EUR", "USD", "CHF"}[i%3]))
	}
	return b
}

// question is what sum of values and which currency the events of account 1 have.
func question() query.MatchQuery {
	return query.MatchQuery{Account: 1, Cut: query.Cut{UpTo: sampleEvents}, EventType: "bought", As: query.AsMicros, Value: []string{"value"},
		Where: []segment.Predicate{{Path: []string{"currency"}, Op: segment.OpEq, Values: []segment.Value{{Kind: segment.ValueString, Str: "EUR"}}}}}
}

// answer asks a set; whole tells that history was not asked for a part.
func answer(t testing.TB, s *Set) (got []string, whole bool) {
	t.Helper()
	q := question()
	whole = true
	err := s.Matches(context.Background(), &q, nil, func(from, to int64) error { whole = false; return nil }, func(b *query.MatchBlock) error {
		for i, o := range b.Ordinal {
			got = append(got, fmt.Sprint(o, b.TimeMs[i], b.Micros[i]))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, whole
}

// TestDamagedByteIsNoticed: with any one byte of a file changed, or cut off behind it, a
// question has the same answer, or history is asked and the file removed.
func TestDamagedByteIsNoticed(t *testing.T) {
	dir := t.TempDir()
	positions := map[int]int64{0: sampleEvents}
	s, err := Open(dir, "log", positions, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(0, 0, sampleEvents, sample()); err != nil {
		t.Fatal(err)
	}
	want, whole := answer(t, s)
	if !whole || len(want) != sampleEvents/12 {
		t.Fatalf("%d events, whole: %v", len(want), whole)
	}
	s.Close()
	names, err := filepath.Glob(dir + "/*" + fileSuffix)
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	same, noticed := 0, 0
	for i := range data {
		for _, cut := range []bool{false, true} {
			damaged := slices.Clone(data)
			if damaged[i] ^= 1 << (i % 8); cut {
				damaged = damaged[:i]
			}
			if err := os.WriteFile(names[0], damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(dir, "log", positions, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			got, whole := answer(t, s)
			if whole && len(s.Files(0)) > 0 {
				if !slices.Equal(got, want) {
					t.Fatalf("byte %d, cut %v: %v", i, cut, got)
				}
				same++
			} else {
				if _, err := os.Stat(names[0]); !errors.Is(err, os.ErrNotExist) || len(got) > 0 {
					t.Fatalf("byte %d, cut %v: the file is still there (%v), and answered %v", i, cut, err, got)
				}
				noticed++
			}
			s.Close()
		}
	}
	t.Logf("of %d kinds of damage %d were noticed, %d of parts that were not read", 2*len(data), noticed, same)
	if noticed < len(data) {
		t.Error("that tells nothing")
	}
}

// FuzzOpenFile: no bytes make a reader panic.
func FuzzOpenFile(f *testing.F) {
	path := filepath.Join(f.TempDir(), "seed")
	if err := writeFile(path, header{"log", 0, 0, sampleEvents, sampleEvents}, sample()); err != nil {
		f.Fatal(err)
	}
	seed, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := openFile(path)
		if err != nil {
			return
		}
		defer x.done()
		for _, e := range x.accounts {
			_, _ = NewBuilder().addAccount(x, e, newScratch())
		}
		q := question()
		for _, account := range []uint64{1, 2, 3} {
			g, err := x.group(account, q.EventType)
			if err != nil || g == nil {
				continue
			}
			if v, kept, err := x.view(g, wanted(&q), newScratch()); err == nil && kept {
				if err := v.scan(&q, wanted(&q), 0, sampleEvents, nil, newScratch(), func(*query.MatchBlock) error { return nil }); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestForgetRemovesUnlistedFiles: a file that could not be removed when it left the list, such as
// one that became part of a larger, is removed when an account is forgotten: it may have its events.
func TestForgetRemovesUnlistedFiles(t *testing.T) {
	t.Parallel()
	s := openEmpty(t)
	for partition := range 2 {
		b := NewBuilder()
		b.Add(1, []byte("bought"), 3, 1, 1, nil)
		if err := s.Add(partition, 0, 10, b); err != nil {
			t.Fatal(err)
		}
	}
	names := func() (out []string) {
		entries, err := os.ReadDir(s.dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return out
	}
	listed := names()
	left, err := os.ReadFile(filepath.Join(s.dir, listed[0]))
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "0-0000000000000000-0000000000000005.col"), left, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(0, 2); err != nil {
		t.Fatal(err)
	}
	if got := names(); !slices.Equal(got, listed) {
		t.Errorf("%q, want %q", got, listed)
	}
	if err := s.Forget(0, 1); err != nil {
		t.Fatal(err)
	}
	if got := names(); !slices.Equal(got, listed[1:]) {
		t.Errorf("%q, want %q", got, listed[1:])
	}
}
