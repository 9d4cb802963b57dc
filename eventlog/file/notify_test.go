package file

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/eventually"
)

// told has the errors that a [eventlog.Failer] got.
type told struct{ err chan error }

func (f told) AppendFailed(err error) { f.err <- err }

// TestAppendThen: records queued without waiting are read in order. The log calls the failer of
// a record that does not become durable once, with the reason, and that of no other record.
func TestAppendThen(t *testing.T) {
	t.Parallel()
	free, now := int64(24<<10), time.UnixMilli(0) // room for the first records
	opts := smallOptions(fullFS{vfs.NewMem(), &free})
	opts.Now = func() time.Time { return now }
	l := mustOpen(t, "log", opts)
	f := told{make(chan error, 100)}
	var kept [][]byte
	for i := range int64(30) {
		kept = append(kept, payload(i, 200))
		if off, err := l.AppendThen(0, kept[i], f); err != nil || off != i {
			t.Fatal(off, err)
		}
	}
	mustAppend(t, l, 0, payload(30, 10)) // all before it are durable then
	mustHold(t, l, 0, 0, append(kept, payload(30, 10)))
	if len(f.err) > 0 {
		t.Fatalf("the failer got an error of a durable record: %v", <-f.err)
	}

	queued := 0
	for range 40 {
		if _, err := l.AppendThen(0, payload(31, 900), f); err == nil {
			queued++
		} else if !errors.Is(err, eventlog.ErrNoSpace) {
			t.Fatal(err)
		}
	}
	refused := 0
	eventually.Holds(t, "each record that was queued is durable, or its failer got an error", func() bool {
		for len(f.err) > 0 {
			if err := <-f.err; !errors.Is(err, eventlog.ErrNoSpace) {
				t.Fatal(err)
			}
			refused++
		}
		// Asked again each time: some become durable after they were queued.
		_, end, _ := l.Bounds(t.Context(), 0)
		return refused+int(end-31) == queued
	})
	if _, err := l.AppendThen(0, make([]byte, 9<<10), f); !errors.Is(err, eventlog.ErrTooLarge) {
		t.Fatal(err)
	}
	mustClose(t, l)
	if len(f.err) > 0 {
		t.Fatalf("told twice: %v", <-f.err)
	}
	if _, err := l.AppendThen(0, payload(1, 1), f); !errors.Is(err, eventlog.ErrClosed) {
		t.Fatal(err)
	}
}

// TestNextAtHand: what came with one commit is at hand after its first record, and nothing
// that must be waited for.
func TestNextAtHand(t *testing.T) {
	t.Parallel()
	l := mustOpen(t, "log", smallOptions(vfs.NewMem()))
	var kept [][]byte
	for i := range int64(10) {
		kept = append(kept, payload(i, 50))
		mustAppend(t, l, 0, kept[i])
	}
	r, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w := r.(eventlog.Window)
	if _, ok := w.NextAtHand(); ok {
		t.Fatal("a record is at hand of a reader that has read none")
	}
	got := []eventlog.Entry{mustNext(t, r)}
	for {
		e, ok := w.NextAtHand()
		if !ok {
			break
		}
		got = append(got, e)
	}
	if len(got) != len(kept) {
		t.Fatalf("%d records at hand, want %d", len(got), len(kept))
	}
	for i, e := range got { // all of them are valid still
		if e.Offset != int64(i) || string(e.Data) != string(kept[i]) {
			t.Fatalf("record %d: offset %d", i, e.Offset)
		}
	}
	mustAppend(t, l, 0, payload(10, 50))
	if e := mustNext(t, r); e.Offset != 10 {
		t.Fatalf("offset %d after what was at hand, want 10", e.Offset)
	}
}
