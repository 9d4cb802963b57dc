// Package crash kills a real server again and again while it takes events, and
// checks that nothing acknowledged was lost and nothing counts twice
// (invariants L1 and L2).
//
// # A run
//
// Workers post single events and batches, each event with an idempotency key
// of its own. At a random moment the server is killed with SIGKILL, sometimes
// again while it starts, and is started on the same data. A request without an
// answer is sent again with the same keys, whole or split, until it is
// acknowledged; a sixth of the requests is given up instead, as clients do.
// Some events are deliberately sent again later, twice in one batch, or on two
// connections at once.
//
// # What is checked
//
// On every answer: an event's profile is the one its user had before, over all
// restarts. At the end: every user still resolves to that profile; segment
// counts equal what the acknowledged events give; and history, read from its
// file, holds every acknowledged event exactly once, a given-up one at most
// once, and nothing else. The clients' book-keeping is in a [book], which
// knows nothing of the server.
package crash
