// Package kafka keeps an [eventlog.Log] in one topic of Apache Kafka.
//
// # Organisation
//
// A partition of the log is a partition of the topic, a record is one message
// without key, headers and time, and its offset is Kafka's. Batches are encoded
// and read here, in Kafka's message format 2 (batch.go, scan.go); kafka-go
// carries them and knows the cluster. docs/formats.md has the bytes and the
// settings of the topic.
//
// Follow an append: [Log.Append] frames the record into the partition's open
// batch (partition.go). A sender takes the oldest batch and sends it as one
// produce request with acks=all (produce.go), so what waits together is made
// durable together. A second request goes out beside the first only when
// enough waits; Options.MaxInFlight bounds them. They overtake each other, so
// records appended at once have no order among them, whichever was first; a
// record appended after another was acknowledged always follows it.
//
// A reader has a connection of its own to the partition's leader and always
// one request on the way (reader.go, fetch.go), which the broker answers as
// soon as there is a record. Records are handed out as slices of the answer.
//
// A topic that a log was moved to counts from the offset that log ended at
// (base.go); inside this package offsets are Kafka's.
//
// The read barrier is [Log.Bounds]: the leader's end offset, asked for after
// the caller came; who waits at once shares a question (offsets.go).
//
// # What rides out what
//
// A broker that is lost, frozen or replaced as leader, too few replicas in
// sync, a cut connection: appends are repeated, readers go on where they were
// and barriers are asked again, at intervals of 20 ms to 1 s. Another leader is
// noticed within metadataTTL (leader.go), and ends what waits for the one
// before. After Options.AppendTimeout an append fails with
// [eventlog.ErrUncertain]: the record may be there, or turn up. The log goes
// on, unlike one in files, whose failure is final. [Log.Stats] tells for how
// long requests have been failing.
//
// # Duplicates
//
// An attempt that was not answered may have been stored, so a repeated batch
// can be in the log twice, with all its records; nothing else is ever
// duplicated. The state machine drops the second by its record id, as long as
// the id is among the newest 262,144 of the partition. Options.AppendTimeout
// ends repetitions before that many records can follow; an attempt that a
// frozen broker still holds can turn up later, when it is still the leader.
//
// # Damage
//
// Every record read is checked: the batch's CRC-32C, and that its offset is the
// one that follows. A gap, a transaction's batch, a compacted batch or bytes
// that are no batch are a [*eventlog.CorruptError] and stop the reader; nothing
// is skipped. Trim does nothing: the topic's retention decides.
//
// # Limits
//
// L1 rests on the topic: replicas on several brokers, min.insync.replicas, no
// unclean leader election. Kafka does not fsync each batch: with one broker an
// acknowledged record survives its process, not its machine losing power.
// [Open] refuses a topic with settings that break a promise.
//
// An end that is below what this log has seen itself is not believed: a broker
// that was frozen and does not know yet that another leads says such things.
// What only other nodes have seen is not known here, so in the moment such a
// broker wakes a barrier can miss records acknowledged to them.
//
// # Locks
//
// No two locks are held together.
package kafka
