package keyapi

import (
	"errors"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
)

// cursorFault is what is wrong with the cursor of a query.
func cursorFault(err error) error {
	if errors.Is(err, paging.ErrCursor) {
		return Fail("cursor Input should be one that this call answered; leave it out to start at the beginning")
	}
	return err
}

// from reads the query's cursor of a list in order of ordinals.
func (c *call) from() (uint32, error) {
	from, err := paging.DecodeOrdinal(c.QueryArgs().Peek("cursor"))
	return from, cursorFault(err)
}

// aged is the page that the query asks for of a list that is sorted by age, from
// the state that read reads, and the cursor of what follows.
func aged[T, R any](c *call, read func(func(*resolver.View) error) error, all func(*resolver.View) []T, of func(*T) paging.Age,
	show func(*resolver.View, *T) R) (out []R, next string, err error) {
	limit, err := c.limit()
	if err != nil {
		return nil, "", err
	}
	after, err := paging.DecodeAge(c.QueryArgs().Peek("cursor"))
	if err != nil {
		return nil, "", cursorFault(err)
	}
	var room paging.Room
	err = read(func(v *resolver.View) error {
		out, next, room = paging.ShowByAge(all(v), after, limit, false, of, func(x *T) R { return show(v, x) })
		return nil
	})
	if err == nil {
		err = c.hold(room.Bytes)
	}
	return out, next, err
}

// hold takes the bytes of a large page from the memory that all requests share.
func (c *call) hold(n int) error {
	if n > largeAnswer && !c.api.opts.Memory.Hold(c.RequestCtx, n) {
		return errNoMemory
	}
	return nil
}

// The lists that more than one call answers a page of.

func agedCampaigns[R any](c *call, read func(func(*resolver.View) error) error, show func(*resolver.View, *campaigns.Campaign) R) ([]R, string, error) {
	return aged(c, read, func(v *resolver.View) []campaigns.Campaign { return v.Campaigns().All() }, func(x *campaigns.Campaign) paging.Age { return paging.Age{CreatedMs: x.CreatedMs, ID: x.ID} }, show)
}

func agedSegments[R any](c *call, read func(func(*resolver.View) error) error, show func(*resolver.View, *resolver.Segment) R) ([]R, string, error) {
	return aged(c, read, (*resolver.View).Segments, func(x *resolver.Segment) paging.Age { return paging.Age{CreatedMs: x.CreatedMs, ID: x.ID} }, show)
}
