package node

import "context"

// dropErased sees to it that no checkpoint from before an erasure stays: a restore with
// a later log brings such back, and a crash at the end of an erasure leaves one. Else
// it would stay until something happens. So would one that this start has set aside.
func (p *partition) dropErased(ctx context.Context) error {
	p.mu.RLock()
	account, upTo := p.mu.m.LastErased()
	p.mu.RUnlock()
	p.checkpoint.Lock()
	offsets, err := p.ckpt.List()
	if err == nil {
		err = p.ckpt.RemoveSetAsideBelow(upTo)
	}
	p.checkpoint.Unlock()
	if err != nil {
		return err
	}
	if len(offsets) == 0 || offsets[0] >= upTo {
		return nil
	}
	p.log.Info("dropping checkpoints from before an erasure", "oldest", offsets[0], "erased_before", upTo)
	if err := p.checkpointBeyond(ctx, upTo); err != nil {
		return err
	}
	return p.anotherCheckpoint(ctx, account)
}
