package handler

import (
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
)

// IfVersionQuery is the parameter of calls that save over something.
func IfVersionQuery() []operation.Parameter {
	return []operation.Parameter{operation.Query("if_version", shape.Text("5f0c3a9be21d7740", "The `version` that you have changed. If somebody saved another one meanwhile, the call answers 409 and changes nothing. Left out, it saves over whatever there is."))}
}

// IfVersion reads [IfVersionQuery], "" where it was left out.
func (c *Call) IfVersion() string { return string(c.QueryArgs().Peek("if_version")) }
