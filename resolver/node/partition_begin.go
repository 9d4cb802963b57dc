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
	p.startSharing(p.run, p.from)
	// These add records of their own, so they wait until the state is that of
	// the end of the log.
	p.done.Add(5)
	go p.rebuildLoop(p.acting)
	go p.continueLoop(p.run)
	go p.tickLoop(p.acting)
	go p.eraseLoop(p.acting)
	go p.buildLoop(p.acting)
	if p.node.emails != nil {
		p.done.Add(1)
		go p.releaseLoop(p.acting)
		if p.id == 0 {
			p.done.Add(1)
			go p.reconcileLoop(p.acting)
		}
	}
	if p.from.Next < end {
		// The next start need not replay all that again.
		p.requestCheckpoint()
	}
	return nil
}
