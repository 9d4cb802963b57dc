package crash

import (
	"time"

	"github.com/musterhq/muster/bench/internal/topology"
)

// Limits of a run.
const (
	MaxRounds  = 10_000
	minWorkers = 2 // every other one posts batches
	maxWorkers = 64
)

// Complete puts the usual numbers in place of zero values, and reports the first fault.
func Complete(k *topology.Kills) error { return k.Complete(usual, MaxRounds, minWorkers, maxWorkers) }

// usual is the defaults of a run.
var usual = topology.Kills{Rounds: 5, Workers: 6, MinLoad: 30 * time.Millisecond, MaxLoad: 900 * time.Millisecond}
