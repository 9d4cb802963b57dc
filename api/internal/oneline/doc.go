// Package oneline makes any text fit for the message of an answer. Messages
// quote what the caller sent, which may be long or hold anything.
package oneline
