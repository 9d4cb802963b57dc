// Package checkpoint writes and opens checkpoints: directories that hold all state of a
// partition at one offset of its log. It knows the files and what is in them as entries,
// idempotency keys and states of segment engines; what entries mean is the state
// machine's affair.
//
// Nothing of a checkpoint is relied upon before all of its files were compared with the
// sizes and checksums in its manifest, see [Dir.Verify].
package checkpoint
