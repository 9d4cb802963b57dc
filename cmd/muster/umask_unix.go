//go:build unix

package main

import "syscall"

// privateFiles has every file that this process makes readable and writable by its
// user alone: profiles are personal data. What is exported goes to standard output,
// whose file the shell makes with the user's own umask.
func privateFiles() { syscall.Umask(0o077) }
