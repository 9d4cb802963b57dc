package file

import (
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Defaults of [Options].
const (
	DefaultPartitions     = 1
	DefaultSegmentBytes   = 48 << 20
	DefaultMaxRecordBytes = 16 << 20
	DefaultQueueBytes     = 64 << 20
	DefaultQueueRecords   = 1 << 16
	DefaultTailBytes      = 8 << 20
)

const (
	maxPartitions = 4096
	// maxRecordLimit keeps the first word of a record below the bit that marks
	// a batch head.
	maxRecordLimit = 1 << 30
	minSegment     = 4 << 10
)

// Options configure a log. The zero value of a field means its default.
type Options struct {
	// FS is where the files are; vfs.Default when nil.
	FS vfs.FS
	// Partitions is fixed when the log is created.
	Partitions int
	// SegmentBytes is the size at which a new segment file is begun. A segment
	// takes at least one batch, however large. A start reads the last one, which at
	// the default has some 600,000 events; a redaction keeps what it replaces in one in memory.
	SegmentBytes int64
	// MaxRecordBytes is the largest record Append takes.
	MaxRecordBytes int
	// QueueBytes bounds the records of a partition that wait to be durable.
	// It counts their bytes with 16 bytes of framing each.
	QueueBytes int64
	// QueueRecords bounds the same records by number.
	QueueRecords int
	// TailBytes is how much durable data a partition keeps in memory for
	// readers at the tail. Up to one block more is kept.
	TailBytes int64
	// Logger receives start-up, cut and failure lines; nil means silent.
	Logger *slog.Logger
	// OnSync receives how long each fsync of a batch took. It is called by the
	// partition's writer and must not block.
	OnSync func(partition int, took time.Duration)
	// Now is the clock for OnSync, Stats and the pause between tries on a full
	// disk; time.Now when nil.
	Now func() time.Time
	// Rand is the source of segment salts; crypto/rand when nil.
	Rand io.Reader
	// Check is asked before Open changes anything, with the bounds that each
	// partition will have and the identity of the log, 0 for a new one. Its error is
	// Open's.
	Check func(id uint64, bounds []Bounds) error
}

// Bounds are those of one partition: the offset of the oldest record kept, and
// the one that follows the newest.
type Bounds struct {
	Start, End int64
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Partitions == 0 {
		o.Partitions = DefaultPartitions
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.MaxRecordBytes == 0 {
		o.MaxRecordBytes = DefaultMaxRecordBytes
	}
	if o.QueueBytes == 0 {
		o.QueueBytes = max(DefaultQueueBytes, int64(o.MaxRecordBytes)+frameOverhead)
	}
	if o.QueueRecords == 0 {
		o.QueueRecords = DefaultQueueRecords
	}
	if o.TailBytes == 0 {
		o.TailBytes = DefaultTailBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	return o
}

// Validate reports the first option that cannot work, after defaults.
func (o Options) Validate() error {
	o = o.withDefaults()
	switch {
	case o.Partitions < 1 || o.Partitions > maxPartitions:
		return fmt.Errorf("Partitions is %d, must be between 1 and %d", o.Partitions, maxPartitions)
	case o.SegmentBytes < minSegment:
		return fmt.Errorf("SegmentBytes is %d, must be at least %d", o.SegmentBytes, minSegment)
	case o.MaxRecordBytes < 1 || o.MaxRecordBytes > maxRecordLimit:
		return fmt.Errorf("MaxRecordBytes is %d, must be between 1 and %d", o.MaxRecordBytes, maxRecordLimit)
	case o.QueueBytes < int64(o.MaxRecordBytes)+frameOverhead:
		return fmt.Errorf("QueueBytes is %d, must be at least MaxRecordBytes + %d = %d, or the largest record never fits",
			o.QueueBytes, frameOverhead, int64(o.MaxRecordBytes)+frameOverhead)
	case o.QueueRecords < 1:
		return fmt.Errorf("QueueRecords is %d, must be at least 1", o.QueueRecords)
	case o.TailBytes < 0:
		return fmt.Errorf("TailBytes is %d, must not be negative", o.TailBytes)
	}
	return nil
}

// fillBytes is how far space is written ahead of its use. An fsync of bytes
// that lie in space already written needs no change of the file's metadata and
// takes about half the time.
func (o *Options) fillBytes() int64 {
	return min(1<<20, o.SegmentBytes/8)
}
