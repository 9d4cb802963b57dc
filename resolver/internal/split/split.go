// Package split writes the checkpoints of several partitions from that of one: each has the
// entries of its own accounts, and all have all idempotency keys and record ids, which do not
// tell whose they are. It copies entries without looking into them; package resolver, which
// loads what was written, compares the accounts.
package split

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// CacheBytes is how much memory a store has for blocks and documents while a log is split.
const CacheBytes = 64 << 20

// Range is the entries of one account in one table.
type Range struct {
	table   byte
	account uint64
}

func (r Range) lower() []byte { return state.AccountKey(nil, r.table, r.account) }

// upper is behind the last entry.
func (r Range) upper() []byte {
	if r.account == ^uint64(0) {
		return []byte{r.table + 1}
	}
	return state.AccountKey(nil, r.table, r.account+1)
}

// Ranges lists the ranges of a store, whatever its tables are. It reads a
// key of each.
func Ranges(db *pebble.DB) (out []Range, err error) {
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
		r := Range{k[0], binary.BigEndian.Uint64(k[1:])}
		if r.account == 0 {
			return nil, fmt.Errorf("state: key %x is of no account", k)
		}
		out = append(out, r)
		ok = it.SeekGE(r.upper())
	}
	return out, it.Error()
}

// Source is the state that is split.
type Source struct {
	Dir    *checkpoint.Dir
	DB     *pebble.DB
	Frozen *checkpoint.Frozen // all of it, and written to DB
	Runs   []*dedup.Run       // of idempotency keys
	Emails *emaildir.State
	Logger *slog.Logger
}

// Part makes one partition's checkpoint.
type Part struct {
	Source
	To     *checkpoint.Dir
	ID, Of int // the partition's number, and how many there are
}

// Owns reports whether an account is the partition'p.
func (p *Part) Owns(account uint64) bool { return account%uint64(p.Of) == uint64(p.ID) }

// Write rewrites the checkpoint, with a directory of e-mails in the first of several
// partitions. What was in the directory To is replaced.
func (p *Part) Write(ctx context.Context, ranges []Range) (err error) {
	c := p.To
	if err := c.FS.RemoveAll(c.Root); err != nil {
		return err
	}
	if err := c.FS.MkdirAll(c.Root, 0o700); err != nil {
		return err
	}
	if err := c.Prepare(); err != nil {
		return err
	}
	store, err := state.Open(c.FS, c.Path(checkpoint.DirLive), CacheBytes, state.NewPebbleLogger(p.Logger).Ending(c.Fatal))
	if err != nil {
		return err
	}
	var w checkpoint.Written
	defer func() {
		err = errors.Join(err, closeRuns(w.Runs), store.Close(), c.FS.RemoveAll(c.Path(checkpoint.DirLive)))
	}()
	if err := p.copyStore(ctx, store.DB, ranges); err != nil {
		return err
	}
	if err := p.fillDirectory(store.DB); err != nil {
		return err
	}
	if w.Runs, err = p.copyRuns(); err != nil {
		return err
	}
	f := &checkpoint.Frozen{Manifest: p.Frozen.Manifest, Records: p.Frozen.Records, WholeSegments: true}
	f.Runs, f.Segments, f.Spool, f.Files = nil, nil, nil, nil
	for _, e := range p.Frozen.Engines {
		if p.Owns(e.Account) {
			f.Engines = append(f.Engines, e)
		}
	}
	if w.Segments, err = c.WriteSegments(f, nil); err != nil {
		return err
	}
	return c.Commit(f, store.DB, nil, w, nil)
}

// copyStore copies the entries of the partition's accounts.
func (p *Part) copyStore(ctx context.Context, to *pebble.DB, ranges []Range) error {
	w := checkpoint.NewBatchWriter(to, nil, nil)
	for _, r := range ranges {
		if !p.Owns(r.account) {
			continue
		}
		it, err := p.DB.NewIter(&pebble.IterOptions{LowerBound: r.lower(), UpperBound: r.upper()})
		if err != nil {
			return errors.Join(err, w.Finish())
		}
		n := 0
		for ok := it.First(); ok; ok = it.Next() {
			// Never nil, which would remove the key.
			value := append(make([]byte, 0, 1), it.Value()...)
			if p.Of > 1 && r.table == state.TableEntity && it.Key()[state.KeyHead] == state.EntityReservation {
				value = reservation[:]
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

// reservation is the id under which e-mails are reserved that were before
// there was a directory of them.
var reservation emaildir.ReservationID

// fillDirectory writes who holds which e-mail, over all accounts, where several
// partitions need a directory of that.
func (p *Part) fillDirectory(to *pebble.DB) error {
	if p.Of == 1 || p.ID != 0 {
		return nil
	}
	w := checkpoint.NewBatchWriter(to, nil, nil)
	for name, account := range p.Emails.Held() {
		w.Set(emaildir.Entry(name, emaildir.Holder{Account: account, ID: reservation}))
	}
	return w.Finish()
}

// copyRuns has the files of idempotency keys in the partition's directory: linked
// where that can be, they are never changed.
func (p *Part) copyRuns() (runs []*dedup.Run, err error) {
	c := p.To
	for _, r := range p.Runs {
		from, to := p.Dir.Path(checkpoint.DirKeys, r.Name), c.Path(checkpoint.DirKeys, r.Name)
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

func closeRuns(runs []*dedup.Run) (err error) {
	for _, r := range runs {
		err = errors.Join(err, r.Close())
	}
	return err
}
