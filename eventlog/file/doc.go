// Package file keeps an [eventlog.Log] in segment files of one directory.
//
// # Organisation
//
//	LOCK                          held while the log is open
//	meta                          partition count and identity of the log
//	p0/start                      offset of the oldest segment kept (after a trim)
//	p0/00000000000000000000.log   segment: records from the offset in its name
//	p0/00000000000000000000.redacted
//	                              what stands in the place of batches redacted in it
//
// A partition has one writer goroutine. It takes every record that waits (up
// to a few MiB), writes them as one batch, compressed, and makes them durable with one
// fsync; the next batch gathers meanwhile. Records wait, and stay for readers
// after they are durable, in a chain of memory blocks: a reader at the tail is fed
// from the chain, a reader that lags reads the file. A record is handed to a reader
// only after its fsync.
//
// The bytes are described in docs/formats.md.
//
// # Recovery
//
// Everything rests on one rule: a partition never has more than one batch
// that is written but not durable. A batch, a mark or a seal is written only
// after everything before it is durable, and its head is bound by checksum to
// its segment's random salt and to its own byte position. So a valid head at
// position q proves that every byte of the segment below q was durable. A
// segment file proves the same for the segment before it.
//
// At start-up the last segment is read to the first batch that is not whole,
// at position p. If a valid head lies anywhere behind p, the bytes at p were
// durable and are damaged: [eventlog.CorruptError]. Otherwise p begins the one
// batch that was under way. It was not acknowledged, and is cut: overwritten with
// zeros. Zeros behind the last batch are the normal state, since space is written
// ahead of its use.
//
// So that the newest batch is covered too, the writer puts a mark (a head
// without a body) behind it as soon as it has nothing else to do. A mark
// proves what is before it and is overwritten by the next batch. Close and
// start-up make the mark durable.
//
// A last batch without a mark may be there only because the page cache
// outlived a failed fsync. Start-up writes it again before it counts as
// durable.
//
// Segments before the last are checked at start-up by their heads, names and
// links to each other; their records are checked when they are read. A sealed
// last segment means that its successor is missing.
//
// # Redaction
//
// Redact takes bytes out of records of segments that are no longer written. The batches
// that they are in are made again without these bytes, and made durable first, in a file
// beside the segment (the sidecar, replaced whole), which is read in their place. Then their
// bytes are overwritten where they stand, but for their heads. So a crash at any instant
// leaves a record as it was, or as it is to be, however much was overwritten. An empty file
// (.redacting) is there from before until all is overwritten: start-up and the next
// redaction overwrite again what the sidecar lists.
//
// What is left of a batch says by what it was replaced, so that a sidecar that is missing is
// noticed and named, and one that was replaced since a reader looked at it is looked at again.
//
// # Limits
//
// After a power loss the newest batch may lack its mark. Damage to exactly
// that batch, between the crash and the start, looks like a torn write and is
// cut; so does damage to the page in which small batches stand with the mark
// behind them, as long as the file end has not noted them. Nothing that is written before the damage can tell the two apart
// without a second fsync per batch. The rule holds for storage that keeps what
// a successful fsync promised; the checksums are CRC-32C and guard against
// faults, not against an adversary who can write the files.
//
// Start-up first looks, at all partitions, and asks Options.Check; only then does it
// mend. So a start that is refused has changed nothing.
//
// # A full disk
//
// Space is written ahead of its use, so a full file system shows before a byte of a
// batch, a mark or a seal is written: when the file grows or a new one is made. Then
// the batch and all that wait behind it are refused with [eventlog.ErrNoSpace], the
// offsets they were to have are given to what comes next, and a new segment that was
// begun is removed, durably. Nothing is on disk that was not there before but zeros
// behind the end, so the rule above holds. Half a second later the next append tries
// again. Without space for it there is no mark behind the newest batch, which is
// allowed. Storage that runs out of space in bytes that were written before (such as
// copy-on-write file systems) makes the log fail instead.
//
// # Failure
//
// When any other write or an fsync fails, the log has failed until it is opened again:
// the fsync is not repeated, nothing later is acknowledged, and nothing more
// is written. Readers keep reading what was durable.
//
// # Locks
//
// partition.trimMu comes before partition.redactMu and partition.mu; no other
// locks are held together.
package file
