package email

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"
)

// IsLoopback reports whether a host, a name or an IP address, is this machine by its
// form alone: nothing is looked up. The address of all interfaces, 0.0.0.0 or ::, is
// this machine to a client that connects to it.
func IsLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	a, err := netip.ParseAddr(host)
	if err != nil {
		a = oldIPv4(host)
	}
	if a.IsValid() {
		a = a.Unmap()
		return a.IsLoopback() || a.IsUnspecified()
	}
	switch host {
	// Names that Linux distributions have in /etc/hosts.
	case "localhost", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback",
		"localhost.localdomain", "localhost4.localdomain4", "localhost6.localdomain6":
		return true
	}
	return strings.HasSuffix(host, ".localhost")
}

// oldIPv4 reads an IPv4 address as browsers and the C library do beside four decimal
// numbers: of one to four numbers, decimal, octal (0…) or hexadecimal (0x…), of which
// the last takes the bytes that are left, as in 127.1. It is invalid for anything else.
func oldIPv4(host string) (a netip.Addr) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return a
	}
	var b [4]byte
	for i, part := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (4 - i)
		}
		base := 10
		switch {
		case strings.HasPrefix(part, "0x"):
			part, base = part[2:], 16
		case len(part) > 1 && part[0] == '0':
			base = 8
		}
		n, err := strconv.ParseUint(part, base, bits)
		if err != nil {
			return a
		}
		if bits == 8 {
			b[i] = byte(n)
			continue
		}
		var last [4]byte
		binary.BigEndian.PutUint32(last[:], uint32(n))
		copy(b[i:], last[i:])
	}
	return netip.AddrFrom4(b)
}
