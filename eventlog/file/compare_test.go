package file

import (
	"context"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
)

// TestCompare: two logs that continue one are the same as far as both go, whatever was
// taken out of records or damaged since, and are told apart from the first record that
// differs on.
func TestCompare(t *testing.T) {
	t.Parallel()
	redact := func(l *Log) {
		if err := l.Redact(context.Background(), 0, []eventlog.Redaction{anna(1), anna(4)}); err != nil {
			t.Fatal(err)
		}
	}
	add := func(text ...string) func(*Log) {
		return func(l *Log) {
			for _, text := range text {
				mustAppend(t, l, 0, []byte(text))
			}
		}
	}
	roll := func(l *Log) {
		if err := l.Roll(0); err != nil {
			t.Fatal(err)
		}
	}
	// In the first segment's record 1, and in the last one's first record.
	one := batchHeaderSize + len(pack(nil, appendFrame(nil, 0, []byte("record 0 of Anna and Bert"))))
	damaged, damagedLast := segmentHeaderSize+one+batchHeaderSize+20, segmentHeaderSize+batchHeaderSize+20
	for name, x := range map[string]struct {
		dir, other []func(*Log)
		damage     int // a byte of the other's first segment
		last       int // or of its last one
		fork       int64
	}{
		"equal":                            {fork: -1},
		"the other goes on":                {other: []func(*Log){add("a", "b")}, fork: -1},
		"the other ends before":            {dir: []func(*Log){add("a", "b"), roll, add("c")}, fork: -1},
		"redacted in the other":            {dir: []func(*Log){add("a")}, other: []func(*Log){redact, add("a")}, fork: -1},
		"redacted in the first":            {dir: []func(*Log){redact}, fork: -1},
		"redacted in both":                 {dir: []func(*Log){redact}, other: []func(*Log){redact}, fork: -1},
		"damaged":                          {damage: damaged, fork: -1},
		"other text of a length":           {dir: []func(*Log){add("a", "b", "c")}, other: []func(*Log){add("a", "x", "c")}, fork: 8},
		"text of another length":           {dir: []func(*Log){add("a", "b", "c")}, other: []func(*Log){add("a", "xyz", "c")}, fork: 8},
		"also where the other is damaged":  {dir: []func(*Log){add("a", "b")}, other: []func(*Log){add("a", "x")}, damage: damaged, fork: 8},
		"behind damage":                    {dir: []func(*Log){add("a", "b")}, other: []func(*Log){add("a", "x")}, last: damagedLast, fork: 8},
		"also where the other is redacted": {dir: []func(*Log){add("a", "b")}, other: []func(*Log){add("a", "x"), redact}, fork: 8},
		"in another segment":               {dir: []func(*Log){add("a"), roll, add("b")}, other: []func(*Log){add("a"), roll, add("b")}, fork: 8},
	} {
		fsys := vfs.NewMem()
		if err := redactLog(t, fsys).Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := vfs.Clone(fsys, fsys, "log", "other"); err != nil {
			t.Fatal(err)
		}
		for dir, steps := range map[string][]func(*Log){"log": x.dir, "other": x.other} {
			l := mustOpen(t, dir, Options{FS: fsys})
			for _, step := range steps {
				step(l)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		isDamaged := map[string]bool{}
		for path, at := range map[string]int{"other/p0/" + segmentName(0): x.damage, "other/p0/" + segmentName(6): x.last} {
			if at > 0 {
				b := snapshot(t, fsys, "other")[path]
				b[at] ^= 1
				writeFile(t, fsys, path, b)
				isDamaged[path] = true
			}
		}
		err := Compare(fsys, "log", "other", 0, isDamaged)
		var forked *ForkedError
		if !errors.As(err, &forked) {
			forked = &ForkedError{Offset: -1}
		}
		if forked.Offset != x.fork || x.fork < 0 && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
