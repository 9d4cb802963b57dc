// Package server builds and runs the real muster binary for a bench: it starts
// it on a data directory, reads the credentials it writes, and knows where its
// event endpoints are. The command line it relies on is `muster serve --data
// DIR --listen HOST:PORT --credentials FILE`, a line with "ready" once it
// serves, and SIGTERM to drain and stop.
package server
