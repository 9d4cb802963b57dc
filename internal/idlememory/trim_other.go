//go:build !linux || !cgo

package idlememory

// trimC does nothing: only glibc has the call.
func trimC() {}
