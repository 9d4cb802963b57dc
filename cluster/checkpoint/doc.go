// Package checkpoint keeps checkpoints in storage that all nodes reach: a
// directory or S3. A node that takes a partition fetches the newest one and
// replays what came after.
//
// [Store] is a resolver.SharedCheckpoints. Each partition is a set of package
// internal/blobtree, which says what holds when several nodes write at once; a
// version is named by the checkpoint's offset and epoch:
//
//	p<partition>/manifests/<offset>-<epoch>.json
//	p<partition>/files/…
//
// Offsets order the versions: whichever node wrote it, a checkpoint at an offset
// has the state before it. So a node that lost its partition and still uploads
// does no harm: what it writes is right, and older than what its successor writes.
// The two newest are kept.
package checkpoint
