package checkpoint

import (
	"errors"
	"fmt"

	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// minMerge is how many runs are merged at a time at least.
const minMerge = 4

// WriteRuns writes the frozen idempotency keys as a run, drops runs whose keys
// have all expired, and merges runs so that their number stays logarithmic in
// the number of keys.
func (c *Dir) WriteRuns(f *Frozen, pauses *Pauses) ([]*dedup.Run, error) {
	runs := f.KeyRuns
	var fresh *dedup.Run
	for len(runs) > 0 && runs[0].Newest <= f.DropKeys {
		runs = runs[1:]
	}
	if f.Keys.Size() > 0 {
		name := fmt.Sprintf("%020d.run", f.Next)
		r, err := c.makeRun(name, func(path string) error { return dedup.WriteRun(c.FS, path, f.Keys, pauses.worked) })
		if err != nil {
			return nil, err
		}
		fresh = r
		runs = append(append([]*dedup.Run(nil), runs...), r)
	}
	if from := mergeFrom(runs); from >= 0 {
		name := fmt.Sprintf("%020d-%d.run", f.Next, len(runs)-from)
		r, err := c.makeRun(name, func(path string) error { return dedup.MergeRuns(c.FS, path, runs[from:], f.DropKeys, pauses.worked) })
		if err != nil {
			if fresh != nil {
				err = errors.Join(err, c.DiscardRuns([]*dedup.Run{fresh}, nil))
			}
			return nil, err
		}
		runs = append(append([]*dedup.Run(nil), runs[:from]...), r)
		if fresh != nil {
			if err := c.DiscardRuns([]*dedup.Run{fresh}, runs); err != nil {
				return nil, err
			}
		}
	}
	return runs, statefiles.SyncDir(c.FS, c.Path(DirKeys))
}

func (c *Dir) makeRun(name string, write func(path string) error) (*dedup.Run, error) {
	path := c.Path(DirKeys, name)
	if err := write(path); err != nil {
		_ = c.FS.Remove(path) // it may be half written; it is rewritten
		return nil, err
	}
	return dedup.OpenRun(c.FS, path, name)
}

// mergeFrom picks the longest tail of runs in which none is much larger than
// all newer ones together; -1 when it is too short to pay.
func mergeFrom(runs []*dedup.Run) int {
	var sum uint64
	from := len(runs)
	for i := len(runs) - 1; i >= 0; i-- {
		if i < len(runs)-1 && runs[i].Count > 2*sum {
			break
		}
		sum += runs[i].Count
		from = i
	}
	if len(runs)-from < minMerge {
		return -1
	}
	return from
}

// DiscardRuns closes and removes the runs that are in old but not in kept.
func (c *Dir) DiscardRuns(old, kept []*dedup.Run) error {
	for _, r := range old {
		still := false
		for _, k := range kept {
			still = still || k == r
		}
		if still {
			continue
		}
		if err := r.Close(); err != nil {
			return err
		}
		if err := c.FS.Remove(c.Path(DirKeys, r.Name)); err != nil {
			return err
		}
	}
	return nil
}
