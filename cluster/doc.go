// Package cluster says which node has which partitions of the log.
//
// The state is a function of the log, whoever reads it; what only one node may
// do is to act: to carry out effects and to append what time brings about. So
// each partition has one owner, and Kafka's consumer group says who. For now
// one node owns all partitions of a topic: a second one is turned away at its
// start. What follows holds for several owners as it does for one.
//
// # How ownership is decided
//
// [Join] enters the group "muster-TOPIC". With it a member says who it is and
// what it owned when, the group's generation being the clock (claim.go). Kafka
// has one of the members distribute the partitions (balancer.go): each goes to
// whoever owned it last, and one that nobody owned to the member that has been
// there longest. A member that was away, and has missed that another became
// owner, claims an older generation than that one and gets nothing.
//
//   - A node that gets nothing at its start leaves, and [Join] says who owns
//     the partitions.
//   - A node that finds later that it owns them no more is lost: [Member.Lost].
//     It must end as if it were killed; the log has all that was acknowledged.
//   - Kafka away, a coordinator that moves, a cut connection: the node goes on,
//     enters the group again, and claims what it had.
//
// A node killed is a member until its session ends, Options.SessionTimeout
// after its last sign of life. Started again it removes its former self from
// the group at once: its id is kept with its data, and the lock on those says
// that no other process lives under it.
//
// # What this does not exclude
//
// Kafka takes a silent node for dead. One that was frozen for longer than its
// session learns with its first heartbeat that another has taken over,
// at most Options.HeartbeatInterval and a round trip after it wakes. Within that time it may answer
// reads from a state that lacks what the new owner has acknowledged, and repeat
// effects. Appends are right: they are acknowledged once applied in the log's
// order.
package cluster
