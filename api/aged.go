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
	out := []R{}
	next := ""
	err = a.read(c, func(v *resolver.View) error {
		var part []T
		part, next = paging.PageByAge(all(v), after, limit, of)
		for i := range part {
			out = append(out, show(v, &part[i]))
		}
		return nil
	})
	return page{items: out, next: next}, err
}
