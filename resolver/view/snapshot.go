package view

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/fieldcolumns"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/segment"
)

// Snapshot is the profiles of an account at one cut. It outlives the view it
// was taken from and does not hold up Apply; it must be closed.
type Snapshot struct {
	account  uint64
	index    uint32
	n        uint32
	pages    []*profile.HeaderPage
	overlay  map[state.DocKey][]byte
	db       *pebble.Snapshot
	host     Host              // nil for a machine alone
	release  func()            // gives back what holds the files open
	lists    map[uint32]string // ids by number
	universe *roaring.Bitmap
	// anonymous is of the universe; nil for none.
	anonymous *roaring.Bitmap
	columns   *fieldcolumns.Builder // nil when none are made of the scan
}

// Snapshot takes a snapshot. Its cost beside the view's lock is the number of
// documents changed since the last checkpoint. Of the fields given, columns are made when
// it is scanned: see [Columns.Of].
func (v *View) Snapshot(fields ...string) *Snapshot {
	columns := v.Columns().build(fields)
	release := func() {}
	if v.host != nil {
		release = v.host.HoldFiles()
	}
	return &Snapshot{
		columns:   columns,
		host:      v.host,
		release:   release,
		account:   v.a.Number,
		index:     v.a.Index,
		n:         v.a.Profiles.Headers.Count,
		pages:     v.a.Profiles.Headers.Share(),
		overlay:   v.store.Overlay(),
		db:        v.store.DB.NewSnapshot(),
		lists:     maps.Clone(v.a.Contacts.ListIDs()),
		anonymous: v.Profiles().Anonymous(),
	}
}

// Close releases what the snapshot holds.
func (s *Snapshot) Close() error {
	s.endColumns(false)
	err := s.db.Close()
	s.release()
	return err
}

func (s *Snapshot) endColumns(whole bool) {
	if s.columns != nil {
		s.columns.End(whole)
		s.columns = nil
	}
}

// stopped ends reading soon after the partition was released, since its files
// stay open for as long; nil while it is here.
func (s *Snapshot) stopped() error {
	if s.host == nil {
		return nil
	}
	select {
	case <-s.host.Left():
		return s.host.StopErr()
	default:
		return nil
	}
}

// ProfileID is the id of an ordinal.
func (s *Snapshot) ProfileID(ordinal uint32) profile.ID {
	return s.pages[ordinal/profile.PageRows].Rows[ordinal%profile.PageRows].ID
}

// Universe implements [query.Profiles].
func (s *Snapshot) Universe() *roaring.Bitmap {
	if s.universe == nil {
		s.universe = roaring.New()
		s.universe.AddRange(0, uint64(s.n))
		for o := range s.n {
			if h := &s.pages[o/profile.PageRows].Rows[o%profile.PageRows]; h.Winner != o || h.Flags&resolution.FlagErased != 0 {
				s.universe.Remove(o)
			}
		}
		s.universe.RunOptimize()
	}
	return s.universe
}

// Anonymous implements [query.Profiles].
func (s *Snapshot) Anonymous() *roaring.Bitmap { return s.anonymous }

// Scan implements [query.Profiles].
func (s *Snapshot) Scan(ctx context.Context, fn func(ordinal uint32, f *segment.Facts) error) error {
	lower := state.AccountKey(nil, state.TableDocument, s.account)
	if err := s.stopped(); err != nil {
		return err
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: state.DocumentKey(nil, s.account, profile.NoOrdinal)})
	if err != nil {
		return err
	}
	defer it.Close()
	valid := it.First()
	var d profile.Document
	var f segment.Facts
	for ords := s.Universe().Iterator(); ords.HasNext(); {
		o := ords.Next()
		if o%4096 == 0 {
			if err := errors.Join(ctx.Err(), s.stopped()); err != nil {
				return err
			}
		}
		b, ok := s.overlay[state.Account{Index: s.index}.DocKey(o)]
		if !ok {
			for valid && binary.BigEndian.Uint32(it.Key()[state.KeyHead:]) < o {
				valid = it.Next()
			}
			if !valid || binary.BigEndian.Uint32(it.Key()[state.KeyHead:]) != o {
				if err := it.Error(); err != nil {
					return err
				}
				return fmt.Errorf("profile %d of account %016x has no document", o, s.account)
			}
			b = it.Value()
		}
		if err := d.Decode(b); err != nil {
			return fmt.Errorf("profile %d: %w", o, err)
		}
		d.FillFacts(&f, s.lists, s.pages[o/profile.PageRows].Rows[o%profile.PageRows].LastEvent)
		if s.columns != nil {
			s.columns.Add(o, &f.Fields)
		}
		if err := fn(o, &f); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return err
	}
	s.endColumns(true)
	return nil
}

var _ query.Profiles = (*Snapshot)(nil)
