package api

import (
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/resolver"
)

// aged answers a list that is sorted by age, a page at a time.
func aged[T, R any](a *API, c *call, all func(*resolver.View) []T, of func(*T) paging.Age, show func(*resolver.View, *T) R) (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	after, err := paging.DecodeAge(c.QueryArgs().Peek("cursor"))
	if err != nil {
		return nil, cursorFault(err)
	}
	var out page
	err = a.read(c, func(v *resolver.View) error {
		var room paging.Room
		out.items, out.next, room = paging.ShowByAge(all(v), after, limit, of, func(x *T) R { return show(v, x) })
		return a.hold(c, room.Bytes)
	})
	return out, err
}

// hold takes the bytes of a large page from the memory that all requests share.
func (a *API) hold(c *call, n int) error {
	if n > largeAnswer && !a.opts.Memory.Hold(c.RequestCtx, n) {
		return errNoMemory
	}
	return nil
}
