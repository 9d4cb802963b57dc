// Package proxy passes TCP connections on to a server on loopback, and breaks them
// on request: cut, so that both ends see it, or stalled, so that neither does.
package proxy
