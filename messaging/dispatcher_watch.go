package messaging

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
)

// The pace of looking for campaigns that are not being sent. Most are found at
// once: the node says when a partition came and when a campaign was started.
const (
	takeUpEvery = 30 * time.Second
	takeUpPause = time.Second // after a run that could not continue
)

// watch takes up campaigns of the accounts that this node owns: those that
// another node began, and those of its own that could not continue for a while.
func (d *Dispatcher) watch() {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		changed, campaigns := d.opts.Node.Changed(), d.opts.Node.CampaignChanged()
		if err := d.takeUp(); err != nil && d.ctx.Err() == nil {
			d.opts.Logger.Debug("campaigns are not taken up", "error", err)
		}
		t.Reset(takeUpEvery)
		select {
		case <-changed:
		case <-campaigns:
		case <-t.C:
		case <-d.again:
			_ = d.opts.Sleep(d.ctx, takeUpPause)
		case <-d.ctx.Done():
			return
		}
	}
}

// takeUp begins the campaigns whose run continues and which are not being sent
// here.
func (d *Dispatcher) takeUp() error {
	for _, account := range d.opts.Node.AccountsSending() {
		var busy []campaigns.Run
		err := d.opts.Node.Look(account, func(v *resolver.View) error { busy = v.Campaigns().Busy(); return nil })
		if err != nil {
			return fmt.Errorf("campaigns that were cut off: %w", err)
		}
		for _, r := range busy {
			if d.knows(runKey{account, r.ID}) {
				continue
			}
			if !r.Woken {
				d.opts.Logger.Info("a campaign that was cut off continues", "campaign", r.ID, "run", r.Run, "sent", r.Sent, "of", r.Total)
			}
			d.begin(account, r, !r.Woken)
		}
	}
	return nil
}

// knows reports whether a campaign is being sent here, or is about to be.
func (d *Dispatcher) knows(key runKey) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.runs[key] != nil || d.mu.starting[key] > 0
}

// sends reports whether a run of a campaign has not ended here, even if the state says that it
// is over.
func (d *Dispatcher) sends(key runKey) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.runs[key] != nil
}

// startsNow notes that a campaign is being started: that its run is on record is
// known to all before it is begun. done ends that.
func (d *Dispatcher) startsNow(key runKey) (done func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.starting[key]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.mu.starting[key]--; d.mu.starting[key] == 0 {
			delete(d.mu.starting, key)
		}
	}
}
