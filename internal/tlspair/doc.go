// Package tlspair serves TLS with a certificate and a key that are PEM files, and
// takes new ones when the files change.
//
// The files are read again at a handshake, at most once in some seconds, and
// compared by content. A new pair that cannot be used, also one of which only one
// half is written yet, is an error in the log; the old one stays in use.
package tlspair
