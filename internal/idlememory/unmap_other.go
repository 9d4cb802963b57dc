//go:build !linux

package idlememory

// unmapFiles does nothing: only Linux tells which mappings have no private pages.
func unmapFiles() (int64, error) { return 0, nil }
