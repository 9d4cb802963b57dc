// Package resolver is the state machine: it turns the records of a log
// partition, in order, into profiles, and answers what became of each event.
//
// # Background
//
// The state is a pure function of the log. Apply reads no clock, draws no
// random numbers, depends on no map order and on no I/O but its own store.
// Time is log time: the largest stamp so far. Replaying the same records gives
// the same profile ids and the same [Machine.Hash].
//
// # How data is organised
//
// A [Machine] holds one partition and, in it, accounts. Of an account it keeps what follows;
// the first three are in package resolution, which finds the profile of each event:
//
//   - the identity map: 128-bit keyed hash of (kind, normal form) → ordinal,
//     wholly in memory, so that looking up an identifier never touches disk;
//   - headers: 32 bytes a profile in pages of 256, indexed by ordinal: id, time
//     of the last event, the profile it was merged into;
//   - documents: everything else of a profile as one block of bytes, in the
//     store with a bounded cache;
//   - the index of profiles: identifiers and names in order, in the store, by which
//     a profile is found from their beginning;
//   - idempotency keys: the newest in a map, older ones in immutable sorted
//     files with a filter in memory;
//   - entities: settings, users, sessions, segments, the event catalog.
//
// What changes is collected in the current generation. A checkpoint freezes
// the generation in an instant, writes it to Pebble in the background and
// commits a directory that holds all state at one offset. Pebble runs without
// a write-ahead log because the event log already is one: start-up opens the
// newest checkpoint and replays.
//
// Package resolver/node runs machines: it appends records, applies them as they
// become durable, hands outcomes to the requests that wait, feeds history and writes
// checkpoints. A machine knows it as a [view.Host] only, and has no locks: its caller runs
// Apply, freezing and thawing alone, and readers beside each other. A method that needs
// more says so.
//
// # Where to look
//
// Files use those above them in this list, not those below:
//
//   - machine.go, record.go, tasks.go, outcome.go: the machine, the record being applied, work
//     that is left for later records, what became of a record
//   - account_entity.go, totals.go, epoch.go, claim.go, notify.go, segments.go, emit.go: what
//     several commands need
//   - campaign_host.go, contact_host.go, flow_port.go, form_host.go, inapp.go, orders.go,
//     pacing_host.go, resolution_host.go, sending_host.go: what features see of their account and of the record; accounts.go puts
//     accounts together
//   - command.go names commands; access_company.go, contacts.go, erase.go, inapp.go,
//     preferences.go, segment_commands.go, settings_commands.go and others carry them out;
//     audited.go notes them
//   - apply_event.go, import.go, continue.go, dispatch.go, apply.go: a record from its kind to
//     the command or events in it
//   - load.go, freeze.go, hash.go, split.go, serve.go: checkpoints, and what a node asks for
//
// The state of an account is package internal/account; readers see it through package view.
//
// # Invariants
//
//   - L2: an event is recorded once, whatever is retried, replayed or crashed.
//   - L3: the work of one record is bounded; the rest goes to a queue in the
//     state and is continued by later records.
//   - R1: the state depends on the log alone.
//   - R2: an identifier belongs to one profile of an account at a time, and
//     accounts never see each other's data.
package resolver
