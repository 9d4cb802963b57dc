package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/resolver"
)

// question is what a node is asked about partitions that it owns.
type question struct {
	Partitions []int           `json:"partitions"`
	Args       json.RawMessage `json:"args"`
}

// Answer answers a question for partitions that are here, as JSON.
type Answer = func(ctx context.Context, name string, partitions []int, args []byte) (any, error)

// Ask has the owners of all partitions answer a question, this node among them by
// answer. Each partition is answered for once. Owners that are not known, not
// there or loading are waited for; then the error wraps [ErrNoOwner]. Questions
// change nothing, so they are asked again whatever went wrong.
func (p *Peers) Ask(ctx context.Context, answer Answer, name string, args any) ([]json.RawMessage, error) {
	node := p.node.Load()
	if node == nil {
		return nil, ErrNoOwner
	}
	all := make([]int, node.Partitions())
	for i := range all {
		all[i] = i
	}
	return p.ask(ctx, node, all, answer, name, args)
}

// AskOwner is [Peers.Ask] for one partition.
func (p *Peers) AskOwner(ctx context.Context, partition int, answer Answer, name string, args any) (json.RawMessage, error) {
	node := p.node.Load()
	if node == nil {
		return nil, ErrNoOwner
	}
	replies, err := p.ask(ctx, node, []int{partition}, answer, name, args)
	if err != nil {
		return nil, err
	}
	return replies[0], nil
}

// ask asks about the partitions that are left.
func (p *Peers) ask(ctx context.Context, node Node, left []int, answer Answer, name string, args any) ([]json.RawMessage, error) {
	p.asked.Inc()
	text, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("question %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.opts.Wait)
	defer cancel()
	var out []json.RawMessage
	fault := error(ErrNoOwner)
	for again := firstPause; ; again = min(2*again, lastPause) {
		byNode := map[string][]int{} // by address, "" for this node
		for _, partition := range left {
			if node.Owns(partition) {
				byNode[""] = append(byNode[""], partition)
			} else if owner, ok := p.opts.Table.Owner(partition); ok && owner.ID != p.opts.Self {
				byNode[owner.Address] = append(byNode[owner.Address], partition)
			}
		}
		var asking sync.WaitGroup
		var mu sync.Mutex
		for addr, list := range byNode {
			asking.Go(func() {
				q := question{list, text}
				var reply json.RawMessage
				var err error
				if addr == "" {
					reply, err = p.answerHere(ctx, answer, name, q)
				} else {
					reply, err = p.askNode(ctx, addr, name, q)
				}
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					fault = err
					return
				}
				out = append(out, reply)
				left = slices.DeleteFunc(left, func(x int) bool { return slices.Contains(list, x) })
			})
		}
		asking.Wait()
		var refused *resolver.Refusal
		if len(left) == 0 || errors.As(fault, &refused) {
			break
		}
		p.opts.Table.Refresh()
		if pause.For(ctx, again) != nil {
			break
		}
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("question %s: partitions %v: %w", name, left, fault)
	}
	return out, nil
}

func (p *Peers) askNode(ctx context.Context, addr, name string, q question) (json.RawMessage, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	// A node that is frozen must not take all the time there is.
	ctx, cancel := context.WithTimeout(ctx, max(time.Second, p.opts.Wait/3))
	defer cancel()
	return p.post(ctx, addr, askPath+name, body)
}

// answerHere answers for partitions of this node. One that left meanwhile may be
// missing in the answer, so that it does not count.
func (p *Peers) answerHere(ctx context.Context, answer Answer, name string, q question) (json.RawMessage, error) {
	node := p.node.Load()
	if node == nil || !ownsAll(node, q.Partitions) {
		return nil, fmt.Errorf("partitions %v: %w", q.Partitions, resolver.ErrNotOwner)
	}
	v, err := answer(ctx, name, q.Partitions, q.Args)
	if err != nil {
		return nil, err
	}
	if !ownsAll(node, q.Partitions) {
		return nil, fmt.Errorf("partitions %v: %w", q.Partitions, resolver.ErrNotOwner)
	}
	return json.Marshal(v)
}

func ownsAll(node Node, partitions []int) bool {
	for _, x := range partitions {
		if !node.Owns(x) {
			return false
		}
	}
	return true
}
