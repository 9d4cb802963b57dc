package evaluation

import (
	"context"
	"sync"

	"github.com/musterhq/muster/internal/panics"
)

// columnMaker makes the columns of an account's fields before previews ask for them, one
// account at a time: see [node.Node.BuildColumns].
type columnMaker struct {
	busy chan struct{} // has one while columns are being made
	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup
}

func newColumnMaker() *columnMaker {
	m := &columnMaker{busy: make(chan struct{}, 1)}
	m.ctx, m.stop = context.WithCancel(context.Background())
	return m
}

func (m *columnMaker) close() {
	m.stop()
	m.done.Wait()
}

// PrepareColumns sees to columns of the account's fields, and to those of history where it
// has such, while a user thinks about a condition. It does not wait for them. When fields of
// another account are being prepared, the first preview makes these.
func (e *Evaluator) PrepareColumns(account uint64) {
	if h, ok := e.opts.History.(interface{ ExpectQuestions() }); ok {
		h.ExpectQuestions()
	}
	m := e.columns
	select {
	case m.busy <- struct{}{}:
	default:
		return
	}
	m.done.Go(func() {
		defer func() {
			<-m.busy
			if fault := recover(); fault != nil {
				panics.Report(e.opts.Metrics, e.opts.Logger, "columns for previews", fault)
			}
		}()
		ctx, cancel := context.WithTimeout(m.ctx, e.opts.Timeout)
		defer cancel()
		if err := e.opts.Node.BuildColumns(ctx, account); err != nil && ctx.Err() == nil {
			e.opts.Logger.Warn("fields could not be prepared for previews; the first preview of each scans the profiles", "error", err)
		}
	})
}
