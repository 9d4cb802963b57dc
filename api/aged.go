package api

import (
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
)

// aged answers a list with the oldest first, a page at a time.
func aged[T, R any](c *call, all func(*resolver.View) []T, of func(*T) paging.Age, show func(*resolver.View, *T) R) (any, error) {
	return sorted(c, false, all, of, show)
}

// ageOrder is the parameter of a list that has either order.
func ageOrder() operation.Parameter {
	return operation.Query("sort", shape.Word("By the time of creation.", "oldest", "newest").Default("oldest"))
}

// newest reads [ageOrder].
func newest(c *call) (bool, error) {
	switch sort := string(c.QueryArgs().Peek("sort")); sort {
	case "", "oldest":
		return false, nil
	case "newest":
		return true, nil
	}
	return false, badField("sort", "sort must be oldest or newest")
}

// sorted is [aged] in either order.
func sorted[T, R any](c *call, newest bool, all func(*resolver.View) []T, of func(*T) paging.Age, show func(*resolver.View, *T) R) (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	after, err := paging.DecodeAge(c.QueryArgs().Peek("cursor"))
	if err != nil {
		return nil, cursorFault(err)
	}
	var out page
	err = c.read(func(v *resolver.View) error {
		var room paging.Room
		out.items, out.next, room = paging.ShowByAge(all(v), after, limit, newest, of, func(x *T) R { return show(v, x) })
		return c.hold(room.Bytes)
	})
	return out, err
}

// hold takes the bytes of a large page from the memory that all requests share.
func (c *call) hold(n int) error {
	if n > largeAnswer && !c.chain.opts.Memory.Hold(c.RequestCtx, n) {
		return errNoMemory
	}
	return nil
}
