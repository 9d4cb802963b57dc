//go:build !linux

package ingest

import "net"

// Gone reports whether the client of a connection has closed it. Here it cannot be
// told.
func Gone(net.Conn) bool { return false }
