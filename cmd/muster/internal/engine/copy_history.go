package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/musterhq/muster/query"
)

// CopyHistory copies history as it is at one instant, with all that was applied before, to a new
// file, and returns its size in bytes. History waits meanwhile, events do not.
func (e *Engine) CopyHistory(ctx context.Context, path string) (bytes int64, err error) {
	history, here := e.History.Backend.(copier)
	if !here {
		return 0, errors.New("history is in ClickHouse, which answers SQL itself: see docs/clickhouse.md")
	}
	if _, err := os.Lstat(path); err == nil {
		return 0, fmt.Errorf("%s is there already; name a new file, or remove it", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for _, s := range e.Node.Stats() {
		if err := e.Node.WaitHistory(ctx, query.Cut{Partition: s.Partition, UpTo: s.Applied}); err != nil {
			return 0, err
		}
	}
	// Under its name it is whole: a copy that was interrupted is none.
	private, err := os.MkdirTemp(filepath.Dir(path), ".muster-history-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(private)
	unfinished := filepath.Join(private, HistoryFile)
	if err := history.CopyTo(ctx, unfinished); err != nil {
		return 0, err
	}
	info, err := os.Stat(unfinished)
	if err != nil {
		return 0, err
	}
	return info.Size(), os.Rename(unfinished, path)
}
