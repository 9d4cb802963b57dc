package lowpriority

import "syscall"

// lower gives the calling thread less of the processors: about a tenth of one for which it
// competes with a usual thread. On Linux the "process" of the calls is one thread. A thread may
// always lower itself; if it cannot, the work is done all the same.
func lower() {
	if nice, err := niceness(); err == nil {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), min(nice+10, 19))
	}
}

// niceness is by how much the calling thread's priority is lower than the usual, which is 0; 19
// at most.
func niceness() (int, error) {
	n, err := syscall.Getpriority(syscall.PRIO_PROCESS, syscall.Gettid())
	return 20 - n, err // the system call returns 20 less of it
}

func isMainThread() bool { return syscall.Gettid() == syscall.Getpid() }
