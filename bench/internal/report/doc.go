// Package report holds what the reports of several commands have in common: the
// machine, the figures of a phase of load, statistics, targets, and tables for
// people. The fields of these types are parts of the JSON reports.
package report
