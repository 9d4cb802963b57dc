package node

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/musterhq/muster/resolver/internal/wake"
)

// Open brings the state of the partitions in Options.Owned up to the end of the
// log and starts. It returns once everything acknowledged before is applied.
func Open(ctx context.Context, opts Options) (*Node, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	count := o.Log.Partitions()
	n := &Node{
		opts: o, failed: newFatal(), queued: wake.NewBroadcast(), campaigns: wake.NewBroadcast(), inboxes: wake.NewBroadcast(), changed: wake.NewBroadcast(),
		partitions: make([]atomic.Pointer[partition], count), slots: make([]slot, count),
	}
	n.life, n.endLife = context.WithCancel(context.Background())
	for i := range n.slots {
		n.slots[i].turn = make(chan struct{}, 1)
	}
	if h, ok := o.History.(interface{ OnLoss(fn func()) }); ok {
		h.OnLoss(n.historyLost)
	}
	n.directory = startDirectoryClient(n)
	owned := o.Owned
	if owned == nil {
		for i := range count {
			owned = append(owned, i)
		}
	}
	for _, i := range owned {
		if err := n.Take(ctx, i); err != nil {
			return nil, errors.Join(err, n.Close(ctx))
		}
	}
	return n, nil
}

// historyLost makes the partitions compare how far history is with how far it was.
func (n *Node) historyLost() {
	for i := range n.slots {
		if p := n.slots[i].partition(); p != nil {
			p.feed.Compare()
		}
	}
}

// Close stops the node and writes a last checkpoint. ctx bounds how long
// history may take to catch up.
func (n *Node) Close(ctx context.Context) error {
	n.closes.Do(func() { n.closeErr = n.close(ctx) })
	return n.closeErr
}
