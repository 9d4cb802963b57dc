// Package prefetch brings memory near the processor before it is needed.
//
// # Background
//
// An event touches a dozen places in tables of gigabytes, and a place that is in no cache
// takes as long to read as some hundred instructions. A processor continues behind a read that
// waits, but only as far as its reorder buffer reaches, which is the work of about two events. A
// prefetch does not wait, so those of a whole window of events are under way at once.
//
// A prefetch changes nothing: it reads no value, cannot fail, and is no race with a writer. Where
// there is no instruction for it, it does nothing.
package prefetch
