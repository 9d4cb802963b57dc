package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/blobtree"
)

// errReplaced means that what was being read is no longer there, because newer
// checkpoints are.
var errReplaced = errors.New("the checkpoint is being replaced by newer ones")

func compareVersions(a, b version) int {
	return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.epoch, b.epoch))
}

// Newest makes dir the newest checkpoint of the partition that is whole and
// whose offset is greater than have, and returns its offset; -1 if there is none.
// Damaged ones are passed over, with a line in the log.
func (s *Store) Newest(ctx context.Context, partition int, dir string, have int64) (int64, error) {
	return s.fetch(ctx, partition, dir, have, nil)
}

// NewestPart is Newest for the named files alone of the checkpoint; the others are not read.
func (s *Store) NewestPart(ctx context.Context, partition int, dir string, have int64, files []string) (int64, error) {
	return s.fetch(ctx, partition, dir, have, files)
}

// fetch makes dir the named files of the newest checkpoint; nil names all.
func (s *Store) fetch(ctx context.Context, partition int, dir string, have int64, files []string) (int64, error) {
	set, err := s.set(partition)
	if err != nil {
		return 0, err
	}
	if err := s.opts.FS.RemoveAll(dir); err != nil { // what a kill left of another one
		return 0, err
	}
	for range maxListings {
		offset, err := s.newest(ctx, set, partition, dir, have, files)
		if err != nil || offset < 0 {
			err = errors.Join(err, s.opts.FS.RemoveAll(dir))
		}
		if !errors.Is(err, errReplaced) {
			return offset, err
		}
	}
	return 0, fmt.Errorf("%w, %d times over", errReplaced, maxListings)
}

func (s *Store) newest(ctx context.Context, set *blobtree.Set, partition int, dir string, have int64, files []string) (int64, error) {
	all, err := versions(ctx, set)
	if err != nil {
		return 0, err
	}
	for i, v := range slices.Backward(all) {
		if v.offset <= have && i < len(all)-1 {
			break // the newest one is read in any case: it may be another log's
		}
		m, err := s.manifest(ctx, set, partition, v)
		if err == nil {
			if v.offset <= have {
				break
			}
			if files != nil {
				m.Files = slices.DeleteFunc(m.Files, func(f blobtree.File) bool { return !slices.Contains(files, f.Path) })
			}
			if err = set.Fetch(ctx, m, dir); err == nil {
				return v.offset, nil
			}
		}
		switch gone, e := s.gone(ctx, set, v, err); {
		case e != nil:
			return 0, errors.Join(err, e)
		case gone:
			return 0, errReplaced
		case !errors.Is(err, blobtree.ErrDamaged):
			return 0, err
		}
		s.opts.Logger.Error("a shared checkpoint is damaged; trying an older one", "partition", partition, "checkpoint", v.String(), "error", err)
		if err := s.opts.FS.RemoveAll(dir); err != nil {
			return 0, err
		}
	}
	return -1, nil
}

// gone reports whether a version that cannot be read was removed meanwhile: then
// its files may be missing too.
func (s *Store) gone(ctx context.Context, set *blobtree.Set, v version, why error) (bool, error) {
	if errors.Is(why, blobtree.ErrMissing) && !errors.Is(why, blobtree.ErrDamaged) {
		return true, nil
	}
	if !errors.Is(why, blobtree.ErrDamaged) {
		return false, nil
	}
	all, err := versions(ctx, set)
	return !slices.Contains(all, v), err
}
