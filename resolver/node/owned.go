package node

import (
	"github.com/musterhq/muster/resolver"

	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
)

// Remote carries out commands for partitions that other nodes serve.
type Remote interface {
	// Command hands a whole record to the owner of the partition, which has to call
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

// ownership has the counts of [Node.Ownership].
type ownership struct {
	taken, failed, released atomic.Int64
	takeNs                  atomic.Int64
}

// Ownership returns how partitions came and went, for metrics.
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
