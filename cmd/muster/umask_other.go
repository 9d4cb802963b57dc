//go:build !unix

package main

// privateFiles does nothing: files take their access from the directory they are in.
func privateFiles() {}
