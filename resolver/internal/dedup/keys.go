// Package dedup keeps the ids of the newest records, and the first answers to idempotency keys, the
// newest in memory, older ones in files that never change. It is used by the one goroutine that
// applies.
package dedup

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/hashtable"
	"github.com/musterhq/muster/internal/prefetch"
	"github.com/musterhq/muster/resolver/internal/identifier"
)

// Answer is the first answer to an idempotency key.
type Answer struct {
	AtMs    int64 // log time of the first answer
	Ordinal uint32
}

// Answers maps idempotency keys to first answers. The zero value is empty and
// takes none.
type Answers struct{ table *hashtable.Table }

const answerSize = 8 + 4

func newAnswers() Answers { return Answers{hashtable.New(answerSize)} }

// Size is the number of keys.
func (a Answers) Size() int {
	if a.table == nil {
		return 0
	}
	return a.table.Len()
}

func (a Answers) get(h identifier.Hash) (v Answer, ok bool) {
	if a.table == nil {
		return v, false
	}
	b := a.table.Get((*hashtable.Key)(&h))
	if b == nil {
		return v, false
	}
	return decodeAnswer(b), true
}

func decodeAnswer(b []byte) Answer {
	return Answer{int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint32(b[8:])}
}

func (a Answers) put(h identifier.Hash, v Answer) {
	b := a.table.Put((*hashtable.Key)(&h))
	binary.LittleEndian.PutUint64(b, uint64(v.AtMs))
	binary.LittleEndian.PutUint32(b[8:], v.Ordinal)
}

// each calls fn for all answers, in no order.
func (a Answers) each(fn func(h identifier.Hash, v Answer)) {
	if a.table == nil {
		return
	}
	a.table.All(func(k *hashtable.Key, b []byte) bool {
		fn(*k, decodeAnswer(b))
		return true
	})
}

// Keys remembers the first answers. The newest keys are in a table; older ones are in immutable sorted files (runs). Which of them holds a key
// does not show: whether a key still counts is judged by its own time.
type Keys struct {
	recent Answers
	// sealing is being written to a run by the checkpoint under way.
	sealing Answers
	Runs    []*Run // oldest first
	total   int64  // keys in runs
}

// NewKeys returns Keys that remember nothing yet.
func NewKeys() Keys { return Keys{recent: newAnswers()} }

// Get finds the newest answer to a key, whatever its age. A run that cannot be read, or
// is damaged, is an error.
func (k *Keys) Get(h identifier.Hash) (Answer, bool, error) {
	if v, ok := k.recent.get(h); ok {
		return v, true, nil
	}
	if v, ok := k.sealing.get(h); ok {
		return v, true, nil
	}
	for i := len(k.Runs) - 1; i >= 0; i-- {
		v, ok, err := k.Runs[i].get(h)
		if ok || err != nil {
			return v, ok, err
		}
	}
	return Answer{}, false, nil
}

// Put remembers an answer; it replaces an older one.
func (k *Keys) Put(h identifier.Hash, v Answer) { k.recent.put(h, v) }

// Size is the number of keys held, expired ones among them.
func (k *Keys) Size() int64 {
	return int64(k.recent.Size()) + int64(k.sealing.Size()) + k.total
}

// PrefetchPages brings near what Prefetch of a key reads.
func (k *Keys) PrefetchPages(h identifier.Hash) {
	k.recent.table.PrefetchPage((*hashtable.Key)(&h))
	if k.sealing.table != nil {
		k.sealing.table.PrefetchPage((*hashtable.Key)(&h))
	}
}

// Prefetch brings the memory near that Get or Put of a key asks first.
func (k *Keys) Prefetch(h identifier.Hash) {
	k.recent.table.Prefetch((*hashtable.Key)(&h))
	if k.sealing.table != nil {
		k.sealing.table.Prefetch((*hashtable.Key)(&h))
	}
	for _, r := range k.Runs {
		line, _ := r.filter.line(h)
		prefetch.Line(&line[0])
	}
}

// Unsaved is the number of keys that no checkpoint has taken.
func (k *Keys) Unsaved() int { return k.recent.Size() }

// Freeze hands the recent keys to a checkpoint and starts again.
func (k *Keys) Freeze() Answers {
	if k.recent.Size() == 0 {
		return Answers{}
	}
	k.sealing, k.recent = k.recent, newAnswers()
	return k.sealing
}

// SetRuns installs the runs a checkpoint wrote; they include what was sealing.
func (k *Keys) SetRuns(runs []*Run) {
	k.Runs, k.sealing, k.total = runs, Answers{}, 0
	for _, r := range runs {
		k.total += int64(r.Count)
	}
}

// Each calls fn with the newest answer of every key, in order of the keys' hashes. It
// holds those in memory that are in no run. A run that cannot be read is an error.
func (k *Keys) Each(fn func(h identifier.Hash, v Answer)) error {
	newest := map[identifier.Hash]Answer{}
	for _, in := range []Answers{k.sealing, k.recent} {
		in.each(func(h identifier.Hash, v Answer) { newest[h] = v })
	}
	inMemory := slices.SortedFunc(maps.Keys(newest), func(x, y identifier.Hash) int { return slices.Compare(x[:], y[:]) })
	var cursors []*runCursor // oldest first
	for _, r := range k.Runs {
		c, err := r.cursor()
		if err != nil {
			return err
		}
		cursors = append(cursors, c)
	}
	for {
		var best *runCursor
		for _, c := range cursors {
			// Of equal hashes the one in the newest run counts.
			if !c.done && (best == nil || slices.Compare(c.cur.hash[:], best.cur.hash[:]) <= 0) {
				best = c
			}
		}
		var e runEntry
		switch {
		case len(inMemory) > 0 && (best == nil || slices.Compare(inMemory[0][:], best.cur.hash[:]) <= 0):
			e = runEntry{inMemory[0], newest[inMemory[0]]}
			inMemory = inMemory[1:]
		case best != nil:
			e = best.cur
		default:
			return nil
		}
		for _, c := range cursors {
			for !c.done && c.cur.hash == e.hash {
				if err := c.next(); err != nil {
					return err
				}
			}
		}
		fn(e.hash, e.Answer)
	}
}
