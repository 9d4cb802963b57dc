package keycall

import "github.com/musterhq/muster/api/operation"

// Route is an operation with what answers it.
type Route struct {
	Handle func(*Call) (any, error)
	operation.Operation
}

// Group is the operations of a noun.
type Group struct {
	operation.Group
	Routes []Route
}

// Reply is data with something to say about it. A handler that has nothing to
// say returns its data as it is.
type Reply struct {
	Data    any
	Message string
	Next    string // cursor of the next page, "" at the end
}

// ToReply is what a handler returned as a reply.
func ToReply(data any) Reply {
	r, ok := data.(Reply)
	if !ok {
		r = Reply{Data: data}
	}
	if r.Data == nil {
		r.Data = struct{}{}
	}
	return r
}

// Streamed is what a handler returns that writes its own answer.
var Streamed any = &struct{ int }{}
