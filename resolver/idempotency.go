package resolver

// idempotencyValue is the first answer to an idempotency key.
type idempotencyValue struct {
	atMs    int64 // log time of the first answer
	ordinal uint32
}

// idempotencyKeys remembers the first answers. The newest keys are in a map;
// older ones are in immutable sorted files (runs). Which of them holds a key
// does not show: whether a key still counts is judged by its own time.
type idempotencyKeys struct {
	recent map[hash128]idempotencyValue
	// sealing is being written to a run by the checkpoint under way.
	sealing map[hash128]idempotencyValue
	runs    []*run // oldest first
	total   int64  // keys in runs
}

// get finds the newest answer to a key, whatever its age.
func (k *idempotencyKeys) get(h hash128) (idempotencyValue, bool, error) {
	if v, ok := k.recent[h]; ok {
		return v, true, nil
	}
	if v, ok := k.sealing[h]; ok {
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

func (k *idempotencyKeys) put(h hash128, v idempotencyValue) { k.recent[h] = v }

// size is the number of keys held, expired ones among them.
func (k *idempotencyKeys) size() int64 {
	return int64(len(k.recent)) + int64(len(k.sealing)) + k.total
}

// freeze hands the recent keys to a checkpoint and starts anew.
func (k *idempotencyKeys) freeze() map[hash128]idempotencyValue {
	if len(k.recent) == 0 {
		return nil
	}
	k.sealing = k.recent
	k.recent = make(map[hash128]idempotencyValue, len(k.sealing))
	return k.sealing
}

// setRuns installs the runs a checkpoint wrote; they include what was sealing.
func (k *idempotencyKeys) setRuns(runs []*run) {
	k.runs, k.sealing, k.total = runs, nil, 0
	for _, r := range runs {
		k.total += int64(r.count)
	}
}
