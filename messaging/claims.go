package messaging

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
	"github.com/musterhq/muster/resolver/view"
)

// claims asks for claims of outbox items. What is asked for while a claim of the
// account is under way goes into its next one, so that there is one record at a
// time for an account, however many items are about to be carried out: the more
// there are, the more a record holds.
type claims struct {
	node *node.Node
	ctx  context.Context // of the commands
	done *sync.WaitGroup // of those who ask

	mu struct {
		sync.Mutex
		waiting map[claimKey][]*claim // the key is there while a claim is asked for
	}

	records, denied, superseded *metrics.Counter
}

// claimKey is what one record can claim for.
type claimKey struct{ account, epoch uint64 }

// claim is one item to be claimed.
type claim struct {
	item resolver.ClaimItem
	done chan error // has room for one
}

// errDenied reports that an item is not to be carried out any more, or not now.
var errDenied = errors.New("the item is not to be carried out")

func newClaims(ctx context.Context, n *node.Node, done *sync.WaitGroup, set *metrics.Set) *claims {
	c := &claims{
		node: n, ctx: ctx, done: done,
		records:    set.NewCounter("muster_outbox_claim_records_total"),
		denied:     set.NewCounter(`muster_outbox_claims_refused_total{reason="gone"}`),
		superseded: set.NewCounter(`muster_outbox_claims_refused_total{reason="superseded"}`),
	}
	c.mu.waiting = map[claimKey][]*claim{}
	return c
}

// get claims an item and returns once the claim was applied. Any error means that
// it must not be carried out.
func (c *claims) get(ctx context.Context, account uint64, w *view.OutboxWork) error {
	key := claimKey{account, w.Epoch}
	x := &claim{resolver.ClaimItem{Seq: w.Seq, Attempt: w.Attempt}, make(chan error, 1)}
	c.mu.Lock()
	list, asking := c.mu.waiting[key]
	c.mu.waiting[key] = append(list, x)
	c.mu.Unlock()
	if !asking {
		c.done.Go(func() { c.ask(key) })
	}
	select {
	case err := <-x.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask claims what waits, until nothing does.
func (c *claims) ask(key claimKey) {
	for {
		c.mu.Lock()
		list := c.mu.waiting[key]
		if len(list) == 0 {
			delete(c.mu.waiting, key)
			c.mu.Unlock()
			return
		}
		n := min(len(list), resolver.MaxClaims)
		c.mu.waiting[key] = list[n:]
		c.mu.Unlock()
		c.commit(key, list[:n])
	}
}

// commit appends the claims of an account, and tells those who wait for them.
func (c *claims) commit(key claimKey, list []*claim) {
	items := make([]resolver.ClaimItem, len(list))
	for i, x := range list {
		items[i] = x.item
	}
	c.records.Inc()
	denied, err := c.node.Claim(c.ctx, key.account, key.epoch, items)
	for _, x := range list {
		switch {
		case resolver.IsSuperseded(err):
			c.superseded.Inc()
		case err == nil && slices.Contains(denied, x.item.Seq):
			c.denied.Inc()
			x.done <- errDenied
			continue
		}
		x.done <- err
	}
}

// claim readies an item to be carried out: this node holds the lease of the account, and
// the log says that it is about to. end is to be called when the outcome is on
// record. An embedded node has no other to compete with.
func (o *Outbox) claim(ctx context.Context, account uint64, w *view.OutboxWork) (end func(), ok bool) {
	end, ok = o.opts.Node.Effect(account, w.Epoch)
	if !ok || w.Epoch == 0 {
		return end, ok
	}
	err := o.claims.get(ctx, account, w)
	if err == nil {
		return end, true
	}
	end()
	if !errors.Is(err, errDenied) && !resolver.IsSuperseded(err) {
		// The log or the node is away for a while.
		o.opts.Logger.Debug("an item is not claimed", "account", resolver.AccountID(account), "item", w.Seq, "error", err)
		_ = o.opts.Sleep(o.ctx, firstPause)
	}
	return nil, false
}
