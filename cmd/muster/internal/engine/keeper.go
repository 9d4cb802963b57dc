package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/musterhq/muster/cluster"
)

// member is what a keeper follows: a [*cluster.Member].
type member interface {
	Assigned() []int
	Planned() []int
	Warmed(partitions []int)
	Changed() <-chan struct{}
	Stats() cluster.Stats
}

// taker is who does it: a [*node.Node].
type taker interface {
	Take(ctx context.Context, partition int) error
	Warm(ctx context.Context, partition int) error
	Cool(ctx context.Context, partition int) error
	Release(ctx context.Context, partition int) error
	Forget(ctx context.Context, partition int) error
	Owns(partition int) bool
	HoldsLease(partition int) bool
	Changed() <-chan struct{}
	Failed() <-chan struct{}
}

const (
	// releaseTime is how long a partition that leaves may take for those who wait
	// and a last checkpoint.
	releaseTime = 20 * time.Second
	// The pauses after a partition could not be taken, growing.
	firstRetry = 500 * time.Millisecond
	lastRetry  = 30 * time.Second
	// renewPause is the least time between two epochs of a partition that others
	// keep taking from this node in the log.
	renewPause = 3 * time.Second
	// forgetPause is between two looks at whether what is left of a partition that other
	// nodes have may go.
	forgetPause = time.Minute
)

// keeper takes the partitions that are assigned to this node, releases those that
// are not any more, and warms those that are planned to be.
type keeper struct {
	node   taker
	member member
	log    *slog.Logger
	// loads has a place for each partition that is loaded at once, warms for each
	// that is warmed: what is planned holds up nothing that is assigned.
	loads, warms chan struct{}
	stop         context.CancelFunc
	done         sync.WaitGroup

	mu struct {
		sync.Mutex
		loading map[int]bool
		warm    map[int]bool
		// faults are why partitions that are assigned could not be taken.
		faults  map[int]error
		changed chan struct{} // closed at the next change of loading or faults
	}
}

func newKeeper(node taker, m member, partitions int, log *slog.Logger) *keeper {
	k := &keeper{node: node, member: m, log: log, loads: make(chan struct{}, runtime.GOMAXPROCS(0)), warms: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
	k.mu.loading, k.mu.warm, k.mu.faults, k.mu.changed = map[int]bool{}, map[int]bool{}, map[int]error{}, make(chan struct{})
	for _, p := range m.Assigned() {
		k.mu.loading[p] = true
	}
	var ctx context.Context
	ctx, k.stop = context.WithCancel(context.Background())
	for p := range partitions {
		k.done.Go(func() { k.follow(ctx, p) })
	}
	return k
}

// close ends the following; what is here stays.
func (k *keeper) close() {
	k.stop()
	k.done.Wait()
}

// note records the outcome of a partition's loading.
func (k *keeper) note(partition int, loading bool, fault error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.mu.loading, partition)
	delete(k.mu.faults, partition)
	if loading {
		k.mu.loading[partition] = true
	}
	if fault != nil {
		k.mu.faults[partition] = fault
	}
	close(k.mu.changed)
	k.mu.changed = make(chan struct{})
}

// noteWarm notes that a partition is warm, or is not any more, and tells the group.
func (k *keeper) noteWarm(partition int, is bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.warm[partition] == is {
		return
	}
	delete(k.mu.warm, partition)
	if is {
		k.mu.warm[partition] = true
	}
	k.member.Warmed(slices.Sorted(maps.Keys(k.mu.warm)))
}

func (k *keeper) isWarm(partition int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.warm[partition]
}

// loading are the partitions that are assigned to this node and not here yet, in
// order.
func (k *keeper) loading() []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := []int{}
	for p := range k.mu.loading {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// loaded waits until nothing is being loaded. The error is that of a partition
// that could not be.
func (k *keeper) loaded(ctx context.Context) error {
	for {
		k.mu.Lock()
		changed, left := k.mu.changed, len(k.mu.loading)
		for p, err := range k.mu.faults {
			k.mu.Unlock()
			return fmt.Errorf("take partition %d: %w", p, err)
		}
		k.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follow keeps one partition where it belongs.
func (k *keeper) follow(ctx context.Context, partition int) {
	var generation int32 = -1 // of the last Take that succeeded
	var renewed time.Time
	var forget time.Time // when to look next whether files may go
	retry := firstRetry
	for {
		members, state := k.member.Changed(), k.node.Changed()
		stats := k.member.Stats()
		assigned := slices.Contains(k.member.Assigned(), partition)
		planned := !assigned && slices.Contains(k.member.Planned(), partition)
		pause := time.Duration(-1)
		switch {
		case assigned && (generation != stats.Generation || !k.node.Owns(partition)):
			err := k.take(ctx, partition)
			if err != nil && k.isWarm(partition) {
				k.cool(ctx, partition) // it may have left nothing that is warm
			}
			switch {
			case err == nil:
				k.noteWarm(partition, false)
				generation, retry, renewed = stats.Generation, firstRetry, time.Now()
				continue
			case ctx.Err() != nil:
				return
			case errors.Is(err, errUnassigned):
				continue
			}
			k.log.Error("a partition cannot be taken, trying again", "partition", partition, "after", retry, "err", err)
			pause, retry = retry, min(2*retry, lastRetry)
		case assigned && !k.node.HoldsLease(partition) && stats.Confirmed:
			// Another node's epoch stands behind ours, and Kafka says that the
			// partition is ours: a record that was late.
			if since := time.Since(renewed); since < renewPause {
				pause = renewPause - since
				break
			}
			generation = -1
			continue
		case !assigned && k.node.Owns(partition):
			generation = -1
			k.release(partition)
			continue
		case planned && !k.isWarm(partition):
			err := k.warm(ctx, partition)
			switch {
			case err == nil:
				k.noteWarm(partition, true)
				retry = firstRetry
				continue
			case ctx.Err() != nil:
				return
			case errors.Is(err, errUnassigned):
				continue
			}
			k.log.Error("a partition that this node is to have cannot be loaded, trying again; its owner keeps it", "partition", partition, "after", retry, "err", err)
			pause, retry = retry, min(2*retry, lastRetry)
		case !assigned && !planned && k.isWarm(partition):
			k.cool(ctx, partition)
			continue
		case !assigned:
			k.mu.Lock()
			was := k.mu.loading[partition] || k.mu.faults[partition] != nil
			k.mu.Unlock()
			if was {
				k.note(partition, false, nil)
			}
			if planned {
				break
			}
			if !time.Now().Before(forget) {
				forget = time.Now().Add(forgetPause)
				k.forget(ctx, partition)
			}
			pause = time.Until(forget)
		}
		if !k.wait(ctx, pause, members, state) {
			return
		}
	}
}

// forget removes what is left of a partition that other nodes have, if it is of no use
// any more.
func (k *keeper) forget(ctx context.Context, partition int) {
	ctx, cancel := context.WithTimeout(ctx, forgetPause)
	defer cancel()
	if err := k.node.Forget(ctx, partition); err != nil && ctx.Err() == nil {
		k.log.Warn("what this node has of a partition that other nodes own could not be removed; it keeps what they erase", "partition", partition, "err", err)
	}
}

// wait waits for a change, and for no longer than a pause unless that is
// negative. It reports whether to continue.
func (k *keeper) wait(ctx context.Context, pause time.Duration, members, state <-chan struct{}) bool {
	var timer <-chan time.Time
	if pause >= 0 {
		t := time.NewTimer(pause)
		defer t.Stop()
		timer = t.C
		state = nil // its changes are no reason to try earlier
	}
	select {
	case <-members:
	case <-state:
	case <-timer:
	case <-k.node.Failed():
		return false
	case <-ctx.Done():
		return false
	}
	return true
}

// errUnassigned: the partition was given to another node while it was loaded.
var errUnassigned = errors.New("the partition is another node's by now")

// take takes a partition, for as long as it is assigned.
func (k *keeper) take(ctx context.Context, partition int) error {
	ctx, stop := k.while(ctx, partition, k.member.Assigned)
	defer stop()
	here := k.node.Owns(partition)
	if !here {
		k.note(partition, true, nil)
	}
	if !here && !k.isWarm(partition) {
		select {
		case k.loads <- struct{}{}:
			defer func() { <-k.loads }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	begun := time.Now()
	err := k.node.Take(ctx, partition)
	switch {
	case errors.Is(context.Cause(ctx), errUnassigned) && err != nil:
		err = errUnassigned
	case err != nil && ctx.Err() == nil:
		k.note(partition, false, err)
	case err == nil:
		k.note(partition, false, nil)
		if !here {
			k.log.Info("a partition is taken", "partition", partition, "after", time.Since(begun).Round(time.Millisecond))
		}
	}
	return err
}

// warm warms a partition, for as long as it is planned or assigned. It waits for
// its turn only while it is planned.
func (k *keeper) warm(ctx context.Context, partition int) error {
	turn, stop := k.while(ctx, partition, k.member.Planned)
	select {
	case k.warms <- struct{}{}:
		defer func() { <-k.warms }()
		stop()
	case <-turn.Done():
		defer stop()
		return context.Cause(turn)
	}
	ctx, stop = k.while(ctx, partition, func() []int { return append(k.member.Planned(), k.member.Assigned()...) })
	defer stop()
	begun := time.Now()
	err := k.node.Warm(ctx, partition)
	switch {
	case errors.Is(context.Cause(ctx), errUnassigned) && err != nil:
		err = errUnassigned
	case err == nil:
		k.log.Info("a partition is ready to be taken", "partition", partition, "after", time.Since(begun).Round(time.Millisecond))
	}
	return err
}

// cool gives up a partition that is warm, or was.
func (k *keeper) cool(ctx context.Context, partition int) {
	k.noteWarm(partition, false)
	if err := k.node.Cool(ctx, partition); err != nil && ctx.Err() == nil {
		k.log.Warn("a partition that was planned for this node was given up, but not in order", "partition", partition, "err", err)
	}
}

// while returns a context that ends with [errUnassigned] once the partition is not
// in a list of the member's any more. stop must be called.
func (k *keeper) while(ctx context.Context, partition int, list func() []int) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			changed := k.member.Changed()
			if !slices.Contains(list(), partition) {
				cancel(errUnassigned)
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-watched
	}
}

func (k *keeper) release(partition int) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	if err := k.node.Release(ctx, partition); err != nil {
		k.log.Warn("a partition was released, but not in order; the log has all of it", "partition", partition, "err", err)
		return
	}
	k.log.Info("a partition is released", "partition", partition)
}
