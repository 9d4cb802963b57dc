package duckdb

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

func TestEraseLeavesTheOthers(t *testing.T) {
	t.Parallel()
	historytest.EraseLeavesTheOthers(t, grouped(300))
}

// TestEraseIsOfTheFile: after an erase, with the store open and after a close, no file
// shows what the erased profile's events said, in whole row groups or in those that
// wait; the others' rows are all there, and the store continues: it appends, reads, and
// erases again. A rewrite that was broken off leaves nothing.
func TestEraseIsOfTheFile(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	path := filepath.Join(dir, "history.duckdb")
	if err := os.WriteFile(path+rewriteSuffix, []byte("broken off: a secret of the erased"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.groupRows = 2048
	at := int64(0)
	add := func(n int64) {
		t.Helper()
		b := &query.Batch{From: at, To: at + n}
		for ; at < b.To; at++ {
			b.Account, b.Offset, b.Index = append(b.Account, 1), append(b.Offset, at), append(b.Index, 0)
			b.Ordinal, b.TimeMs = append(b.Ordinal, uint32(at%3)), append(b.TimeMs, at)
			b.EventType.Append([]byte("e"))
			b.Properties.Append(fmt.Appendf(nil, `{"note":"%s","n":%d}`, []string{"kept as it is", "a secret of the erased", "another secret"}[at%3], at))
			b.IdempotencyKey.Append(fmt.Appendf(nil, "%s-%d", []string{"kept", "secret-key", "other-key"}[at%3], at))
		}
		if err := s.Append(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	left := func(o uint32) int {
		t.Helper()
		got, err := s.Timeline(ctx, query.TimelineQuery{Cut: query.Cut{UpTo: at}, Account: 1, Ordinals: []uint32{o}, Limit: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		return len(got)
	}
	erase := func(o uint32) {
		t.Helper()
		if err := s.Erase(ctx, query.EraseQuery{Cut: query.Cut{UpTo: at}, Account: 1, Ordinals: []uint32{o}}); err != nil {
			t.Fatal(err)
		}
	}
	shows := func(what string) (in []string) {
		t.Helper()
		names, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range names {
			file, err := os.ReadFile(filepath.Join(dir, x.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(file, []byte(what)) {
				in = append(in, x.Name())
			}
		}
		return in
	}
	for range 6 {
		add(500) // in several appends, as they come
	}
	if len(shows("a secret of the erased")) == 0 {
		t.Fatal("the test does not find what is stored")
	}
	erase(1)
	if a, b, c := left(0), left(1), left(2); a != 1000 || b != 0 || c != 1000 {
		t.Fatalf("%d, %d and %d events are left", a, b, c)
	}
	for _, what := range []string{"a secret of the erased", "secret-key"} {
		if in := shows(what); in != nil {
			t.Errorf("%v show %q", in, what)
		}
	}
	add(3000)
	erase(2)
	if a, b, c := left(0), left(1), left(2); a != 2000 || b != 1000 || c != 0 {
		t.Fatalf("%d, %d and %d events are left", a, b, c)
	}
	if in := shows("another secret"); in != nil {
		t.Errorf("%v show another secret", in)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if in := append(shows("another secret"), shows("other-key")...); in != nil {
		t.Errorf("%v show another secret after a close", in)
	}
	if s, err = Open(path, Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if a, b := left(0), left(1); a != 2000 || b != 1000 {
		t.Fatalf("%d and %d events are left after a start", a, b)
	}
}

// TestEraseWaitsForStatements: a statement under way keeps the files from being
// exchanged, not for good, and the erase that gave up is repeated.
func TestEraseWaitsForStatements(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.duckdb")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := &query.Batch{To: 1, Account: []uint64{1}, Offset: []int64{0}, Index: []uint32{0}, Ordinal: []uint32{1}, TimeMs: []int64{1}}
	b.EventType.Append([]byte("e"))
	b.Properties.Append([]byte(`{"a":"secret"}`))
	b.IdempotencyKey.Append(nil)
	if err := s.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	_, done, err := s.reader(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	q := query.EraseQuery{Cut: query.Cut{UpTo: 1}, Account: 1, Ordinals: []uint32{1}}
	if err := s.Erase(context.Background(), q); err == nil {
		t.Fatal("the file was exchanged under a statement")
	}
	done()
	if err := s.Erase(context.Background(), q); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil || bytes.Contains(file, []byte("secret")) {
		t.Errorf("the file still shows it (%v)", err)
	}
}
