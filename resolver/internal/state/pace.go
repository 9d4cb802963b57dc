package state

import (
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The pace of Pebble's compactions. One of a second's work that is done in one go takes a
// processor for that second, and where there are few of them requests wait for it. One that
// rests in between ends later, and the next finds more to merge: less is written over again.
const (
	// compactionRatio is how many times as long as it works a compaction rests.
	compactionRatio = 4
	// compactionWork is how long it works before it rests.
	compactionWork = 250 * time.Microsecond
	// compactionRest is the longest pause. One that does not end sooner is due to work during
	// which others had the processor.
	compactionRest = 5 * time.Millisecond
	// manyRuns is how many tables one key may have to be looked up in, of those that
	// checkpoints wrote since the last compaction, for there to be no haste.
	manyRuns = 8
)

// compactionCategory is how Pebble names what a compaction writes, to the file system.
const compactionCategory vfs.DiskWriteCategory = "pebble-compaction"

// Haste makes compactions work without a pause until done is called: somebody waits for them.
func (d *Disk) Haste() (done func()) {
	if d == nil {
		return func() {}
	}
	d.waiting.Add(1)
	return func() { d.waiting.Add(-1) }
}

// HasRuns says in how many tables that no compaction has merged yet a key may be.
func (d *Disk) HasRuns(n int) {
	if d != nil {
		d.behind.Store(n >= manyRuns)
	}
}

// pacedFile is a table that a compaction writes. It has one writer.
type pacedFile struct {
	vfs.File
	disk  *Disk
	since time.Time // when the work under way began
}

// Write implements [vfs.File].
func (f *pacedFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	if worked := time.Since(f.since); worked >= compactionWork { // it is the processor's time that counts
		if f.disk.waiting.Load() == 0 && !f.disk.behind.Load() {
			f.disk.rest(min(compactionRest, compactionRatio*worked))
		}
		f.since = time.Now()
	}
	return n, err
}
