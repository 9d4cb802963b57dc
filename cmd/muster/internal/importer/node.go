package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
)

// nodeTarget is an account of the node in this process.
type nodeTarget struct {
	node         *node.Node
	account      uint64
	triggerFlows bool
	now          func() time.Time
	rand         io.Reader
	decoder      *ingest.Decoder
	out          resolver.Outcome
}

// ToNode returns the target of a node in this process.
func ToNode(node *node.Node, account uint64, triggerFlows bool, now func() time.Time, rand io.Reader) (Target, error) {
	d, err := ingest.NewDecoder(ingest.Limits{})
	if err != nil {
		return nil, err
	}
	return &nodeTarget{node: node, account: account, triggerFlows: triggerFlows, now: now, rand: rand, decoder: d}, nil
}

func (t *nodeTarget) next(ctx context.Context, file [32]byte, from uint64) (uint64, []uint32, error) {
	// A record without rows is applied after every one before it, also one that was stored
	// for a caller that did not wait for the answer.
	r, err := t.store(ctx, file, &chunk{first: from})
	return r.next, slices.Clone(t.out.RefusedRows), err
}

func (t *nodeTarget) store(ctx context.Context, file [32]byte, c *chunk) (result, error) {
	var r result
	if err := t.node.Read(ctx, t.account, func(v *resolver.View) error {
		t.decoder.IgnoreUnknown(v.Settings().IgnoreUnknownFields)
		return nil
	}); err != nil {
		return r, err
	}
	t.decoder.StartImport(file, c.first, t.triggerFlows)
	nowMs := t.now().UnixMilli()
	var stored []int // places of the rows that are events of the record
	for i := range c.rows() {
		text := c.row(i)
		fault := c.faults[i]
		if fault != "" {
			text = []byte("null") // refused, and counted as a row
		}
		err := t.decoder.AppendImportRow(text, nowMs)
		switch {
		case fault == storedBefore:
		case fault != "":
			r.refused = append(r.refused, refusedRow{i, fault})
		case err != nil:
			r.refused = append(r.refused, refusedRow{i, err.Error()})
		default:
			stored = append(stored, i)
		}
	}
	env := eventlog.Envelope{Account: t.account, StampMs: t.now().UnixMilli()}
	if _, err := io.ReadFull(t.rand, env.ID[:]); err != nil {
		return r, fmt.Errorf("source of randomness: %w", err)
	}
	rec := t.decoder.Finish(&env)
	err := retry(ctx, nil, func() (again bool, err error) {
		err = t.node.Submit(ctx, t.account, rec, &t.out)
		return errors.Is(err, resolver.ErrOverloaded), err
	})
	switch {
	case err != nil:
		return r, err
	case t.out.Refusal != nil && t.out.NextRow != c.first:
		r.next = t.out.NextRow
		return r, nil
	case t.out.Refusal != nil:
		return r, t.out.Refusal
	case len(t.out.Events) != len(stored):
		return r, fmt.Errorf("%d answers for %d events", len(t.out.Events), len(stored))
	}
	for i, o := range t.out.Events {
		switch o.Status {
		case resolver.EventAccepted:
			r.accepted++
		case resolver.EventDuplicate:
			r.duplicates++
		default:
			r.refused = append(r.refused, refusedRow{stored[i], o.Refusal.Message})
		}
	}
	sortRefused(r.refused)
	r.next = t.out.NextRow
	return r, nil
}
