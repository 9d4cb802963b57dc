package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"
)

// Errors an implementation of [Log] returns, wrapped.
var (
	// ErrQueueFull means the bounded append queue has no room. The record was
	// not stored; the caller may try again later (HTTP: 503 with Retry-After).
	ErrQueueFull = errors.New("log queue is full")
	// ErrNoSpace means the file system is full. The record was not stored and
	// never will be; the log continues, and takes records again when there is space
	// (HTTP: 503 with Retry-After).
	ErrNoSpace = errors.New("no space left for the log")
	// ErrFailed means the log cannot make records durable any more (a write or
	// an fsync failed). Whether this record survives is unknown. Nothing is
	// acknowledged until the process is restarted and the log recovered.
	ErrFailed = errors.New("log has failed")
	// ErrUncertain means the log could not confirm the record in time. It may
	// be stored, or become so later. The log itself continues; the caller may try
	// again with the same record id (HTTP: 503).
	ErrUncertain = errors.New("log could not confirm the record")
	// ErrClosed means the log was closed.
	ErrClosed = errors.New("log is closed")
	// ErrTooLarge means the record is over the log's record limit.
	ErrTooLarge = errors.New("record is too large")
	// ErrTrimmed means the offset asked for is below the oldest one kept.
	ErrTrimmed = errors.New("offset is below the start of the log")
)

// OutOfSpace makes the error of a full file system, or of a quota that is used up, an
// [ErrNoSpace]; others stay what they are. It is only for errors after which nothing of the
// record or file is kept.
func OutOfSpace(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}

// CorruptError is damage to stored records that is no torn tail.
type CorruptError struct {
	// File is the path of the damaged file, or the topic and partition.
	File string
	// Position is the byte position in the file.
	Position int64
	// Offset is the offset of the first record that cannot be read.
	Offset int64
	// Reason says what was expected and what was found.
	Reason string
	// Remedy is what to do, a clause; empty for what only a backup can bring back.
	Remedy string
}

func (e *CorruptError) Error() string {
	place := ""
	if e.Position != 0 || e.Offset != 0 {
		place = fmt.Sprintf(" at byte %d (record offset %d)", e.Position, e.Offset)
	}
	return fmt.Sprintf("%s is damaged%s: %s. %s; see \"When something is damaged\" in docs/operations/failures.md",
		e.File, place, e.Reason, cmp.Or(e.Remedy, "Restore it from a backup"))
}

// Entry is one record as read from a log.
type Entry struct {
	// Offset is the record's place in its partition.
	Offset int64
	// Data is the record. It is valid until the reader's next call and must
	// not be changed.
	Data []byte
}

// Log is a durable, ordered, partitioned log. All methods may be called from
// several goroutines at once.
type Log interface {
	// Partitions is the number of partitions, fixed for the life of the log.
	Partitions() int
	// Append stores the record at the end of the partition and returns its
	// offset once it is durable. data is not kept after Append returns. When
	// ctx ends first, Append returns its error and the record may or may not
	// become durable.
	Append(ctx context.Context, partition int, data []byte) (offset int64, err error)
	// Read returns a reader whose first entry is the one at offset from. from
	// may be the end of the log, not beyond it. A from below the start is
	// ErrTrimmed.
	Read(partition int, from int64) (Reader, error)
	// Bounds returns the offset of the oldest record kept and the offset that
	// follows the newest durable record. Everything acknowledged before the
	// call is below end.
	Bounds(ctx context.Context, partition int) (start, end int64, err error)
	// Trim lets the log drop records below the offset. It keeps more than it
	// must: space is freed a file at a time.
	Trim(partition int, before int64) error
	// Close stops appends, waits for those under way and closes the files.
	Close() error
}

// Notifier is a [Log] that can append a record without making the caller wait until it is
// durable. The reader of the log sees that, so a caller that waits for the reader waits once,
// not twice.
type Notifier interface {
	// AppendThen queues the record, as Append does, and returns the offset that it gets if
	// it becomes durable. If it does not, the log calls f once, with the error that Append
	// would return, and another record may get the offset.
	AppendThen(partition int, data []byte, f Failer) (offset int64, err error)
}

// Failer takes the error of a record that did not become durable. AppendFailed must not wait.
type Failer interface{ AppendFailed(err error) }

// Window is a [Reader] that can return the next record only if it is in memory.
type Window interface {
	// NextAtHand is Next if that neither waits nor reads from a disk; ok is false
	// otherwise. The data of entries that it returned stays valid until Next is called.
	NextAtHand() (e Entry, ok bool)
}

// Reader reads one partition in order. It is used by one goroutine.
type Reader interface {
	// Next returns the next durable record and waits for it when the reader is
	// at the end. It returns ctx's error, ErrClosed after the log was closed,
	// ErrTrimmed when its place was trimmed, or a *CorruptError.
	Next(ctx context.Context) (Entry, error)
	// Close releases the reader's files.
	Close() error
}
