package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/query/duckdb"
)

// HistoryMark is a file in a directory with a log of its own whose history is in ClickHouse.
// That it is there says so; what is in it is for people.
const HistoryMark = "history.json"

// HistoryElsewhere reports whether history was in ClickHouse at the directory's last start.
func HistoryElsewhere(dir string) (bool, error) {
	_, err := os.Lstat(filepath.Join(dir, HistoryMark))
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, fmt.Errorf("data directory: %w", err)
}

// noteHistory notes in a directory with a log of its own where its history is. A start that
// is refused changes nothing, so it is called behind all that refuses one.
func noteHistory(dir string, elsewhere bool) error {
	noted, err := HistoryElsewhere(dir)
	switch {
	case err != nil || noted == elsewhere:
		return err
	case elsewhere:
		return writeJSON(dir, HistoryMark, map[string]string{"kind": "clickhouse"})
	}
	return removeJSON(dir, HistoryMark)
}

// leftLook is the pause between two looks whether history has all rows.
const leftLook = time.Second

// removeLeftHistory begins to wait until ClickHouse has all rows of the log up to its end of
// now, and then removes a file of history that is left from before: nothing reads it again,
// so that no erasure would reach what it has of people. stop ends the waiting; the next start
// begins again.
func (e *Engine) removeLeftHistory(o Options) (stop func(), err error) {
	left, err := duckdb.Left(o.historyFile())
	if err != nil || len(left) == 0 {
		return func() {}, err
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ends := make([]int64, e.Log.Partitions())
	for i := range ends {
		if _, ends[i], err = e.Log.Bounds(context.Background(), i); err != nil {
			return func() {}, err
		}
	}
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if pause.Until(ctx, leftLook, func() (bool, error) { return e.stored(ends), e.Node.Err() }) != nil {
			return
		}
		if err := duckdb.RemoveLeft(ctx, o.historyFile(), e.identity, o.duckdb(), ends); err != nil {
			if ctx.Err() == nil {
				log.Warn("history is in ClickHouse, and erasures do not reach the file of history in the data directory; move it to where it belongs, or remove it", "file", o.historyFile(), "error", err)
			}
			return
		}
		log.Info("history is in ClickHouse with all its rows; the file of history in the data directory was removed", "file", o.historyFile())
	})
	return func() { end(); running.Wait() }, nil
}

// stored reports whether history has the rows of all records below ends, by partition, and
// erased again what was erased.
func (e *Engine) stored(ends []int64) bool {
	for _, s := range e.Node.Stats() {
		if s.HistoryRebuilding || s.HistoryPosition < ends[s.Partition] {
			return false
		}
	}
	return true
}
