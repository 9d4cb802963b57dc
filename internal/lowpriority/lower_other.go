//go:build !linux

package lowpriority

func isMainThread() bool { return false }

func lower() {}
