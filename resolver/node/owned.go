package node

import (
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/checkpoint"

	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"
)

// Remote carries out commands for partitions that other nodes serve.
type Remote interface {
	// Command hands a whole record to the owner of the partition, who is to call
	// [Node.SubmitCommand], and returns the reply. A refusal by the state machine
	// is a *[resolver.Refusal]. Errors wrap [resolver.ErrNotOwner] (nothing was stored) or
	// [resolver.ErrUnavailable] (it may have been stored).
	Command(ctx context.Context, partition int, rec []byte) (reply []byte, err error)
}

// slot is the place of a partition in a node, whether it is here or not.
type slot struct {
	// turn is held while the partition is taken, released or closing. It is a
	// channel because callers wait for it with a context.
	turn chan struct{}
	mu   struct {
		sync.Mutex
		p *partition // from the first file opened to the last one closed
	}
}

func (s *slot) set(p *partition) {
	s.mu.Lock()
	s.mu.p = p
	s.mu.Unlock()
}

func (s *slot) partition() *partition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.p
}

// ownership counts what [Node.Ownership] tells.
type ownership struct {
	taken, failed, released atomic.Int64
	takeNs                  atomic.Int64
}

// Ownership tells how partitions came and went, for metrics.
type Ownership struct {
	// Partitions is how many there are, Owned how many are served here.
	Partitions, Owned int
	// Taken, TakesFailed and Released count since the start.
	Taken, TakesFailed, Released int64
	// TakeNanoseconds is how long taking took, in all that succeeded.
	TakeNanoseconds int64
}

// Ownership returns the node's numbers of partitions.
func (n *Node) Ownership() Ownership {
	return Ownership{
		Partitions: len(n.partitions), Owned: len(n.Owned()),
		Taken: n.ownership.taken.Load(), TakesFailed: n.ownership.failed.Load(), Released: n.ownership.released.Load(),
		TakeNanoseconds: n.ownership.takeNs.Load(),
	}
}

// here yields the partitions that are served here.
func (n *Node) here() iter.Seq[*partition] {
	return func(yield func(*partition) bool) {
		for i := range n.partitions {
			if p := n.partitions[i].Load(); p != nil && !yield(p) {
				return
			}
		}
	}
}

// Partitions is the number of partitions of the log, here or not.
func (n *Node) Partitions() int { return len(n.partitions) }

// PartitionOf is the partition of an account.
func (n *Node) PartitionOf(account uint64) int { return int(account % uint64(len(n.partitions))) }

// Owns reports whether the partition is loaded and answers here.
func (n *Node) Owns(partition int) bool {
	return partition >= 0 && partition < len(n.partitions) && n.partitions[partition].Load() != nil
}

// Owned lists the partitions that are loaded and answer here, in order.
func (n *Node) Owned() []int {
	list := make([]int, 0, len(n.partitions))
	for p := range n.here() {
		list = append(list, p.id)
	}
	return list
}

// Changed returns a channel that is closed when a partition became ready or
// ceased to be served since the call.
func (n *Node) Changed() <-chan struct{} { return n.changed.Wait() }

func notOwner(partition int) error {
	return fmt.Errorf("partition %d: %w", partition, resolver.ErrNotOwner)
}

// owner is the partition of an account, or an error that wraps [resolver.ErrNotOwner].
func (n *Node) owner(account uint64) (*partition, error) {
	i := account % uint64(len(n.partitions))
	if p := n.partitions[i].Load(); p != nil {
		return p, nil
	}
	return nil, notOwner(int(i))
}

// turn waits for the turn to take or release a partition.
func (n *Node) turn(ctx context.Context, partition int) (*slot, error) {
	if partition < 0 || partition >= len(n.slots) {
		return nil, fmt.Errorf("there is no partition %d: the log has %d", partition, len(n.slots))
	}
	s := &n.slots[partition]
	if err := ctx.Err(); err != nil {
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
		<-s.turn
		return nil, fmt.Errorf("%w: the service stops", resolver.ErrUnavailable)
	case <-n.failed:
		<-s.turn
		return nil, fmt.Errorf("%w: %w", resolver.ErrUnavailable, n.failure)
	default:
		return s, nil
	}
}

// Take begins to serve a partition: it loads the newest checkpoint and replays the
// log to its end, unless [Node.Warm] has done so, and then answers and acts. It
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
	select {
	case <-n.failed: // Fail may have come before the slot was set
		s.set(nil)
		return nil, fmt.Errorf("%w: %w", resolver.ErrUnavailable, n.failure)
	default:
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
		n.fail(err) // or its requests would wait here for another build
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
		if e := p.forget(); e != nil {
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
	n.emails.close()
	return err
}
