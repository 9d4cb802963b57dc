package clientaddr

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"
)

// headerForwarded is the header to which each proxy adds the address it was
// called from.
const headerForwarded = "X-Forwarded-For"

// Proxies are the networks of the proxies whose X-Forwarded-For is believed. The
// zero value trusts none.
type Proxies struct{ networks []netip.Prefix }

// Parse reads a list of networks such as 10.0.0.0/8 and single addresses, with
// commas between them. An empty list trusts no proxy.
func Parse(list string) (Proxies, error) {
	var p Proxies
	if strings.TrimSpace(list) == "" {
		return p, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		part = strings.TrimSpace(part)
		network, err := parseNetwork(part)
		if err != nil {
			return Proxies{}, fmt.Errorf("%q is no network; give networks such as 10.0.0.0/8 or addresses such as 10.0.0.7, with commas between them", part)
		}
		p.networks = append(p.networks, network)
	}
	return p, nil
}

func parseNetwork(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return netip.Prefix{}, err
		}
		addr = addr.Unmap().WithZone("")
		return addr.Prefix(addr.BitLen())
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	if addr := network.Addr(); addr.Is4In6() { // ::ffff:10.0.0.0/104 is 10.0.0.0/8
		if network.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("%s is wider than all of IPv4", text)
		}
		network = netip.PrefixFrom(addr.Unmap(), network.Bits()-96)
	}
	return network.Masked(), nil
}

// Trust reports whether an address is that of a trusted proxy.
func (p Proxies) Trust(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	for _, n := range p.networks {
		if n.Contains(addr) {
			return true
		}
	}
	return false
}

// Client returns the address of the client. peer is the other end of the
// connection; forwarded are the values of X-Forwarded-For in the order in which
// they came. It is the rightmost address that is no trusted proxy. Where the list
// ends before, or has something else than an address, it is the last proxy that
// was found.
func (p Proxies) Client(peer netip.Addr, forwarded [][]byte) netip.Addr {
	client := peer.Unmap()
	for i := len(forwarded) - 1; i >= 0; i-- {
		rest := string(forwarded[i])
		for more := true; more; {
			if !p.Trust(client) {
				return client
			}
			entry := rest
			if comma := strings.LastIndexByte(rest, ','); comma >= 0 {
				rest, entry = rest[:comma], rest[comma+1:]
			} else {
				more = false
			}
			addr, ok := parseEntry(strings.TrimSpace(entry))
			if !ok {
				return client
			}
			client = addr
		}
	}
	return client
}

// parseEntry reads an address, which some proxies add a port to.
func parseEntry(text string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		withPort, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = withPort.Addr()
	}
	// A zone names an interface of another machine.
	return addr.Unmap().WithZone(""), true
}

// Handler has next see the client's address as that of the request.
func (p Proxies) Handler(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(rc *fasthttp.RequestCtx) {
		rc.SetRemoteAddr(nil) // the last request of this connection may have come from another client
		if len(p.networks) > 0 {
			if peer, ok := rc.RemoteAddr().(*net.TCPAddr); ok && p.Trust(peer.AddrPort().Addr()) {
				client := p.Client(peer.AddrPort().Addr(), rc.Request.Header.PeekAll(headerForwarded))
				if client != peer.AddrPort().Addr().Unmap() {
					rc.SetRemoteAddr(&net.TCPAddr{IP: client.AsSlice()}) // the port is not known
				}
			}
		}
		next(rc)
	}
}
