package resolver_test

import (
	"context"
	"slices"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
)

// served is a node as the simulations of package resolver drive it.
type served struct{ *node.Node }

func (s served) Rebuilding() bool {
	return slices.ContainsFunc(s.Stats(), func(p node.Stats) bool { return p.HistoryRebuilding })
}

func init() {
	resolver.Serve = func(ctx context.Context, o resolver.ServeOptions) (resolver.Served, error) {
		n, err := node.Open(ctx, node.Options{FS: o.FS, Dir: o.Dir, Log: o.Log, History: o.History, Now: o.Now, Rand: o.Rand,
			CheckpointInterval: o.CheckpointInterval, GenerationBytes: o.GenerationBytes, CacheBytes: o.CacheBytes, Feed: o.Feed})
		if err != nil {
			return nil, err
		}
		return served{n}, nil
	}
}
