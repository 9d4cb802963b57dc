package resolver

import (
	"encoding/binary"

	"github.com/musterhq/muster/internal/hashtable"
)

// idempotencyValue is the first answer to an idempotency key.
type idempotencyValue struct {
	atMs    int64 // log time of the first answer
	ordinal uint32
}

// answers maps idempotency keys to first answers. The zero value is empty and
// takes none.
type answers struct{ table *hashtable.Table }

const answerSize = 8 + 4

func newAnswers() answers { return answers{hashtable.New(answerSize)} }

func (a answers) size() int {
	if a.table == nil {
		return 0
	}
	return a.table.Len()
}

func (a answers) get(h hash128) (v idempotencyValue, ok bool) {
	if a.table == nil {
		return v, false
	}
	b := a.table.Get((*hashtable.Key)(&h))
	if b == nil {
		return v, false
	}
	return decodeAnswer(b), true
}

func decodeAnswer(b []byte) idempotencyValue {
	return idempotencyValue{int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint32(b[8:])}
}

func (a answers) put(h hash128, v idempotencyValue) {
	b := a.table.Put((*hashtable.Key)(&h))
	binary.LittleEndian.PutUint64(b, uint64(v.atMs))
	binary.LittleEndian.PutUint32(b[8:], v.ordinal)
}

// each calls fn for all answers, in no order.
func (a answers) each(fn func(h hash128, v idempotencyValue)) {
	if a.table == nil {
		return
	}
	a.table.All(func(k *hashtable.Key, b []byte) bool {
		fn(*k, decodeAnswer(b))
		return true
	})
}

// idempotencyKeys remembers the first answers. The newest keys are in a
// table; older ones are in immutable sorted files (runs). Which of them holds a key
// does not show: whether a key still counts is judged by its own time.
type idempotencyKeys struct {
	recent answers
	// sealing is being written to a run by the checkpoint under way.
	sealing answers
	runs    []*run // oldest first
	total   int64  // keys in runs
}

// get finds the newest answer to a key, whatever its age.
func (k *idempotencyKeys) get(h hash128) (idempotencyValue, bool, error) {
	if v, ok := k.recent.get(h); ok {
		return v, true, nil
	}
	if v, ok := k.sealing.get(h); ok {
		return v, true, nil
	}
	for i := len(k.runs) - 1; i >= 0; i-- {
		v, ok, err := k.runs[i].get(h)
		if ok || err != nil {
			return v, ok, err
		}
	}
	return idempotencyValue{}, false, nil
}

func (k *idempotencyKeys) put(h hash128, v idempotencyValue) { k.recent.put(h, v) }

// size is the number of keys held, expired ones among them.
func (k *idempotencyKeys) size() int64 {
	return int64(k.recent.size()) + int64(k.sealing.size()) + k.total
}

// freeze hands the recent keys to a checkpoint and starts anew.
func (k *idempotencyKeys) freeze() answers {
	if k.recent.size() == 0 {
		return answers{}
	}
	k.sealing, k.recent = k.recent, newAnswers()
	return k.sealing
}

// setRuns installs the runs a checkpoint wrote; they include what was sealing.
func (k *idempotencyKeys) setRuns(runs []*run) {
	k.runs, k.sealing, k.total = runs, answers{}, 0
	for _, r := range runs {
		k.total += int64(r.count)
	}
}
