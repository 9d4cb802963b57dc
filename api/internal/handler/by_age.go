package handler

import (
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
)

// OldestFirst answers a list with the oldest first, a page at a time.
func OldestFirst[T, R any](c *Call, all func(*resolver.View) []T, of func(*T) paging.Age, show func(*resolver.View, *T) R) (any, error) {
	return ByAge(c, false, all, of, show)
}

// AgeOrder is the parameter of a list that has either order.
func AgeOrder() operation.Parameter {
	return operation.Query("sort", shape.Word("By the time of creation.", "oldest", "newest").Default("oldest"))
}

// NewestFirst reads [AgeOrder].
func NewestFirst(c *Call) (bool, error) {
	switch sort := string(c.QueryArgs().Peek("sort")); sort {
	case "", "oldest":
		return false, nil
	case "newest":
		return true, nil
	}
	return false, BadField("sort", "sort must be oldest or newest")
}

// ByAge is [OldestFirst] in either order.
func ByAge[T, R any](c *Call, newest bool, all func(*resolver.View) []T, of func(*T) paging.Age, show func(*resolver.View, *T) R) (any, error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	after, err := paging.DecodeAge(c.QueryArgs().Peek("cursor"))
	if err != nil {
		return nil, CursorFault(err)
	}
	var out Page
	err = c.Read(func(v *resolver.View) error {
		var room paging.Room
		out.Items, out.Next, room = paging.ShowByAge(all(v), after, limit, newest, of, func(x *T) R { return show(v, x) })
		return c.Hold(room.Bytes)
	})
	return out, err
}

// Hold takes the bytes of a large page from the memory that all requests share.
func (c *Call) Hold(n int) error {
	if n > largeAnswer && !c.chain.opts.Memory.Hold(c.RequestCtx, n) {
		return errNoMemory
	}
	return nil
}
