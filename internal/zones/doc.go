// Package zones is the IANA time zone database that the binary carries.
//
// Nodes that apply one log must turn local times into the same instants. The
// machine's own database would not do: machines are updated at different times,
// and some have none. So this package reads none but its own, and new rules come
// with a new version of the binary.
//
// The database is zoneinfo.tar.gz, which generate.go makes of the Go
// distribution's (100 KiB, and 0.5 MiB of memory and 7 ms once a zone was asked for). It is
// in the public domain.
package zones

//go:generate go run generate.go
