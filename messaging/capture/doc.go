// Package capture keeps messages instead of sending them: with nothing
// configured, developers and tests look at what would have gone out.
//
// # What is kept
//
// The newest Options.MaxMessages messages (10,000) within Options.MaxBytes of
// files (64 MiB), across restarts. Adding a message whose id is there already
// changes nothing but its count of attempts, as a repeat after a crash would at
// a real provider. Texts longer than MaxText are cut and marked.
//
// # How it is stored
//
// A directory of segment files, appended to in turn; when a segment has its
// size (a sixteenth of MaxBytes) the next begins, and the oldest go as a whole. The
// bodies stay on disk; memory holds an index entry per message.
//
//	segment  = "MUSTCAP1" record…          capture-<first sequence, 16 hex digits>.seg
//	record   = length (4) checksum (4) kind (1) payload
//
// Integers are little-endian; length counts kind and payload, the CRC-32C covers
// them. Kind 1 is a message and kind 2 a repeat, both as JSON with their
// sequence number.
//
// # Crashes
//
// A record is written with one call and not synced: a killed process loses
// nothing, a power cut may lose the last ones. What is torn at the end of
// the newest segment is cut off at the next Open.
//
// Damage anywhere else stays in its file: records in front of it and behind it are
// read, since each can be found by its checksum. It is logged, counted ([Stats]) and
// found by [Check], and never keeps the store from opening. The
// truth about sends is in the log, not here.
package capture
