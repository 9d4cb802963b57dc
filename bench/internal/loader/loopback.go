package loader

import (
	"fmt"
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
