// Package node runs the state machines of package resolver: one for each partition of
// the log that this process serves.
//
// # Background
//
// A machine is a pure function of its log. It has no clock, no locks, no goroutines and
// no requests. A [Node] has all of these: it appends records, applies them in order as
// they become durable, answers the requests that wait for them, feeds history, writes checkpoints,
// and appends by itself what the passing of time asks for. Nothing that it does decides
// what a record leads to: two nodes that apply the same log come to the same state, at
// whatever pace (R1).
//
// # How it is organised
//
// A node has a slot for each partition of the log. A partition that is served here is in
// Node.partitions, where requests find it; one that is being taken, is warm or is being
// released is in its slot only. The files, by what they do:
//
//   - node.go, partition.go: a node and a partition. node_open.go: starting and closing a node.
//   - What a partition is made of, each a type that knows none of the others: position.go
//     (how far the log is applied), requests.go (those that wait for their records),
//     published.go (what is read without a lock), lease.go (who holds the partition),
//     checkpointing.go (when checkpoints are due), lifetime.go (goroutines, and how they
//     end), fatal.go (why nothing continues).
//     node_submit.go and the other node_*.go: what requests call.
//   - partition_run.go: from a record to its outcome, and checkpoints. partition_load.go: from
//     a checkpoint to a state. partition_begin.go: from there to a partition with its lease.
//     partition_fail.go: how it fails.
//   - owned*.go, node_epoch.go, node_claim.go: partitions that come and go, who holds the lease of
//     them, and what is claimed before it is carried out (resolver/internal/state/epoch.go says why).
//   - tick.go, build.go, erase_run.go, reservation_loop.go: what is appended unasked.
//   - rebuild.go: rows that history lost.
//   - package internal/sharing: checkpoints for other nodes. shared.go has its names for
//     those who use this package.
//   - watch.go: people who watch, see package live.
//   - reservation_node.go, reservation_batch.go: the way to the directory of e-mails.
//
// # Goroutines
//
// A partition owns all of its own, and its close waits for them (lifetime.done). apply
// reads the log and is the only one that calls Machine.Apply; checkpointLoop is the only
// one that writes checkpoints unasked. These two run from load on, also while a partition
// is warm. begin adds those that only the owner runs: continueLoop, tickLoop, eraseLoop, buildLoop,
// rebuildLoop, and where there are several partitions releaseLoop and, with the
// directory, reconcileLoop. All but continueLoop end when the partition is given up
// (lifetime.owned); continueLoop, apply and checkpointLoop end with lifetime.run, since
// requests that still wait for a record may need them. The goroutine of sharing.Sharing is
// waited for only as long as a stop allows: storage of others may hang. A node owns the
// three that send to the directory.
//
// # Locks
//
// In this order, outermost first. But for the first two none is held while waiting for
// the log, history, files or another node:
//
//  1. slot.turn: one Take, Release, Warm or Cool of a partition at a time.
//  2. partition.checkpoint: one checkpoint at a time. checkpoint.pruning, within it: the
//     removal of old ones.
//  3. the feed's: taken by the goroutine that applies from Begin to End of a record.
//  4. partition.mu: the machine. Apply, freeze and thaw have it alone, views and loops
//     share it. mu.m is nil once the partition is closed; it may not be kept.
//  5. requests.mu, lease.mu, sharing.Sharing.mu, openFiles.mu, those of watchers: leaves.
//     Nothing is called while one is held.
package node
