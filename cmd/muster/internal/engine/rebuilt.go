package engine

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/pause"
)

// rebuiltPoll is the pause between looks at how far history is.
const rebuiltPoll = 50 * time.Millisecond

// Rebuilt waits until history has every event of the log, and returns why the node
// failed or ctx ended before.
func (e *Engine) Rebuilt(ctx context.Context) error {
	for {
		behind := false
		for _, s := range e.Node.Stats() {
			behind = behind || s.HistoryRebuilding || s.HistoryPosition < s.Applied
		}
		if err := e.Node.Err(); err != nil || !behind {
			return err
		}
		if err := pause.For(ctx, rebuiltPoll); err != nil {
			return err
		}
	}
}
