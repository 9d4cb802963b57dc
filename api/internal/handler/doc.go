// Package handler is what every call of the console API shares.
//
// # Background
//
// A handler is a function of a [Call]: it reads the request, reads or changes the
// state of the account, and returns data or an error. It neither finds the session nor
// checks permissions nor writes the answer.
//
// # How it is organised
//
// A package of calls offers each noun as a [Group] of [Route] values. [Chain] runs what
// surrounds a handler: session (call.go, cookie.go), permission, size and form of the
// body (body.go), and the envelope of the answer (envelope.go). classify.go is the one
// place where errors become statuses.
//
// A handler calls [Call.Decode], [Call.Read] and [Call.Command], pages its lists by
// [OldestFirst], [Call.Cursor] and [Call.Limit], and returns a [Page], a [Note] or any
// value that can be written as JSON. Costly work waits for a slot of a [Semaphore].
// [Call.Stream] answers with server-sent events.
//
// shared.go and key_calls.go lend calls of people to API keys, and the reverse.
package handler
