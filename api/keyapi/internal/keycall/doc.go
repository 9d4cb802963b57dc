// Package keycall is what the calls of API keys share: the call with its account, body and
// page, replies, and failures with the codes of Surface C.
package keycall
