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

// usual is the defaults of a run.
var usual = topology.Kills{Rounds: 5, Workers: 6, MinLoad: 30 * time.Millisecond, MaxLoad: 900 * time.Millisecond}
