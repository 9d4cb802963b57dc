package node

import "context"

// begin makes a loaded partition act: its state is brought to the end of the log,
// and the epoch begun.
func (p *partition) begin(ctx context.Context) error {
	_, end, err := p.node.opts.Log.Bounds(ctx, p.id)
	if err != nil {
		return err
	}
	if err := p.replay(ctx, end); err != nil {
		return err
	}
	if err := p.appendEpoch(ctx); err != nil {
		return err
	}
	p.sharing.Start(p.life.run, p.loaded.from)
	// These add records of their own, so they wait until the state is that of
	// the end of the log.
	p.life.whileOwned(p.rebuildLoop)
	p.life.follow(p.continueLoop)
	p.life.whileOwned(p.tickLoop)
	p.life.whileOwned(p.eraseLoop)
	p.life.whileOwned(p.buildLoop)
	if p.node.directory != nil {
		p.life.whileOwned(p.releaseLoop)
		if p.id == 0 {
			p.life.whileOwned(p.reconcileLoop)
		}
	}
	if p.loaded.from.Next < end {
		// The next start need not replay all that again.
		p.checkpoint.requestFirst()
	}
	return nil
}
