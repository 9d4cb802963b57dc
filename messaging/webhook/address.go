package webhook

import "net/netip"

type kind uint8

const (
	kindPublic  kind = iota
	kindPrivate      // refused unless AllowPrivate
	kindNever        // always refused
)

type block struct {
	prefix netip.Prefix
	kind   kind
	why    string
}

// blocks4 and blocks6: the first match decides, so
// single addresses stand before the blocks that hold them.
var blocks4 = []block{
	{netip.MustParsePrefix("168.63.129.16/32"), kindNever, "a cloud's metadata service"},
	{netip.MustParsePrefix("100.100.100.200/32"), kindNever, "a cloud's metadata service"},
	{netip.MustParsePrefix("192.0.0.192/32"), kindNever, "a cloud's metadata service"},
	{netip.MustParsePrefix("0.0.0.0/8"), kindNever, "an unspecified address"},
	{netip.MustParsePrefix("10.0.0.0/8"), kindPrivate, "a private address"},
	{netip.MustParsePrefix("100.64.0.0/10"), kindPrivate, "a shared address of a provider's network"},
	{netip.MustParsePrefix("127.0.0.0/8"), kindPrivate, "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), kindNever, "a link-local address"},
	{netip.MustParsePrefix("172.16.0.0/12"), kindPrivate, "a private address"},
	{netip.MustParsePrefix("192.0.0.0/24"), kindNever, "a reserved address"},
	{netip.MustParsePrefix("192.0.2.0/24"), kindNever, "an address for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), kindNever, "a relay's address"},
	{netip.MustParsePrefix("192.168.0.0/16"), kindPrivate, "a private address"},
	{netip.MustParsePrefix("198.18.0.0/15"), kindPrivate, "an address for test networks"},
	{netip.MustParsePrefix("198.51.100.0/24"), kindNever, "an address for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), kindNever, "an address for documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), kindNever, "a multicast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), kindNever, "a reserved address"},
}

var blocks6 = []block{
	{netip.MustParsePrefix("::1/128"), kindPrivate, "a loopback address"},
	{netip.MustParsePrefix("fd00:ec2::/32"), kindNever, "a cloud's metadata service"},
	{netip.MustParsePrefix("fd20:ce::/32"), kindNever, "a cloud's metadata service"},
	{netip.MustParsePrefix("fc00::/7"), kindPrivate, "a unique local address"},
	{netip.MustParsePrefix("fe80::/10"), kindNever, "a link-local address"},
	{netip.MustParsePrefix("ff00::/8"), kindNever, "a multicast address"},
	{netip.MustParsePrefix("2001:db8::/32"), kindNever, "an address for documentation"},
	{netip.MustParsePrefix("3fff::/20"), kindNever, "an address for documentation"},
	// Teredo hides an IPv4 address behind a relay; nothing in 2001::/23 is a host of the public network.
	{netip.MustParsePrefix("2001::/23"), kindNever, "a reserved address"},
}

var (
	global6 = netip.MustParsePrefix("2000::/3")
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
	sixTo4  = netip.MustParsePrefix("2002::/16")
)

// classify says what an address is. An IPv6 address that stands for an IPv4
// address (mapped, NAT64, 6to4) is judged as that one: a network with only IPv6
// reaches public IPv4 hosts through NAT64, and a private one must not be reached
// that way.
func classify(addr netip.Addr, depth int) (kind, string) {
	if !addr.IsValid() || depth > 1 {
		return kindNever, "no address"
	}
	addr = addr.Unmap()
	if addr.Is4() {
		for _, b := range blocks4 {
			if b.prefix.Contains(addr) {
				return b.kind, b.why
			}
		}
		return kindPublic, ""
	}
	// Contains never matches an address with a zone.
	addr = addr.WithZone("")
	raw := addr.As16()
	switch {
	case nat64.Contains(addr):
		return classify(netip.AddrFrom4([4]byte(raw[12:16])), depth+1)
	case sixTo4.Contains(addr):
		return classify(netip.AddrFrom4([4]byte(raw[2:6])), depth+1)
	}
	for _, b := range blocks6 {
		if b.prefix.Contains(addr) {
			return b.kind, b.why
		}
	}
	if !global6.Contains(addr) {
		return kindNever, "a reserved address"
	}
	return kindPublic, ""
}
