package services

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// attributes of a server's process: a session of its own when it outlives its
// starter, and otherwise a group of its own, so that a Ctrl-C at the terminal
// reaches the test alone, and death with its parent.
func attributes(detach bool) *syscall.SysProcAttr {
	if detach {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// commandLine returns the arguments of a process with spaces between them,
// empty when there is none or it is a zombie.
func commandLine(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	return string(bytes.ReplaceAll(b, []byte{0}, []byte{' '}))
}
