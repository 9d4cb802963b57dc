package node

import (
	"context"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/view"
	"github.com/musterhq/muster/segment"
)

// refreshRounds is how often changed profiles are read again before a question.
const refreshRounds = 256

// RefreshColumns brings the columns of an account's fields near the present, a little at
// a time, so that Apply does not wait for long when they are asked for. Errors are those of
// [Node.Read].
func (n *Node) RefreshColumns(ctx context.Context, account uint64) error {
	p, err := n.owner(account)
	if err != nil {
		return err
	}
	for range refreshRounds {
		near := false
		err := p.look(account, func(v *resolver.View) (err error) {
			near, err = v.Columns().Refresh()
			return err
		})
		if err != nil || near {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// BuildColumns makes the columns that the first preview would make, unless the account
// has some: see [view.View.Snapshot]. Errors are those of [Node.Read].
func (n *Node) BuildColumns(ctx context.Context, account uint64) error {
	var snap *view.Snapshot
	err := n.Read(ctx, account, func(v *resolver.View) error {
		snap = v.Columns().First()
		return nil
	})
	if err != nil || snap == nil {
		return err
	}
	defer snap.Close() // it only gives memory back
	return snap.Scan(ctx, func(uint32, *segment.Facts) error { return nil })
}
