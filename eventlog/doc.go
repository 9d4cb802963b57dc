// Package eventlog defines the log every acknowledged request goes through.
//
// # Background
//
// A log has one or more partitions. A partition is an ordered sequence of
// records with dense offsets from 0. One HTTP request is one record: a batch
// of N events is a single record, so it is durable as a whole or not at all.
// All state of an account is a function of the records of its partition, read
// in order; an account is in exactly one partition.
//
// # What is here
//
// [Log] is the contract an implementation fulfils; eventlog/file keeps
// segment files in a directory. [Envelope] is the head every record starts
// with. [AppendEvent] and [AppendEventCount] write the body of records that
// carry events, and [EventsReader] reads it. The byte layouts are written down in docs/formats.md. Decoding never
// panics, whatever the bytes.
//
// # Invariants
//
//   - L1: when Append returns an offset, the record survives kill -9, power
//     loss and restart.
//   - Records of a partition are read back in offset order, without gaps; a
//     record that cannot be read is an error that names file and offset, never
//     skipped in silence.
//   - A record is readable only once it is durable: what a reader has seen
//     cannot disappear.
package eventlog
