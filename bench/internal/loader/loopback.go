package loader

import (
	"fmt"
	"net"
	"net/netip"
)

// CheckLoopback refuses every address that is not IP:PORT on the loopback
// interface: a load is never sent to another machine.
func CheckLoopback(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q is not IP:PORT, such as 127.0.0.1:8080", address)
	}
	if !ap.Addr().Unmap().IsLoopback() {
		return fmt.Errorf("address %s is not on the loopback interface; loads are sent to 127.0.0.1 or [::1] only", address)
	}
	return nil
}

// FreePort returns a loopback address nothing listens on at the moment.
func FreePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}
