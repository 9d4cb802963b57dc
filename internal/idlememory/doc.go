// Package idlememory gives memory back to the system while the process is idle.
//
// # Background
//
// A server that has started, or that was busy, keeps memory that it does not use:
//
//   - Go's collector lets the heap grow to twice the live bytes, and keeps free pages for
//     the next growth.
//   - The C library, from which Pebble has its caches and DuckDB some of its memory, keeps what
//     they free, unless it lies at the end of what it has from the system.
//   - Every page of the executable that was ever touched stays mapped. The system maps
//     whole groups of pages around the one that is needed, so that a start maps most of
//     the file, although an idle server uses little of it.
//
// # How it works
//
// [Run] compares the CPU time of the process once a minute. After a minute with less than
// a second of CPU time the process is idle. Then it
//
//   - collects garbage, and returns free pages of Go's heap (debug.FreeOSMemory) and of the C
//     library's (malloc_trim);
//   - unmaps clean pages of mapped files: read-only ones that are as they are in the file.
//
// Both happen again after an idle minute as soon as the process has taken ten times as much
// CPU time since as they took. So a busy server never pays for them, and an idle one with
// a request now and then pays a tenth at most.
//
// # What is not obvious
//
// Unmapping loses nothing: such a page is the same as in the file. The page cache of the
// system keeps it, so that the next use of it maps it again without reading the disk. What
// changes is that the system may use the memory for something else as soon as it needs
// some.
//
// A mapping that has private pages is left alone: those hold what the loader relocated, or
// a debugger's breakpoint, and they would be lost.
package idlememory
