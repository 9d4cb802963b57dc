package contest

import (
	"context"
	"fmt"

	"github.com/musterhq/muster/bench/internal/console"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/segment/segmenttest"
)

// define creates the segments that are kept while events come in.
func (o Options) define(ctx context.Context, s *server.Server) error {
	if o.Segments == 0 {
		return nil
	}
	c, err := console.SignIn(ctx, s.Credentials)
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range o.Segments {
		if _, err := c.CreateSegment(ctx, fmt.Sprintf("live %d", i+1), segmenttest.LiveSegments[i]); err != nil {
			return err
		}
	}
	return nil
}
