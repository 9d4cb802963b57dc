package state

import (
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// How Pebble's compactions and flushes are throttled: what they write of tables. One that does
// a second's work in one go takes a processor for that second, and requests wait for it where
// processors are few. A compaction that pauses in between ends later, and the next finds more
// to merge: it rewrites less.
const (
	// tableRatio is the length of a pause relative to the work before.
	tableRatio = 4
	// tableWork is how long the work is before a pause.
	tableWork = 250 * time.Microsecond
	// tablePause is the longest pause. One that does not end sooner is due to work during
	// which others had the processor.
	tablePause = 5 * time.Millisecond
	// manyRuns is a number of tables in which one key may have to be looked up, of those that
	// checkpoints wrote since the last compaction. From it on compactions are not throttled.
	manyRuns = 8
)

// How Pebble names what compactions and flushes write, to the file system.
const (
	compactionCategory vfs.DiskWriteCategory = "pebble-compaction"
	flushCategory      vfs.DiskWriteCategory = "pebble-memtable-flush"
)

// Urgent makes compactions and flushes work without a pause until done is called, for a caller
// that waits for them.
func (d *Disk) Urgent() (done func()) {
	if d == nil {
		return func() {}
	}
	d.urgent.Add(1)
	return func() { d.urgent.Add(-1) }
}

// noteRuns notes whether there are so many tables that compactions are behind.
func (d *Disk) noteRuns(db *pebble.DB) {
	d.behind.Store(db.Metrics().Levels[0].Sublevels >= manyRuns)
}

// throttledFile is a table that a compaction or a flush writes. It has one writer.
type throttledFile struct {
	vfs.File
	disk  *Disk
	since time.Time // when the work under way began
}

// Write implements [vfs.File].
func (f *throttledFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	if worked := time.Since(f.since); worked >= tableWork { // it is the processor's time that counts
		if f.disk.urgent.Load() == 0 && !f.disk.behind.Load() {
			f.disk.pause(min(tablePause, tableRatio*worked))
		}
		f.since = time.Now()
	}
	return n, err
}
