// Package child runs the servers of a bench as child processes: it starts them,
// waits until they say that they serve, measures what they use and stops them
// by their process id. On Linux a child is killed with the bench, so that a bench
// that is killed leaves nothing running.
package child
