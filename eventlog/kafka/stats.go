package kafka

import (
	"sync/atomic"
	"time"
)

// counters of one partition, from when the log was opened. [Stats] adds up those of all.
type counters struct {
	// Records acknowledged, their bytes without framing, the record batches they went
	// into, and the records that were not stored or not acknowledged, by reason.
	appended, appendedBytes, batches            atomic.Uint64
	refusedFull, refusedTooLarge, refusedFailed atomic.Uint64

	// Produce requests acknowledged, the time that they took together, repetitions,
	// and requests that failed.
	produces, produceNanos, retries, failures atomic.Uint64

	// Read barriers asked of brokers; answers with records, and their bytes as they came.
	questions, fetches, fetchedBytes atomic.Uint64

	// What readers got from memory without a fetch.
	ownBatches, ownRecords atomic.Uint64

	// Connections of readers that were made again, and other leaders, the first included.
	reconnects, leaderChanges atomic.Uint64
}

// Stats is a snapshot of what the log did since it was opened, over all
// partitions.
type Stats struct {
	// QueueRecords and QueueBytes wait to be acknowledged now.
	QueueRecords int
	QueueBytes   int64
	AppendStats
	ReadStats
	// LeaderChanges counts other leaders, the first of each partition included.
	LeaderChanges uint64
	// Failing is how long at least one kind of request of a partition has been
	// failing without a success; 0 when all is well.
	Failing time.Duration
	// LastError is what went wrong last, nil before, and LastErrorAt when.
	LastError   error
	LastErrorAt time.Time
}

// AppendStats count what the senders of records did.
type AppendStats struct {
	// Appended counts the records acknowledged, AppendedBytes their bytes
	// without framing, Batches the record batches they went into.
	Appended, AppendedBytes, Batches uint64
	// RefusedFull, RefusedTooLarge and RefusedFailed count the records that
	// were not stored, or not acknowledged, by reason.
	RefusedFull, RefusedTooLarge, RefusedFailed uint64
	// Produces counts the produce requests acknowledged, ProduceTime is their
	// sum. ProduceFailures counts those that were not, Retries the repetitions.
	Produces                 uint64
	ProduceTime              time.Duration
	ProduceFailures, Retries uint64
}

// ReadStats count what the readers of records did, and what they asked of brokers.
type ReadStats struct {
	// Questions counts the read barriers asked of brokers.
	Questions uint64
	// Fetches counts the answers with records, FetchedBytes their bytes as
	// they came, Reconnects the connections of readers that had to be made
	// again.
	Fetches, FetchedBytes, Reconnects uint64
	// OwnBatches and OwnRecords were handed to readers from memory.
	OwnBatches, OwnRecords uint64
}
