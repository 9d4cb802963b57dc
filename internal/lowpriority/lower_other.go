//go:build !linux

package lowpriority

func lower() {}
