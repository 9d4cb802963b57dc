// Package logtest holds the tests that every implementation of [eventlog.Log]
// passes: the contract of its methods, on one process and without faults. What
// becomes of records in crashes is tested by each implementation, since crashes
// differ.
package logtest
