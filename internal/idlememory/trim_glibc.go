//go:build linux && cgo

package idlememory

/*
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

static void trim(void) {
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
*/
import "C"

// trimC returns what the C library keeps of freed memory: pages between blocks that are still in
// use, which it returns no other way. Only glibc has the call.
func trimC() { C.trim() }
