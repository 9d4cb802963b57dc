// Package clientaddr finds the address of the client behind a request.
//
// Without trusted proxies it is the address of the connection, and nothing that a
// client sends changes it. Behind a load balancer each connection is the
// balancer's; then the balancer is named as a trusted proxy, and the header
// X-Forwarded-For is read from its right end, where the balancer has added the
// address that it saw. What stands further left was sent by the client and proves
// nothing.
//
// [Proxies.Handler] stands before all other handlers and puts the address where
// [fasthttp.RequestCtx.RemoteIP] and RemoteAddr return it. Everything that needs
// the client's address (throttling, logs, bounds by address) reads it there.
package clientaddr
