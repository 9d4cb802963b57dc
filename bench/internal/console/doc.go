// Package console asks a server on the loopback interface through its console
// API what a bench checks: who would belong to a segment, and which profile an
// identifier finds.
package console
