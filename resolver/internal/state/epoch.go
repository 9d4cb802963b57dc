package state

// Epochs say which node holds the lease of a partition of a log that several nodes reach.
//
// What is read, answered or appended does not depend on who owns a partition:
// the state is a function of the log. Only what leaves the process does, and
// that is what epochs are for. A node that takes a partition replays its log and
// appends an epoch record; once that is applied it holds the lease, until another node's
// epoch record stands behind its own. The order in the log decides, no clock.
//
// A node that was frozen does not know yet that another took over. All it can do
// goes through records, and each kind of them is harmless from it:
//
//   - Claims, batches of campaigns, the end and the resumption of a run are
//     refused under an epoch that is not the newest (resolver/claim.go). So nothing leaves
//     the process but what was under way when it froze, under the same id.
//   - Outcomes: that a message was sent is true whichever node reports it, and
//     counts once: by then the item or the recipient may be gone. Any other outcome
//     is refused under an older epoch: it would make the attempt of the new owner,
//     which is under way, another one, and that would be repeated.
//   - Events, imports and commands of clients mean the same whichever node appends
//     them.
//   - A tick carries a time and nothing else. What is due is due by log time, in
//     one order, and log time never goes back: an old tick does nothing.
//   - A continue record says that the machine is to continue with what it has begun.
//     With nothing begun it does nothing; one more only does the next piece early.
//   - A chunk of a segment's past names the leaf or state and the place where it
//     continues; what does not continue where the last one ended is passed over. One
//     that does is exact, whichever node made it: the past is that below the offset
//     at which the state was defined, merges since are followed when it is applied,
//     and a profile that changed since a leaf was defined is judged by that change,
//     not by the chunk. Numbers of leaves and states are never given twice.
//   - erasure.done says that history has erased what was erased below an offset.
//     History is one for all nodes, tasks are in the order of their offsets, and
//     every state has the same: what is confirmed is what was asked for.
//   - A message between partitions about e-mails names a reservation by its id: it
//     is given up or reconciled once, and what an account's partition answers about
//     its outcome stays true.
//   - api_keys.used reports past uses, the newest counts.
//   - An epoch record that was on its way when its node froze becomes the newest
//     and takes the partition from its owner. Both then see in the log that they
//     do not hold the partition or should not: the owner takes the partition again
//     (Node.Take of package node), the other one gives it back.
//
// So epochs need not be in those records. History and checkpoints are no effects
// in this sense: rows are a function of the log, and history takes those of a
// record once, whichever node brings them.

// Epoch is the time for which a node holds the lease of a partition.
type Epoch struct {
	// Number is the offset of its record plus one: the larger the later, 0 for none.
	Number uint64 `json:"number"`
	// Node is the id of the node that holds the lease, Address where other nodes reach it.
	Node    string `json:"node"`
	Address string `json:"address,omitempty"`
	// Session is the id of its record, in hexadecimal.
	Session string `json:"session"`
	// ApplyVersion is that of the rules of the node's build.
	ApplyVersion int `json:"apply_version"`
	// BeganMs is the log time of its record.
	BeganMs int64 `json:"began_ms"`
}
