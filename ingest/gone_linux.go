package ingest

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Gone reports whether the client of a connection has closed it, or its half of it.
// Nothing is read to find out, and what was sent before does not hide it. It is false
// where that cannot be told.
func Gone(conn net.Conn) bool {
	for {
		inner, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		conn = inner.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		state := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(state, 0)
		gone = err == nil && n > 0
	})
	return gone || err != nil // closed by this side
}
