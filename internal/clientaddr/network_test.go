package clientaddr

import (
	"net/netip"
	"testing"
)

// TestNetworkIsNoAddress: of an address its network is kept.
func TestNetworkIsNoAddress(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.77": "192.0.2.0/24", "::ffff:192.0.2.77": "192.0.2.0/24", "2001:db8:1:2:3::4": "2001:db8:1::/48", "fe80::1%eth0": "fe80::/48",
	} {
		if got := Network(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	if got := Network(netip.Addr{}); got != "" {
		t.Errorf("no address: %s", got)
	}
}
