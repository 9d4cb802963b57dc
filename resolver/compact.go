package resolver

import (
	"errors"
	"fmt"
)

// minMerge is how many runs are merged at a time at least.
const minMerge = 4

// writeRuns writes the frozen idempotency keys as a run, drops runs whose keys
// have all expired, and merges runs so that their number stays logarithmic in
// the number of keys.
func (c *checkpoints) writeRuns(f *frozen) ([]*run, error) {
	runs := f.runs
	var fresh *run
	for len(runs) > 0 && runs[0].newest <= f.dropKeys {
		runs = runs[1:]
	}
	if f.keys.size() > 0 {
		name := fmt.Sprintf("%020d.run", f.Next)
		r, err := c.makeRun(name, func(path string) error { return writeRun(c.fs, path, f.keys) })
		if err != nil {
			return nil, err
		}
		fresh = r
		runs = append(append([]*run(nil), runs...), r)
	}
	if from := mergeFrom(runs); from >= 0 {
		name := fmt.Sprintf("%020d-%d.run", f.Next, len(runs)-from)
		r, err := c.makeRun(name, func(path string) error { return mergeRuns(c.fs, path, runs[from:], f.dropKeys) })
		if err != nil {
			if fresh != nil {
				err = errors.Join(err, c.discardRuns([]*run{fresh}, nil))
			}
			return nil, err
		}
		runs = append(append([]*run(nil), runs[:from]...), r)
		if fresh != nil {
			if err := c.discardRuns([]*run{fresh}, runs); err != nil {
				return nil, err
			}
		}
	}
	return runs, syncDir(c.fs, c.path(dirKeys))
}

func (c *checkpoints) makeRun(name string, write func(path string) error) (*run, error) {
	path := c.path(dirKeys, name)
	if err := write(path); err != nil {
		_ = c.fs.Remove(path) // it may be half written; it is written anew
		return nil, err
	}
	return openRun(c.fs, path, name)
}

// mergeFrom picks the longest tail of runs in which none is much larger than
// all newer ones together; -1 when it is too short to pay.
func mergeFrom(runs []*run) int {
	var sum uint64
	from := len(runs)
	for i := len(runs) - 1; i >= 0; i-- {
		if i < len(runs)-1 && runs[i].count > 2*sum {
			break
		}
		sum += runs[i].count
		from = i
	}
	if len(runs)-from < minMerge {
		return -1
	}
	return from
}

// discardRuns closes and removes the runs that are in old but not in kept.
func (c *checkpoints) discardRuns(old, kept []*run) error {
	for _, r := range old {
		still := false
		for _, k := range kept {
			still = still || k == r
		}
		if still {
			continue
		}
		if err := r.file.Close(); err != nil {
			return err
		}
		if err := c.fs.Remove(c.path(dirKeys, r.name)); err != nil {
			return err
		}
	}
	return nil
}
