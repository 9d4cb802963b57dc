// Package cpuspeed watches how fast the processors run.
//
// A virtual machine's processors run slower at times, for reasons of its host: some were
// seen at a tenth of their speed for 30 to 90 ms, every two seconds, with nothing running.
// The guest sees no steal time and no lower frequency. What is slow in such a time says
// little about the program that is measured.
package cpuspeed
