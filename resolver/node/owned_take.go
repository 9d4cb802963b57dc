package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
)

// turn waits for the turn to take or release a partition.
func (n *Node) turn(ctx context.Context, partition int) (*slot, error) {
	if partition < 0 || partition >= len(n.slots) {
		return nil, fmt.Errorf("there is no partition %d: the log has %d", partition, len(n.slots))
	}
	s := &n.slots[partition]
	err := ctx.Err()
	if err != nil {
		return nil, fmt.Errorf("partition %d: %w", partition, err)
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("partition %d is being taken or released: %w", partition, ctx.Err())
	case <-n.life.Done():
		return nil, fmt.Errorf("%w: the service stops", resolver.ErrUnavailable)
	}
	select {
	case <-n.life.Done():
		err = fmt.Errorf("%w: the service stops", resolver.ErrUnavailable)
	default:
		err = n.failed.unavailable()
	}
	if err != nil {
		<-s.turn
		return nil, err
	}
	return s, nil
}

// Take begins to serve a partition: it loads the newest checkpoint and replays the
// log to its end, unless [Node.Warm] has done so, and then takes the lease. It
// returns once that is so, or leaves nothing behind. Taking what is here already
// is no error.
func (n *Node) Take(ctx context.Context, partition int) error {
	s, err := n.turn(ctx, partition)
	if err != nil {
		return err
	}
	defer func() { <-s.turn }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.life, cancel)() // Close waits neither for a long replay nor for the log
	if p := n.partitions[partition].Load(); p != nil {
		return p.renew(ctx)
	}
	begun := time.Now() // for the metric only
	p := s.partition()  // it is warm
	if p == nil {
		if p, err = n.load(ctx, s, partition); err != nil {
			return err
		}
	}
	if err := p.begin(ctx); err != nil {
		return n.notTaken(ctx, s, p, err)
	}
	n.ownership.taken.Add(1)
	n.ownership.takeNs.Add(int64(time.Since(begun)))
	n.partitions[partition].Store(p)
	n.changed.Signal()
	return nil
}

// load loads a partition. The caller has its turn.
func (n *Node) load(ctx context.Context, s *slot, partition int) (*partition, error) {
	p := newPartition(n, partition)
	s.set(p)
	if err := n.failed.unavailable(); err != nil { // Fail may have come before the slot was set
		s.set(nil)
		return nil, err
	}
	if err := p.load(ctx); err != nil {
		return nil, n.notTaken(ctx, s, p, err)
	}
	return p, nil
}

// notTaken gives up a partition that is not served yet, because of an error.
func (n *Node) notTaken(ctx context.Context, s *slot, p *partition, err error) error {
	n.ownership.failed.Add(1)
	err = errors.Join(fmt.Errorf("partition %d: %w", p.id, err), p.close(ctx))
	s.set(nil)
	if errors.Is(err, resolver.ErrNewer) {
		n.failed.set(err) // or its requests would wait here for another build
	}
	return err
}

// Release ceases to serve a partition. From its beginning on requests are
// answered with [resolver.ErrNotOwner], and the node does nothing by itself any more;
// those who wait for records are answered first, as long as ctx allows. Then a
// last checkpoint is written if ctx has not ended, and memory and files are
// given back. When ctx ends before all that, Release returns its error, and the
// rest is done all the same: [Node.Take] waits for it. Releasing what is not
// here is no error.
func (n *Node) Release(ctx context.Context, partition int) error {
	s, err := n.turn(ctx, partition)
	if err != nil {
		return err
	}
	p := n.partitions[partition].Load()
	if p == nil {
		<-s.turn
		return nil
	}
	p.retire(ctx)
	n.partitions[partition].Store(nil)
	p.leave()
	n.changed.Signal()
	n.ownership.released.Add(1)
	done := make(chan error, 1)
	n.leaving.Add(1)
	go func() {
		defer n.leaving.Done()
		p.drain(ctx)
		n.endWatchers(p.id)
		err := p.close(ctx)
		p.files.wait() // a reader may be the last to leave
		if e := p.ckpt.FS.RemoveAll(p.ckpt.Path(checkpoint.DirLive)); e != nil {
			p.log.Warn("cannot remove the files of a partition that was released", "error", e)
		}
		if e := p.sharing.Forget(p.checkpoint.last.Load()); e != nil {
			p.log.Warn("cannot remove the checkpoints of a partition that was released", "error", e)
		}
		s.set(nil)
		<-s.turn
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		select {
		case err := <-done:
			return err
		default:
			return fmt.Errorf("partition %d is released, its files are still being closed: %w", partition, ctx.Err())
		}
	}
}

// close ends the node's partitions, those being taken and released among them.
func (n *Node) close(ctx context.Context) (err error) {
	for i := range n.partitions {
		if p := n.partitions[i].Load(); p != nil {
			p.waitErased(ctx)
		}
	}
	n.endLife()
	for i := range n.slots {
		n.slots[i].turn <- struct{}{} // and kept: nothing is taken any more
		if p := n.partitions[i].Load(); p != nil {
			err = errors.Join(err, p.close(ctx))
		} else if p := n.slots[i].partition(); p != nil {
			err = errors.Join(err, p.discard())
		}
	}
	n.leaving.Wait()
	n.directory.close()
	return err
}
