package api

import "github.com/musterhq/muster/api/operation"

// route is an operation with what answers it.
type route struct {
	handle func(*call) (any, error)
	operation.Operation
}

// group is the operations of a noun.
type group struct {
	operation.Group
	routes []route
}
