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
// nothing, a power cut may lose the last ones. What is torn at a segment's end is cut
// off at the next Open; damage in the middle hides the records behind it in
// that segment (in the newest one they are cut off), is counted ([Stats]) and
// never keeps the store from opening. The
// truth about sends is in the log, not here.
package capture
