package file

import (
	"sync/atomic"
	"time"
)

// counters of one partition.
type counters struct {
	appended, appendedBytes, batches            atomic.Uint64
	refusedFull, refusedTooLarge, refusedFailed atomic.Uint64
	refusedNoSpace                              atomic.Uint64
	fsyncs, fsyncNanos, cutBytes                atomic.Uint64
}

// Stats is a snapshot of what the log did since it was opened, over all
// partitions.
type Stats struct {
	// QueueRecords and QueueBytes wait to be durable now.
	QueueRecords int
	QueueBytes   int64
	// Appended counts the records made durable, AppendedBytes their bytes
	// without framing, Batches the group commits they went into.
	Appended, AppendedBytes, Batches uint64
	// RefusedFull, RefusedTooLarge, RefusedNoSpace and RefusedFailed count the
	// records that were not stored, or not acknowledged, by reason.
	RefusedFull, RefusedTooLarge, RefusedNoSpace, RefusedFailed uint64
	// Fsyncs counts the fsyncs of segment data, FsyncTime is their sum.
	Fsyncs    uint64
	FsyncTime time.Duration
	// CutBytes were cut off torn tails by Open.
	CutBytes uint64
	// Segments is the number of segment files, DiskBytes their size.
	Segments  int
	DiskBytes int64
	// NoSpace is set while some partition found no space for its last batch.
	NoSpace bool
	// Failed is set when a write or an fsync has failed.
	Failed bool
}
