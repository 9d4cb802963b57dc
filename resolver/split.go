package resolver

import (
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/split"

	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// SplitOptions say what [Split] reads and where it writes.
type SplitOptions struct {
	FS vfs.FS
	// From is the directory of a node (Options.Dir of package node) whose log has one partition.
	// No other process may have it open.
	From string
	// To is such a directory of a log with Partitions partitions. What is in it is
	// replaced.
	To         string
	Partitions int
	// Offset is the end of the log. The newest checkpoint must be at it.
	Offset int64
	// FromLog and ToLog are the names of the logs, see Options.LogName of package node.
	FromLog, ToLog string
	Logger         *slog.Logger // nil is silent
	// End is as in Options of package node.
	End func(why string)
}

// SplitResult counts what was written.
type SplitResult struct {
	Accounts, Profiles int64
	// Checkpoints are the directories of what was made, by partition.
	Checkpoints []string
}

// ErrSplitBehind says that the newest checkpoint is not at the end of the log:
// the directory has to be opened and closed once.
var ErrSplitBehind = errors.New("the newest checkpoint is not at the end of the log")

// Split makes of the newest checkpoint of a log with one partition one for each
// partition of a log with several, at the same offset. A partition has the
// accounts whose number modulo the number of partitions is its own; each account
// is what it was, to the last bit of what [Machine.Hash] looks at, which is
// compared before anything is published. Several partitions get a directory of
// contacts' e-mails, in the first. Record ids and idempotency keys do not show
// whose they are: every partition has them all, and drops them when they expire.
//
// What is in From stays as it is, but for the directory in which an open
// partition works, which the next start rebuilds.
func Split(ctx context.Context, o SplitOptions) (res SplitResult, err error) {
	if o.FS == nil || o.From == "" || o.To == "" || o.Partitions < 1 {
		return res, errors.New("resolver: split: FS, From, To and Partitions must be set")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	src := &checkpoint.Dir{FS: o.FS, Root: o.FS.PathJoin(o.From, "p0"), Log: o.FromLog, Fatal: o.End}
	m, err := openCheckpointAt(src, o.Offset, o.Logger)
	if err != nil {
		return res, err
	}
	defer func() {
		err = errors.Join(err, closeAll(m.store, m.idempotencyKeys.Runs), o.FS.RemoveAll(src.Path(checkpoint.DirLive)))
	}()
	if m.epoch.Number != 0 {
		return res, fmt.Errorf("the state is that of a partition of a cluster, owned by node %q last; only a directory with a log of its own can be split", m.epoch.Node)
	}
	if m.Lagging() {
		return res, ErrLagging
	}
	hashes, err := m.accountHashes(ctx)
	if err != nil {
		return res, err
	}
	// All values of the segment engines, and what reading an older checkpoint has
	// changed.
	m.segmentFiles = nil
	f := m.Freeze()
	if err := checkpoint.WriteGeneration(m.store.DB, f, nil, nil); err != nil {
		return res, err
	}
	ranges, err := split.Ranges(m.store.DB)
	if err != nil {
		return res, err
	}
	from := split.Source{Dir: src, DB: m.store.DB, Frozen: f, Runs: m.idempotencyKeys.Runs, Emails: m.emailDirectory, Logger: o.Logger}
	for i := range o.Partitions {
		part := split.Part{Source: from, ID: i, Of: o.Partitions,
			To: &checkpoint.Dir{FS: o.FS, Root: o.FS.PathJoin(o.To, fmt.Sprintf("p%d", i)), Log: o.ToLog, Fatal: o.End}}
		if err := part.Write(ctx, ranges); err != nil {
			return res, fmt.Errorf("partition %d: %w", i, err)
		}
		profiles, err := m.verifyPart(ctx, &part, hashes)
		if err != nil {
			return res, fmt.Errorf("partition %d: %w", i, err)
		}
		res.Profiles += profiles
		res.Checkpoints = append(res.Checkpoints, part.To.Path(checkpoint.DirCheckpoints, checkpoint.Name(o.Offset)))
	}
	res.Accounts = int64(len(hashes))
	return res, nil
}

// NewestCheckpoint is the offset of a partition's newest checkpoint in a directory
// of a node, -1 if there is none.
func NewestCheckpoint(fs vfs.FS, dir string, partition int) (int64, error) {
	c := checkpoint.Dir{FS: fs, Root: fs.PathJoin(dir, fmt.Sprintf("p%d", partition))}
	offsets, err := c.List()
	switch {
	case errors.Is(err, os.ErrNotExist), err == nil && len(offsets) == 0:
		return -1, nil
	case err != nil:
		return -1, fmt.Errorf("list checkpoints: %w", err)
	}
	return offsets[len(offsets)-1], nil
}

// openCheckpointAt loads the newest checkpoint, which must be at the offset.
func openCheckpointAt(c *checkpoint.Dir, offset int64, log *slog.Logger) (*Machine, error) {
	if err := c.Prepare(); err != nil {
		return nil, err
	}
	offsets, err := c.List()
	if err != nil {
		return nil, err
	}
	if len(offsets) == 0 {
		return nil, fmt.Errorf("%w: there is none, the log ends at %d", ErrSplitBehind, offset)
	}
	newest := offsets[len(offsets)-1]
	if newest != offset {
		return nil, fmt.Errorf("%w: it is at %d, the log ends at %d", ErrSplitBehind, newest, offset)
	}
	f, ids, err := c.ReadManifest(newest)
	if err != nil {
		return nil, err
	}
	if err := c.Verify(f); err != nil {
		return nil, err
	}
	return LoadCheckpoint(c, f, ids, split.CacheBytes, log)
}

// accountHashes are the hashes of the accounts' states, by number.
func (m *Machine) accountHashes(ctx context.Context) (map[uint64]string, error) {
	out := make(map[uint64]string, len(m.accounts))
	for number, a := range m.accounts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h := sha256.New()
		put := func(b []byte) {
			var n [8]byte
			binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
			h.Write(n[:])
			h.Write(b)
		}
		own := []task{}
		for _, t := range m.tasks {
			if t.Account == number {
				own = append(own, t)
			}
		}
		put(must.JSON(own))
		if err := a.Hash(h, put); err != nil {
			return nil, err
		}
		out[number] = hex.EncodeToString(h.Sum(nil))
	}
	return out, nil
}

// verifyPart reads a partition's checkpoint as a node does and compares its accounts.
func (m *Machine) verifyPart(ctx context.Context, part *split.Part, want map[uint64]string) (profiles int64, err error) {
	c := part.To
	made, err := openCheckpointAt(c, part.Frozen.Next, part.Logger)
	if err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, closeAll(made.store, made.idempotencyKeys.Runs), c.FS.RemoveAll(c.Path(checkpoint.DirLive)))
	}()
	have, err := made.accountHashes(ctx)
	if err != nil {
		return 0, err
	}
	for _, number := range slices.Sorted(maps.Keys(want)) {
		switch sum, ok := have[number]; {
		case ok != part.Owns(number):
			return 0, fmt.Errorf("account %016x is in the wrong partition", number)
		case ok && sum != want[number]:
			return 0, fmt.Errorf("account %016x is not what it was: its state has hash %s, had %s", number, sum, want[number])
		}
		delete(have, number)
	}
	if len(have) > 0 {
		return 0, fmt.Errorf("%d accounts are of no partition before", len(have))
	}
	if !bytes.Equal(must.JSON(made.records.List()), must.JSON(m.records.List())) {
		return 0, errors.New("the record ids are not what they were")
	}
	for name, account := range m.emailDirectory.Held() {
		if have, _ := made.emailDirectory.Owner(name); part.Owns(account) && have != account {
			return 0, fmt.Errorf("account %016x has lost the reservation of an e-mail", account)
		}
		if part.Of == 1 || part.ID != 0 {
			continue
		}
		if h, ok := made.emailDirectory.Holder(name); !ok || h.Account != account {
			return 0, fmt.Errorf("the directory has lost an e-mail of account %016x", account)
		}
	}
	for _, a := range made.byIndex {
		profiles += int64(a.Profiles.Headers.Count)
	}
	return profiles, nil
}
