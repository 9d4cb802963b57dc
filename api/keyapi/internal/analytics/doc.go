// Package analytics has the calls about statistics: what history has of events, messages and
// flows over a range of time, with what the state has now.
package analytics
