package handler

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
