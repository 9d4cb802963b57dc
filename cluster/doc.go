// Package cluster decides which node owns which partitions of the log.
//
// The state is a function of the log, on every node. Only one node may
// carry out effects and append the records that time causes. So
// each partition has one owner, which Kafka's consumer group chooses. Package
// peer beside it forwards requests to owners.
//
// # How ownership is decided
//
// [Join] enters the group "muster-TOPIC". With it a member says who it is, where
// it is reached, and what it owned when, the group's generation being the clock
// (claim.go). Kafka has one of the members distribute the partitions
// (balancer.go): evenly, and each to its last owner as far as that is even. A
// member that was away, and has missed that another became owner, claims an older
// generation than that one.
//
// A partition whose owner is there goes to another node only once that has it
// warm, having loaded it and following its log ([Member.Planned],
// [Member.Warmed]); so no request waits for the loading. The plan is a function of
// what members say of themselves, so each works out its part. One that is about
// to go says so, and keeps what it has until others have it warm. What must hold:
//
//   - H1: a partition whose owner is a member goes to one that has it warm, and
//     to no other.
//   - H2: a partition that no member owns is given away at once, warm or not.
//   - H3: one that never gets warm holds up no other: the owner keeps the
//     partition, and if that leaves it goes when its time is over.
//
// What the rest of the process sees:
//
//   - [Member.Assigned] returns the node's partitions, [Member.Owner] the owner of any,
//     and [Member.Changed] signals changes (owners.go). A node may own nothing.
//   - Kafka away, a coordinator that moves, a cut connection: the node keeps what
//     it had, enters the group again, and claims that.
//   - Nodes own partitions beside each other if they share Options.Key, which
//     stands for the secret they need to talk to each other. One without, or with
//     another, owns all or nothing: [Join] turns it away while others own
//     partitions, and one that learns of it later is lost ([Member.Lost]). It must
//     end as if it were killed; the log has all that was acknowledged.
//
// A node that fell silent is a member until its session ends,
// Options.SessionTimeout after its last sign of life. One that was killed is
// removed within about a second by a node that looks at it (neighbour.go), if
// its machine still answers. Started again it removes its former self from the
// group itself: its id is kept with its data, and the lock on those says that no
// other process has them. One on a copy of them has the id, too, so that the former
// self is asked first whether it is alive (twin.go).
//
// # What this does not exclude
//
// Kafka takes a silent node for dead. One that was frozen for longer than its
// session learns with its first heartbeat that others have taken over,
// at most Options.HeartbeatInterval and a round trip after it wakes. Until then
// it takes itself for the owner: what it reads and what it does has to be made
// safe by the log itself, as package resolver does.
package cluster
