package blobtree

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Collect removes the objects that no version names and that are older than
// [Options.Keep]. newest is the name of a version that is known to be there: a
// listing without it is not to be trusted, and nothing is removed. It returns
// how many were removed.
func (s *Set) Collect(ctx context.Context, newest string) (removed int, err error) {
	if s.opts.Keep == 0 {
		return 0, nil
	}
	now, err := s.now(ctx)
	if err != nil {
		return 0, err
	}
	// In this order: what is stored after the listing is not judged, and what is
	// old in it can be named by no manifest that is younger than the second one.
	var old []string
	err = s.bucket.List(ctx, s.pieceDir(), func(o Object) error {
		if now.Sub(o.Stored) > s.opts.Keep {
			old = append(old, o.Key)
		}
		return nil
	})
	if err != nil || len(old) == 0 {
		return 0, err
	}
	names, err := s.Names(ctx)
	if err != nil {
		return 0, err
	}
	if !slices.Contains(names, newest) {
		return 0, fmt.Errorf("the listing of %s lacks %s, which is there: nothing is removed", s.manifestDir(), newest)
	}
	named := map[string]bool{}
	for _, name := range names {
		m, err := s.Manifest(ctx, name)
		if errors.Is(err, ErrMissing) {
			continue // removed meanwhile
		}
		if err != nil {
			return 0, fmt.Errorf("nothing is removed: %w", err)
		}
		for i := range m.Files {
			for _, p := range m.Files[i].Pieces {
				named[s.pieceKey(p)] = true
			}
		}
	}
	for _, key := range old {
		if named[key] {
			continue
		}
		if err := s.bucket.Delete(ctx, key); err != nil {
			return removed, err
		}
		removed++
		s.stats.removed.Add(1)
	}
	return removed, nil
}
