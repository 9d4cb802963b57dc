package lowpriority

import "syscall"

// nice is about a tenth of a processor for which two threads compete.
const nice = 10

// lower gives the calling thread less of the processors. On Linux the "process" of the call is
// one thread. A thread may always lower itself; if it cannot, the work is done all the same.
func lower() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), nice) }
