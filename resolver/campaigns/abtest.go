package campaigns

import "github.com/musterhq/muster/resolver/internal/feature"

// testBudget is how many recipients may be taken now, and how long an A/B test
// waits before it continues.
func (s *State) testBudget(tx *feature.Tx, x *Campaign, r *Run) (budget uint64, waitMs int64) {
	ab := r.AB
	if ab == nil || ab.Winner >= 0 {
		return maxBatch, 0
	}
	pending := s.members(x, setPending).GetCardinality()
	switch taken := r.Sent + r.Failed + pending; {
	case taken < ab.Tested && !(s.members(x, setAudience).IsEmpty() && s.held(x, r) == 0):
		return ab.Tested - taken, 0
	case pending > 0:
		return 0, testPollMs
	case ab.EndsMs == 0:
		ab.EndsMs, r.Status = tx.AtMs+ab.WaitMs, RunTesting
		return 0, max(ab.WaitMs, 1)
	case tx.AtMs < ab.EndsMs:
		return 0, ab.EndsMs - tx.AtMs
	}
	ab.Winner, r.Status = r.best(), RunSending
	return maxBatch, 0
}

// testPollMs is how often an A/B test looks whether its messages are out.
const testPollMs = 200

// best is the variant with the highest rate of the test's metric; of equal ones
// the first.
func (r *Run) best() int {
	best := 0
	count := func(i int) (hits, of uint64) {
		if i >= len(r.VariantOf) {
			return 0, 1
		}
		v := r.VariantOf[i]
		if r.AB.Metric == "clicks" {
			return v.Clicked, max(v.Sent, 1)
		}
		return v.Opened, max(v.Sent, 1)
	}
	for i := 1; i < r.Variants; i++ {
		h, n := count(i)
		if bh, bn := count(best); h*bn > bh*n {
			best = i
		}
	}
	return best
}

// variant is the one a recipient gets.
func (r *Run) variant(o uint32) int {
	switch {
	case r.AB == nil:
		return 0
	case r.AB.Winner >= 0:
		return r.AB.Winner
	}
	// Neighbours differ, and the order of the audience does not matter.
	return int((uint64(o)*0x9e3779b97f4a7c15 + uint64(r.Run)) >> 33 % uint64(r.Variants))
}
