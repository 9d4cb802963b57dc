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
// A reader has a connection of its own to the partition's leader (reader.go,
// fetch.go). While it has to catch up there is always one request on the way, and
// at the end of the log one that the broker answers as soon as there is a record.
// Records are handed out as slices of the answer. What this log itself has
// written the reader takes from memory instead.
//
// # Own batches
//
// One reader of each partition, the first that comes near the end, is its
// follower (own.go, follow.go). For it, batches that Kafka has acknowledged to
// this log stay in memory until it comes to them. It takes such a batch when the
// batch has the record it is to read next, and fetches otherwise, until what
// follows is in memory again. So a node that writes alone fetches nothing, and the
// broker neither reads nor sends what it was just sent. What holds:
//
//   - Only what Kafka has acknowledged (acks=all, with the base offset in its
//     answer) comes to memory: every replica in sync has it, a consumer could fetch
//     it, and it would get these bytes at this offset.
//   - A batch is handed over if it has the very offset that the follower stands at
//     and for no other reason: not its age, not that this node owns the partition.
//     So records come in the order of their offsets, each once, whichever node wrote
//     them. Another node's record, an own batch whose answer was lost and that was
//     written twice, a start, a batch that found no room: all are gaps and are
//     fetched. A node that was frozen and wakes up may have anything in memory; what
//     others wrote meanwhile lies between, and is read first.
//   - No reader waits for memory alone. A follower that learns of an offset beyond
//     its own, by an acknowledgement or a barrier, and has not got it from memory
//     fetches at once, or 5 ms later if answers are due that may bring it. Without
//     news it asks the broker 200 ms after its last batch, and from then on as any
//     reader.
//   - Options.OwnBytes bounds what is kept, buffers counted whole and the batch in the
//     follower's hand aside. What finds no room is fetched.
//   - A leader that is replaced withdraws nothing that it has acknowledged (see
//     Limits). Retention may take what is in memory; the follower still hands it over.
//
// A topic that a log was moved to counts from the offset that log ended at
// (base.go, origin.go); inside this package offsets are Kafka's.
//
// The read barrier is [Log.Bounds]: the leader's end offset, asked for after
// the caller came; callers that wait at the same time share a question
// (offsets.go).
//
// # What rides out what
//
// A broker that is lost, frozen or replaced as leader, too few replicas in
// sync, a cut connection: appends are repeated, readers continue where they were
// and barriers are asked again, at intervals of 20 ms to 1 s. Another leader is
// noticed within metadataTTL (leader.go), and ends what waits for the one
// before. After Options.AppendTimeout an append fails with
// [eventlog.ErrUncertain]: the record may be there, or turn up. The log goes
// on, unlike one in files, whose failure is final. [Log.Stats] says for how
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
// Every record fetched is checked: the batch's CRC-32C, and that its offset is the
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
