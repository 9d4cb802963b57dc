package node

import (
	"context"

	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/node/internal/sharing"
)

// Forget removes what is left here of a partition that is neither served nor warm, once
// other nodes have shared a newer checkpoint of it: nothing here learns what is erased.
func (n *Node) Forget(ctx context.Context, partition int) error {
	s, err := n.turn(ctx, partition)
	if err != nil {
		return err
	}
	defer func() { <-s.turn }()
	if s.partition() != nil {
		return nil
	}
	dir := checkpoint.Dir{FS: n.opts.FS, Root: checkpoint.Partition(n.opts.FS, n.opts.Dir, partition), Log: n.opts.LogName}
	return sharing.New(n.opts.Shared, partition, &dir, n.opts.Logger.With("partition", partition)).ForgetOlder(ctx, sharing.Log{
		Bounds: func(ctx context.Context) (start, end int64, err error) { return n.opts.Log.Bounds(ctx, partition) },
		Check: func(ctx context.Context, x checkpoint.Candidate, start int64) error {
			return n.checkLog(ctx, partition, x, start)
		},
	})
}
