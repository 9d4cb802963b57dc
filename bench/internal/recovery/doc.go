// Package recovery measures how soon a server that was killed takes events
// again while clients retry without a pause.
//
// The real binary stores events first. Then clients send single events; an
// event that is not acknowledged is sent again at once, the same bytes, on a
// new connection. In each round the server is killed with SIGKILL under them
// and started again at once. Time counts from the start of the new process to
// the first acknowledgement, and until each client has had one. At the end
// history is compared with what was acknowledged.
package recovery
