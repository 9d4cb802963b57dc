package segments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/cache"
	"github.com/musterhq/muster/query/duckdb"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/node"
)

const accountNumber = 7

// queryCacheBytes is the default of muster serve --query-cache.
const queryCacheBytes = 128 << 20

// account is a node on a directory with the one account that is measured, put
// together as the muster binary does. Only the interval of checkpoints differs:
// they are written when the generation is full and when the bench asks.
type account struct {
	dir           string
	historyMemory int64
	random        *lockedRand // continues over restarts: record ids must not repeat

	log *file.Log
	// history answers from SQL alone; cached is in front of it and answers previews, also
	// from its columns, which it has once one has been asked.
	history *duckdb.Resilient
	cached  *cache.History
	node    *node.Node
}

// lockedRand is a seeded source for several goroutines.
type lockedRand struct {
	mu  sync.Mutex
	src *rand.ChaCha8
}

func newLockedRand(seed uint64) *lockedRand {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	return &lockedRand{src: rand.NewChaCha8(key)}
}

func (r *lockedRand) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.Read(p)
}

func newAccount(ctx context.Context, dir string, historyMemory int64, seed uint64) (*account, error) {
	a := &account{dir: dir, historyMemory: historyMemory, random: newLockedRand(seed)}
	if err := a.open(ctx); err != nil {
		return nil, err
	}
	zeros := make([]byte, 32)
	_, err := a.node.Command(ctx, accountNumber, resolver.CommandBootstrap, resolver.Bootstrap{
		ApplyVersion: resolver.ApplyVersion, Company: resolver.Company{ID: "com_bench", Name: "Bench"},
		HashKey: fmt.Sprintf("%032x", seed), SecretHash: fmt.Sprintf("%x", zeros), Settings: resolver.DefaultSettings(),
		User: access.User{ID: "usr_bench", Email: "bench@bench.example"}, APIKey: access.APIKey{ID: "key_bench"},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the account: %w", err), a.close(ctx))
	}
	return a, nil
}

func (a *account) open(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close(ctx))
		}
	}()
	fs := vfs.Default
	if a.log, err = file.Open(filepath.Join(a.dir, "log"), file.Options{FS: fs}); err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	a.history = duckdb.OpenResilient(duckdb.ResilientOptions{
		Options: duckdb.Options{MemoryLimitBytes: a.historyMemory, Columns: true},
		Path:    a.historyFile(), Log: "bench", Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if err := a.history.Opened(ctx); err != nil {
		return fmt.Errorf("open history: %w", err)
	}
	if a.cached, err = cache.New(a.history, cache.Options{Bytes: queryCacheBytes, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		return fmt.Errorf("open the query cache: %w", err)
	}
	a.node, err = node.Open(ctx, node.Options{
		FS: fs, Dir: filepath.Join(a.dir, "state"), Log: a.log, History: a.cached,
		Now: time.Now, Rand: io.Reader(a.random), CheckpointInterval: 24 * time.Hour,
	})
	if err != nil {
		return fmt.Errorf("open the state: %w", err)
	}
	return nil
}

// settle waits until what a start does in the background is done: all of history is read, as
// the server does.
func (a *account) settle(ctx context.Context) error {
	a.history.Scrub()
	return a.history.Scrubbed(ctx)
}

// close writes the last checkpoint and closes everything. It may be called
// twice.
func (a *account) close(ctx context.Context) error {
	var err error
	if a.node != nil {
		err = errors.Join(err, a.node.Close(ctx))
	}
	switch {
	case a.cached != nil:
		err = errors.Join(err, a.cached.Close())
	case a.history != nil:
		err = errors.Join(err, a.history.Close())
	}
	if a.log != nil {
		err = errors.Join(err, a.log.Close())
	}
	a.node, a.cached, a.history, a.log = nil, nil, nil, nil
	return err
}

func (a *account) historyFile() string { return filepath.Join(a.dir, "history.duckdb") }

func (a *account) read(ctx context.Context, fn func(*resolver.View) error) error {
	return a.node.Read(ctx, accountNumber, fn)
}

// count is the number of members of a segment.
func (a *account) count(ctx context.Context, id string, atMs int64) (members uint64, known bool, err error) {
	return a.node.CountMembers(ctx, accountNumber, id, atMs)
}

// cut is the present state of the account.
func (a *account) cut(ctx context.Context) (c query.Cut, err error) {
	err = a.read(ctx, func(v *resolver.View) error {
		c = v.Cut()
		return nil
	})
	return c, err
}

// awaitHistory waits until history holds everything.
func (a *account) awaitHistory(ctx context.Context) error {
	c, err := a.cut(ctx)
	if err != nil {
		return err
	}
	return a.node.WaitHistory(ctx, c)
}

// define saves a segment and returns its id.
func (a *account) define(ctx context.Context, name, definition string) (id string, err error) {
	reply, err := a.node.Command(ctx, accountNumber, resolver.CommandSegmentCreate, resolver.SegmentSave{Name: name, Definition: json.RawMessage(definition)})
	if err != nil {
		return "", fmt.Errorf("segment %q: %w", name, err)
	}
	var saved struct{ ID string }
	if err := json.Unmarshal(reply, &saved); err != nil {
		return "", fmt.Errorf("segment %q: reply %q: %w", name, reply, err)
	}
	return saved.ID, nil
}

func (a *account) undefine(ctx context.Context, id string) error {
	_, err := a.node.Command(ctx, accountNumber, resolver.CommandSegmentDelete, resolver.SegmentDelete{ID: id})
	return err
}

// undefineAll removes segments, the last first: others may refer to the earlier.
func (a *account) undefineAll(ctx context.Context, ids []string) error {
	for i := len(ids) - 1; i >= 0; i-- {
		if err := a.undefine(ctx, ids[i]); err != nil {
			return err
		}
	}
	return nil
}

// waitLive waits until all these segments are live.
func (a *account) waitLive(ctx context.Context, ids ...string) error {
	// Less than what a build takes, more than what would slow it down.
	return pause.Until(ctx, 2*time.Millisecond, func() (bool, error) {
		live := true
		err := a.read(ctx, func(v *resolver.View) error {
			for _, id := range ids {
				_, is := v.Segments().Progress(id)
				live = live && is
			}
			return nil
		})
		return live, err
	})
}

// newestCheckpoint is the size of the newest checkpoint with all files it holds
// or links to.
func (a *account) newestCheckpoint() (bytes int64, err error) {
	dir := filepath.Join(a.dir, "state", "p0", "checkpoints")
	list, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	newest := "" // names have a fixed width
	for _, e := range list {
		if _, err := strconv.ParseInt(e.Name(), 10, 64); err == nil {
			newest = max(newest, e.Name())
		}
	}
	if newest == "" {
		return 0, fmt.Errorf("no checkpoint in %s", dir)
	}
	return dirBytes(filepath.Join(dir, newest))
}

// stampNow gives a record that was built before the present time.
func stampNow(rec []byte) error {
	env, _, err := eventlog.DecodeEnvelope(rec)
	if err != nil {
		return err
	}
	env.StampMs = time.Now().UnixMilli()
	env.Append(rec[:0])
	return nil
}
