package duckdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

func TestEraseLeavesTheOthers(t *testing.T) { historytest.EraseLeavesTheOthers(t, grouped(300)) }

// TestEraseIsOfTheFile: after an erase and a close, the file does not show what
// the erased profile's newest events said.
func TestEraseIsOfTheFile(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "history.duckdb")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &query.Batch{To: 3000}
	for o := range b.To {
		b.Account, b.Offset, b.Index = append(b.Account, 1), append(b.Offset, o), append(b.Index, 0)
		b.Ordinal, b.TimeMs = append(b.Ordinal, uint32(o%2)), append(b.TimeMs, o)
		b.EventType.Append([]byte("e"))
		b.Properties.Append(fmt.Appendf(nil, `{"note":"%s"}`, []string{"kept as it is", "a secret of the erased"}[o%2]))
		b.IdempotencyKey.Append(nil)
	}
	if err := s.Append(ctx, b); err != nil {
		t.Fatal(err)
	}
	if err := s.Erase(ctx, query.EraseQuery{Cut: query.Cut{UpTo: 3000}, Account: 1, Ordinals: []uint32{1}}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Timeline(ctx, query.TimelineQuery{Cut: query.Cut{UpTo: 3000}, Account: 1, Ordinals: []uint32{0, 1}, Limit: 10_000}); err != nil || len(got) != 1500 {
		t.Fatalf("%d events are left, %v", len(got), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + ".wal"} {
		file, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(file, []byte("a secret of the erased")) {
			t.Errorf("%s still shows it", filepath.Base(name))
		}
	}
}
