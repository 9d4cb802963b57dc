package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/musterhq/muster/eventlog"
)

// TestLinkNamesARemovedSegment: a copy of a log whose file was removed is refused, by
// the name of that file and what to do.
func TestLinkNamesARemovedSegment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := Open(filepath.Join(dir, "log"), Options{SegmentBytes: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i := range 300 {
		if _, err := l.Append(context.Background(), 0, fmt.Appendf(nil, "record %d %s", i, strings.Repeat("x", 200))); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "log", "p0", segmentName(0))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err = l.Link(filepath.Join(dir, "copy"))
	var damaged *eventlog.CorruptError
	if !errors.As(err, &damaged) || damaged.File != path || !strings.HasPrefix(err.Error(), path+" is damaged: ") || !strings.Contains(err.Error(), "Put it back") {
		t.Error(err)
	}
}

// TestLinkBesideNotedEnds: a copy is made while the log first notes how far its records go.
func TestLinkBesideNotedEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := Open(filepath.Join(dir, "log"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Append(t.Context(), 0, []byte("record")); err != nil {
		t.Fatal(err)
	}
	var noted sync.WaitGroup
	noted.Go(func() {
		if err := l.NoteEnds(); err != nil {
			t.Error(err)
		}
	})
	if _, err := l.Link(filepath.Join(dir, "copy")); err != nil {
		t.Error(err)
	}
	noted.Wait()
}
