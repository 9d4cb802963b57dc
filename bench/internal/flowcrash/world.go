package flowcrash

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/bench/internal/surface"
	"github.com/musterhq/muster/internal/pause"
)

// world is what is set up on the server.
type world struct {
	places places
	flows  []*flow
}

func (w *world) flow(name string) *flow {
	i := slices.IndexFunc(w.flows, func(f *flow) bool { return f.name == name })
	return w.flows[i]
}

// buildTimeout bounds how long a segment is built while there is nothing yet.
const buildTimeout = 30 * time.Second

// setUp makes segments, the list and the flows, and publishes all but flowGold.
func setUp(ctx context.Context, c *surface.Client, h *hooks, windows Windows) (*world, error) {
	w := &world{places: places{windows: windows}}
	var made struct {
		ID string `json:"_id"`
	}
	if err := c.SendToAll(ctx); err != nil {
		return nil, err
	}
	if err := c.Console(ctx, "POST", "/lists", object{"name": "news"}, &made); err != nil {
		return nil, err
	}
	w.places.list = made.ID
	building, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	for _, s := range []struct {
		name       string
		definition object
		id         *string
	}{
		{"cart", did("cart_filled", windows.Cart), &w.places.cart},
		{"browse", did("browsed", windows.Browse), &w.places.browse},
		{"gold", tierIs(tierGold), &w.places.gold},
	} {
		definition, err := json.Marshal(s.definition)
		if err != nil {
			return nil, err
		}
		if *s.id, err = c.CreateLiveSegment(building, s.name, string(definition)); err != nil {
			return nil, err
		}
	}
	// The first is needed for the definition of the second.
	order := ""
	for i := range flowDefs(h, &w.places, "") {
		f := flowDefs(h, &w.places, order)[i]
		if err := c.Console(ctx, "POST", "/flows", f.definition(), &made); err != nil {
			return nil, fmt.Errorf("flow %s: %w", f.name, err)
		}
		f.id = made.ID
		if f.name == flowOrder {
			order = f.id
		}
		w.flows = append(w.flows, f)
		if f.name == flowGold {
			continue
		}
		if err := publish(ctx, c, f); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// publish publishes a flow and waits until it is live.
func publish(ctx context.Context, c *surface.Client, f *flow) error {
	if _, err := c.PublishFlow(ctx, f.id); err != nil {
		return fmt.Errorf("flow %s: %w", f.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	err := pause.Until(ctx, 20*time.Millisecond, func() (bool, error) {
		s, err := c.Flow(ctx, f.id)
		return s.Status == "live", err
	})
	if err != nil {
		return fmt.Errorf("flow %s is not live: %w", f.name, err)
	}
	return nil
}
