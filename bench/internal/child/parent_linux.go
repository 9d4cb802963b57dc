package child

import "syscall"

// dieWithParent makes the kernel kill the child when the bench ends.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
