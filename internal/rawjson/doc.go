// Package rawjson reads values out of canonical JSON text without decoding it
// into a tree and without allocating.
//
// # The text
//
// Canonical text is what ingestion stores: valid JSON, minified, without
// duplicate keys, strings escaped only where JSON demands it, numbers as the
// client wrote them (50, 50.0 and 5e1 are three texts of one number). The
// readers rely on this being checked before: on other bytes they may answer
// nonsense, but they never panic and never read beyond the slice.
//
// Values are passed around raw: a slice of the text, strings with their quotes.
package rawjson
