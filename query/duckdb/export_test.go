package duckdb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

// accounted is a batch of records in which each record is of another account.
func accounted(from, to int64) *query.Batch {
	b := new(query.Batch)
	historytest.FillRecords(b, 0, from, to)
	account := func(o int64) uint64 { return 1000 + uint64(o*o%7) }
	for i, o := range b.Offset {
		b.Account[i] = account(o)
	}
	for i := range b.Aliases {
		b.Aliases[i].Account = account(b.Aliases[i].Offset)
	}
	for i := range b.Transitions {
		// One record may be of several accounts: a tick is.
		b.Transitions[i].Account = account(b.Transitions[i].Key.Offset + int64(b.Transitions[i].Key.Seq))
	}
	return b
}

// describeAll is everything a batch has for accounts of a partition, in order.
func describeAll(b *query.Batch, part, of int) (out []string) {
	ours := func(a uint64) bool { return int(a%uint64(of)) == part }
	for i := range b.Rows() {
		if ours(b.Account[i]) {
			out = append(out, fmt.Sprintf("event %d %d.%d %d %d %s %s %s", b.Account[i], b.Offset[i], b.Index[i], b.Ordinal[i], b.TimeMs[i],
				b.EventType.At(i), b.Properties.At(i), b.IdempotencyKey.At(i)))
		}
	}
	for _, a := range b.Aliases {
		if ours(a.Account) {
			out = append(out, fmt.Sprintf("%+v", a))
		}
	}
	for _, x := range b.Transitions {
		if ours(x.Account) {
			out = append(out, fmt.Sprintf("%+v", x))
		}
	}
	return out
}

// openSmall opens a store whose groups and pieces have a few rows.
func openSmall(t *testing.T, rng *rand.Rand) *Store {
	s, err := Open(filepath.Join(t.TempDir(), "history.duckdb"), Options{MemoryLimitBytes: 256 * mb, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.groupRows, s.exportPiece = 1+rng.IntN(500), 80+rng.IntN(200)
	return s
}

// export collects a partition, and checks that batches follow each other.
func export(t *testing.T, s *Store, partition int, from, to int64) *query.Batch {
	t.Helper()
	all, next := &query.Batch{Partition: partition, From: from, To: to}, from
	err := s.Export(t.Context(), query.Cut{Partition: partition, UpTo: to}, from, func(b *query.Batch) error {
		if err := b.Check(); err != nil {
			return err
		}
		if b.From != next || b.To <= b.From || b.Partition != partition {
			return fmt.Errorf("records %d to %d of partition %d after %d", b.From, b.To, b.Partition, next)
		}
		next = b.To
		for i := range b.Rows() {
			all.Account, all.Offset, all.Index = append(all.Account, b.Account[i]), append(all.Offset, b.Offset[i]), append(all.Index, b.Index[i])
			all.Ordinal, all.TimeMs = append(all.Ordinal, b.Ordinal[i]), append(all.TimeMs, b.TimeMs[i])
			all.EventType.Append(b.EventType.At(i))
			all.Properties.Append(b.Properties.At(i))
			all.IdempotencyKey.Append(b.IdempotencyKey.At(i))
		}
		all.Aliases, all.Transitions = append(all.Aliases, b.Aliases...), append(all.Transitions, b.Transitions...)
		return nil
	})
	if err != nil || next != to {
		t.Fatalf("exported to %d of %d: %v", next, to, err)
	}
	return all
}

func wantSame(t *testing.T, what string, have, want []string) {
	t.Helper()
	for i := range max(len(have), len(want)) {
		switch {
		case i >= len(have):
			t.Fatalf("%s: %s is missing", what, want[i])
		case i >= len(want):
			t.Fatalf("%s: %s is too much", what, have[i])
		case have[i] != want[i]:
			t.Fatalf("%s: %s, want %s", what, have[i], want[i])
		}
	}
}

// failing is a store in which an append fails at times, before or after it was
// done.
type failing struct {
	*Store
	rng *rand.Rand
}

var errInjected = errors.New("injected")

func (f *failing) Append(ctx context.Context, b *query.Batch) error {
	if f.rng.IntN(12) == 0 {
		return errInjected
	}
	if err := f.Store.Append(ctx, b); err != nil {
		return err
	}
	if f.rng.IntN(12) == 0 {
		return errInjected
	}
	return nil
}

// TestCopyL2: what is copied to several partitions is what was there, once, also
// when the copying is cut off and begun again (L2).
func TestCopyL2(t *testing.T) {
	t.Parallel()
	for seed := range testlevel.Count[uint64](1, 3) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			from := openSmall(t, rng)
			const end = 700
			for at := int64(0); at < end; {
				to := min(at+1+rng.Int64N(200), end)
				if err := from.Append(t.Context(), accounted(at, to)); err != nil {
					t.Fatal(err)
				}
				at = to
			}
			all := accounted(0, end)
			wantSame(t, "export", describeAll(export(t, from, 0, 0, end), 0, 1), describeAll(all, 0, 1))
			wantSame(t, "export of the middle", describeAll(export(t, from, 0, 123, 456), 0, 1), describeAll(accounted(123, 456), 0, 1))
			// What was erased is not copied.
			if err := from.Erase(t.Context(), query.EraseQuery{Cut: query.Cut{UpTo: end}, Account: 1001, Ordinals: []uint32{8, 15, 22}}); err != nil {
				t.Fatal(err)
			}
			all = export(t, from, 0, 0, end)

			partitions := 1 + rng.IntN(4)
			to := openSmall(t, rng)
			var done query.Counts
			for n := 0; ; n++ {
				var err error
				last := int64(0)
				done, err = query.Copy(t.Context(), from, &failing{to, rng}, query.CopyOptions{UpTo: end, Partitions: partitions, Rows: 50 + rng.IntN(400), Progress: func(at int64) {
					if at < last {
						t.Errorf("progress goes from %d to %d", last, at)
					}
					last = at
				}})
				if err == nil {
					break
				}
				if !errors.Is(err, errInjected) || n > 500 {
					t.Fatal(err)
				}
			}
			if done.Events != int64(all.Rows()) || done.Aliases != int64(len(all.Aliases)) || done.Transitions != int64(len(all.Transitions)) {
				t.Errorf("%+v for %d, %d, %d", done, all.Rows(), len(all.Aliases), len(all.Transitions))
			}
			for i := range partitions {
				wantSame(t, fmt.Sprintf("partition %d", i), describeAll(export(t, to, i, 0, end), 0, 1), describeAll(all, i, partitions))
			}
			// A copy of something else is noticed.
			if _, err := query.Copy(t.Context(), from, to, query.CopyOptions{UpTo: end - 1, Partitions: partitions}); !errors.Is(err, query.ErrCopyDiffers) {
				t.Errorf("a target that is ahead: %v", err)
			}
			if err := from.Erase(t.Context(), query.EraseQuery{Cut: query.Cut{UpTo: end}, Account: 1001, Ordinals: []uint32{1, 2, 4, 11, 16, 25, 36, 64, 100, 81}}); err != nil {
				t.Fatal(err)
			}
			if _, err := query.Copy(t.Context(), from, to, query.CopyOptions{UpTo: end, Partitions: partitions}); !errors.Is(err, query.ErrCopyDiffers) {
				t.Errorf("a source that has changed: %v", err)
			}
			if err := from.Export(t.Context(), query.Cut{UpTo: end + 1}, 0, nil); !errors.Is(err, query.ErrGap) {
				t.Errorf("beyond the position: %v", err)
			}
		})
	}
}
