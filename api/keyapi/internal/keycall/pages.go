package keycall

import (
	"errors"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
)

// CursorFault is the fault of the cursor of a query.
func CursorFault(err error) error {
	if errors.Is(err, paging.ErrCursor) {
		return Fail("cursor Input should be one that this call answered; leave it out to start at the beginning")
	}
	return err
}

// Ordinal reads the query's cursor of a list in order of ordinals.
func (c *Call) Ordinal() (uint32, error) {
	from, err := paging.DecodeOrdinal(c.QueryArgs().Peek("cursor"))
	return from, CursorFault(err)
}

// OldestFirst is the page that the query asks for of a list that is sorted by age, from
// the state that read reads, and the cursor of what follows.
func OldestFirst[T, R any](c *Call, read func(func(*resolver.View) error) error, all func(*resolver.View) []T, of func(*T) paging.Age,
	show func(*resolver.View, *T) R) (out []R, next string, err error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, "", err
	}
	after, err := paging.DecodeAge(c.QueryArgs().Peek("cursor"))
	if err != nil {
		return nil, "", CursorFault(err)
	}
	var room paging.Room
	err = read(func(v *resolver.View) error {
		out, next, room = paging.ShowByAge(all(v), after, limit, false, of, func(x *T) R { return show(v, x) })
		return nil
	})
	if err == nil {
		err = c.Hold(room.Bytes)
	}
	return out, next, err
}

// Hold takes the bytes of a large page from the memory that all requests share.
func (c *Call) Hold(n int) error {
	if n > LargeAnswer && !c.Backend.Memory.Hold(c.RequestCtx, n) {
		return ErrNoMemory
	}
	return nil
}

// CampaignPage is [OldestFirst] of the campaigns.
func CampaignPage[R any](c *Call, read func(func(*resolver.View) error) error, show func(*resolver.View, *campaigns.Campaign) R) ([]R, string, error) {
	return OldestFirst(c, read, func(v *resolver.View) []campaigns.Campaign { return v.Campaigns().All() }, func(x *campaigns.Campaign) paging.Age { return paging.Age{CreatedMs: x.CreatedMs, ID: x.ID} }, show)
}

// SegmentPage is [OldestFirst] of the segments.
func SegmentPage[R any](c *Call, read func(func(*resolver.View) error) error, show func(*resolver.View, *resolver.Segment) R) ([]R, string, error) {
	return OldestFirst(c, read, func(v *resolver.View) []resolver.Segment { return v.Segments().All() }, func(x *resolver.Segment) paging.Age { return paging.Age{CreatedMs: x.CreatedMs, ID: x.ID} }, show)
}

// LargeAnswer is from how many bytes on an answer is taken from the memory that
// all requests share.
const LargeAnswer = 64 << 10
