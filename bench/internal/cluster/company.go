package cluster

import (
	"context"
	"fmt"

	"github.com/musterhq/muster/bench/internal/condition"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/surface"
	"github.com/musterhq/muster/segment/segmenttest"
)

// company is one whose account is of a certain partition.
type company struct {
	account     uint64
	credentials server.Credentials
	levels      []level
}

// level is a live segment of those with so many events of a type, or more. The
// load makes profiles of one event all the time, so that the least levels tell of
// any batch that counts twice or not at all.
type level struct {
	eventType string
	events    int
	id        string
}

func (l level) definition() string {
	return condition.Activity(l.eventType, condition.Count(">=", l.events))
}

// The levels of the segments that are checked, in order: each type with the least
// number, each with the next, and so on.
var (
	levelTypes  = []string{"page_viewed", "item_viewed", "cart_added", "purchased", "searched"}
	levelEvents = []int{1, 2, 4, 8}
)

// found makes a company in each of the partitions that are named, with its
// segments: half of them by levels, the others of the mixed kinds that bench
// ingest keeps. The first company is of partition 0.
func (g *group) found(ctx context.Context, partitions ...int) error {
	g.companies = make([]*company, g.o.Partitions)
	first, err := g.Credentials()
	if err != nil {
		return err
	}
	missing := map[uint64]bool{}
	for _, p := range partitions {
		missing[uint64(p)] = true
	}
	add := func(c server.Credentials) (bool, error) {
		account, err := c.Account()
		if err != nil {
			return false, err
		}
		p := account % uint64(g.o.Partitions)
		if !missing[p] {
			return false, nil
		}
		delete(missing, p)
		g.companies[p] = &company{account: account, credentials: c}
		return true, g.companies[p].define(ctx, g.o.Segments)
	}
	if _, err := add(first); err != nil {
		return err
	}
	admin, err := surface.SignIn(ctx, first)
	if err != nil {
		return err
	}
	defer admin.Close()
	for len(missing) > 0 {
		if err := admin.CreateCompany(ctx, fmt.Sprintf("bench-%d", len(missing)), 0, add); err != nil {
			return err
		}
	}
	return nil
}

func (c *company) define(ctx context.Context, segments int) error {
	client, err := surface.SignIn(ctx, c.credentials)
	if err != nil {
		return err
	}
	defer client.Close()
	for i := range segments {
		if i%2 == 0 {
			if _, err := client.CreateSegment(ctx, fmt.Sprintf("live %d", i+1), segmenttest.LiveSegments[i]); err != nil {
				return err
			}
			continue
		}
		l := level{eventType: levelTypes[i/2%len(levelTypes)], events: levelEvents[i/2/len(levelTypes)]}
		if l.id, err = client.CreateSegment(ctx, fmt.Sprintf("%s, %d", l.eventType, l.events), l.definition()); err != nil {
			return err
		}
		c.levels = append(c.levels, l)
	}
	return nil
}
