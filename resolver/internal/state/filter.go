package state

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/internal/background"
)

// yieldingFilter is a filter whose writer yields. Pebble hands it each key of each table in
// the goroutine that flushes or compacts, which makes no other pause: with it requests do not
// wait for a compaction's processor. Its files are those of the filter inside.
type yieldingFilter struct{ pebble.FilterPolicy }

// NewWriter implements [pebble.FilterPolicy].
func (p yieldingFilter) NewWriter(t pebble.FilterType) pebble.FilterWriter {
	return &yieldingWriter{FilterWriter: p.FilterPolicy.NewWriter(t)}
}

type yieldingWriter struct {
	pebble.FilterWriter
	keys int
}

// pieceKeys go into a table between two yields: some 200 µs.
const pieceKeys = 256

// AddKey implements [pebble.FilterWriter].
func (w *yieldingWriter) AddKey(key []byte) {
	if w.keys++; w.keys%pieceKeys == 0 {
		background.Yield()
	}
	w.FilterWriter.AddKey(key)
}
