package state

// What the rules of Apply make of a record is part of the state, so two builds with
// other rules must not take turns on a partition. Three things keep them from it:
//
//   - A partition's epoch record has the version of its node's build. A build that
//     finds a newer one than its own stops there, before the first record that was
//     applied by rules that it does not know.
//   - A checkpoint has the version of the build that wrote it, and a build refuses
//     one of a newer one: the record may be behind it. Shared ones are refused alike.
//   - The record that makes an account has it as well, for logs without epochs.
//
// A node that meets one of them fails as a whole, so that its partitions go to nodes
// of the newer build. The other way round nothing is to be done: a newer build reads
// what older ones wrote, and says with its own epoch record that it was there.

// ApplyVersion is the version of the state machine's rules. It is part of the
// state: a build refuses a state made under newer rules.
const ApplyVersion = 23
