package clientaddr

import "net/netip"

// Network is the network of an address, as records of people have it: the first 24 bits of an
// IPv4 address, 48 of another. It shows the region of a person without identifying them. It
// is "" for no address.
func Network(addr netip.Addr) string {
	if !addr.IsValid() {
		return ""
	}
	addr = addr.Unmap().WithZone("")
	bits := 48
	if addr.Is4() {
		bits = 24
	}
	return netip.PrefixFrom(addr, bits).Masked().String()
}
