package console

import (
	"context"
	"fmt"

	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/segment/segmenttest"
)

// CreateLiveSegments signs in and saves the first n of
// [segmenttest.LiveSegments], which the server then keeps while events come in.
func CreateLiveSegments(ctx context.Context, credentials server.Credentials, n int) error {
	if n == 0 {
		return nil
	}
	c, err := SignIn(ctx, credentials)
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range n {
		if _, err := c.CreateSegment(ctx, fmt.Sprintf("live %d", i+1), segmenttest.LiveSegments[i]); err != nil {
			return err
		}
	}
	return nil
}
