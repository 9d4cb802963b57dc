package resolver

import (
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/internal/checkpoint"

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

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// SplitOptions say what [Split] reads and where it writes.
type SplitOptions struct {
	FS vfs.FS
	// From is the directory of a node (Options.Dir of package node) whose log has one partition.
	// Nobody else may have it open.
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
// contacts' e-mails, in the first. Record ids and idempotency keys do not
// tell whose they are: every partition has them all, and forgets them in time as
// it would have.
//
// What is in From stays as it is, but for the directory in which an open
// partition works, which the next start makes anew.
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
		err = errors.Join(err, closeAll(m.store, m.keys.Runs), o.FS.RemoveAll(src.Path(checkpoint.DirLive)))
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
	ranges, err := accountRanges(m.store.DB)
	if err != nil {
		return res, err
	}
	for i := range o.Partitions {
		part := splitPart{src: src, m: m, frozen: f, id: i, of: o.Partitions, log: o.Logger,
			dst: &checkpoint.Dir{FS: o.FS, Root: o.FS.PathJoin(o.To, fmt.Sprintf("p%d", i)), Log: o.ToLog, Fatal: o.End}}
		if err := part.write(ctx, ranges); err != nil {
			return res, fmt.Errorf("partition %d: %w", i, err)
		}
		profiles, err := part.verify(ctx, hashes)
		if err != nil {
			return res, fmt.Errorf("partition %d: %w", i, err)
		}
		res.Profiles += profiles
		res.Checkpoints = append(res.Checkpoints, part.dst.Path(checkpoint.DirCheckpoints, checkpoint.Name(o.Offset)))
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
	return LoadCheckpoint(c, f, ids, splitCacheBytes, log)
}

const splitCacheBytes = 64 << 20

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

// accountRange is the entries of one account in one table.
type accountRange struct {
	table   byte
	account uint64
}

func (r accountRange) lower() []byte { return state.AccountKey(nil, r.table, r.account) }

// upper is behind the last entry.
func (r accountRange) upper() []byte {
	if r.account == ^uint64(0) {
		return []byte{r.table + 1}
	}
	return state.AccountKey(nil, r.table, r.account+1)
}

// accountRanges lists the ranges of a store, whatever its tables are. It reads a
// key of each.
func accountRanges(db *pebble.DB) (out []accountRange, err error) {
	it, err := db.NewIter(nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.SeekGE([]byte{state.TableOrigin + 1}); ok; {
		k := it.Key()
		if len(k) < state.KeyHead {
			return nil, fmt.Errorf("state: key %x is too short", k)
		}
		r := accountRange{k[0], binary.BigEndian.Uint64(k[1:])}
		if r.account == 0 {
			return nil, fmt.Errorf("state: key %x is of no account", k)
		}
		out = append(out, r)
		ok = it.SeekGE(r.upper())
	}
	return out, it.Error()
}

// splitPart makes one partition's checkpoint.
type splitPart struct {
	src, dst *checkpoint.Dir
	m        *Machine
	frozen   *checkpoint.Frozen
	id, of   int
	log      *slog.Logger
}

func (s *splitPart) owns(account uint64) bool { return account%uint64(s.of) == uint64(s.id) }

// write writes the checkpoint anew.
func (s *splitPart) write(ctx context.Context, ranges []accountRange) (err error) {
	c := s.dst
	if err := c.FS.RemoveAll(c.Root); err != nil {
		return err
	}
	if err := c.FS.MkdirAll(c.Root, 0o700); err != nil {
		return err
	}
	if err := c.Prepare(); err != nil {
		return err
	}
	store, err := state.Open(c.FS, c.Path(checkpoint.DirLive), splitCacheBytes, state.NewPebbleLogger(s.log).Ending(c.Fatal))
	if err != nil {
		return err
	}
	var w checkpoint.Written
	defer func() {
		err = errors.Join(err, closeAll(store, w.Runs), c.FS.RemoveAll(c.Path(checkpoint.DirLive)))
	}()
	if err := s.copyStore(ctx, store.DB, ranges); err != nil {
		return err
	}
	if err := s.fillDirectory(store.DB); err != nil {
		return err
	}
	if w.Runs, err = s.copyRuns(); err != nil {
		return err
	}
	f := &checkpoint.Frozen{Manifest: s.frozen.Manifest, Records: s.frozen.Records, WholeSegments: true}
	f.Runs, f.Segments, f.Spool, f.Files = nil, nil, nil, nil
	for _, e := range s.frozen.Engines {
		if s.owns(e.Account) {
			f.Engines = append(f.Engines, e)
		}
	}
	if w.Segments, err = c.WriteSegments(f); err != nil {
		return err
	}
	return c.Publish(f, store.DB, nil, w)
}

// copyStore copies the entries of the partition's accounts.
func (s *splitPart) copyStore(ctx context.Context, to *pebble.DB, ranges []accountRange) error {
	w := checkpoint.NewBatchWriter(to, nil, 0, nil)
	for _, r := range ranges {
		if !s.owns(r.account) {
			continue
		}
		it, err := s.m.store.DB.NewIter(&pebble.IterOptions{LowerBound: r.lower(), UpperBound: r.upper()})
		if err != nil {
			return errors.Join(err, w.Finish())
		}
		n := 0
		for ok := it.First(); ok; ok = it.Next() {
			// Never nil, which would remove the key.
			value := append(make([]byte, 0, 1), it.Value()...)
			if s.of > 1 && r.table == state.TableEntity && it.Key()[state.KeyHead] == state.EntityReservation {
				value = splitReservation[:]
			}
			w.Set(it.Key(), value)
			if n++; n%4096 == 0 && ctx.Err() != nil {
				return errors.Join(ctx.Err(), it.Close(), w.Finish())
			}
		}
		if err := it.Close(); err != nil {
			return errors.Join(err, w.Finish())
		}
	}
	return w.Finish()
}

// splitReservation is the id under which e-mails are reserved that were before
// there was a directory of them.
var splitReservation emaildir.ReservationID

// fillDirectory writes who holds which e-mail, over all accounts, where several
// partitions need a directory of that.
func (s *splitPart) fillDirectory(to *pebble.DB) error {
	if s.of == 1 || s.id != 0 {
		return nil
	}
	w := checkpoint.NewBatchWriter(to, nil, 0, nil)
	for name, account := range s.m.emails.Held() {
		w.Set(emaildir.Entry(name, emaildir.Holder{Account: account, ID: splitReservation}))
	}
	return w.Finish()
}

// copyRuns has the files of idempotency keys in the partition's directory: linked
// where that can be, they are never changed.
func (s *splitPart) copyRuns() (runs []*dedup.Run, err error) {
	c := s.dst
	for _, r := range s.m.keys.Runs {
		from, to := s.src.Path(checkpoint.DirKeys, r.Name), c.Path(checkpoint.DirKeys, r.Name)
		if err := vfs.LinkOrCopy(c.FS, from, to); err != nil {
			return runs, fmt.Errorf("idempotency keys: %w", err)
		}
		opened, err := dedup.OpenRun(c.FS, to, r.Name)
		if err != nil {
			return runs, err
		}
		runs = append(runs, opened)
	}
	return runs, statefiles.SyncDir(c.FS, c.Path(checkpoint.DirKeys))
}

// verify reads the checkpoint as a node does and compares its accounts.
func (s *splitPart) verify(ctx context.Context, want map[uint64]string) (profiles int64, err error) {
	c := s.dst
	m, err := openCheckpointAt(c, s.frozen.Next, s.log)
	if err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, closeAll(m.store, m.keys.Runs), c.FS.RemoveAll(c.Path(checkpoint.DirLive)))
	}()
	have, err := m.accountHashes(ctx)
	if err != nil {
		return 0, err
	}
	for _, number := range slices.Sorted(maps.Keys(want)) {
		switch sum, ok := have[number]; {
		case ok != s.owns(number):
			return 0, fmt.Errorf("account %016x is in the wrong partition", number)
		case ok && sum != want[number]:
			return 0, fmt.Errorf("account %016x is not what it was: its state has hash %s, had %s", number, sum, want[number])
		}
		delete(have, number)
	}
	if len(have) > 0 {
		return 0, fmt.Errorf("%d accounts are of no partition before", len(have))
	}
	if !bytes.Equal(must.JSON(m.records.List()), must.JSON(s.m.records.List())) {
		return 0, errors.New("the record ids are not what they were")
	}
	for name, account := range s.m.emails.Held() {
		if have, _ := m.emails.Owner(name); s.owns(account) && have != account {
			return 0, fmt.Errorf("account %016x has lost the reservation of an e-mail", account)
		}
		if s.of == 1 || s.id != 0 {
			continue
		}
		if h, ok := m.emails.Holder(name); !ok || h.Account != account {
			return 0, fmt.Errorf("the directory has lost an e-mail of account %016x", account)
		}
	}
	for _, a := range m.byIndex {
		profiles += int64(a.Profiles.Headers.Count)
	}
	return profiles, nil
}
