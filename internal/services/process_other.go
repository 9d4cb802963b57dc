//go:build unix && !linux

package services

import (
	"os/exec"
	"strconv"
	"syscall"
)

// attributes of a server's process. Here nothing ends it when its parent is
// killed.
func attributes(detach bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: detach, Setpgid: !detach}
}

// commandLine returns the arguments of a process with spaces between them,
// empty when there is none.
func commandLine(pid int) string {
	out, err := exec.Command("ps", "-ww", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return string(out)
}
