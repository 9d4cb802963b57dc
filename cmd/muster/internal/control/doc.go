// Package control is how a command reaches the server that has a data directory: by a
// Unix socket in it, control.sock, which only the directory's owner may open.
//
// A connection carries one request, a line of JSON, and its answers, lines of JSON, of
// which the last has done or error. A client that goes away ends what it asked for.
//
// The path of a Unix socket is bounded (about 107 bytes). Where the directory's is
// longer the socket is in a directory of its own among the temporary files, and
// control.sock is a file that names it.
package control
