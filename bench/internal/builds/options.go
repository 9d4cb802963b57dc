package builds

import (
	"cmp"
	"time"

	"github.com/musterhq/muster/bench/internal/payload"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/segment/segmenttest"
)

// Limits of [Options]. Fewer pairs have no interval of 95 %; CPU time is counted in steps of
// 10 ms, too coarse for shorter turns.
const (
	minPairs = 6
	maxPairs = 1000
	minTurn  = 100 * time.Millisecond
	maxTurn  = time.Minute
)

// Options say what is compared.
type Options struct {
	// Load is what is sent, over so many connections.
	Load        payload.Spec `json:"load"`
	Connections int          `json:"connections"`
	// Segments is how many segments are live meanwhile.
	Segments int `json:"segments"`
	// Pairs is how many turns each build has, Turn how long one is.
	Pairs int           `json:"pairs"`
	Turn  time.Duration `json:"turn_ns"`
	// Other is the path of the build that Binary is compared with.
	Other string `json:"-"`

	server.Options
}

// Validate reports the first fault of the options.
func (o Options) Validate() error {
	return cmp.Or(
		server.Within("pairs", o.Pairs, minPairs, maxPairs),
		server.Within("turn", o.Turn, minTurn, maxTurn),
		server.Within("segments", o.Segments, 0, len(segmenttest.LiveSegments)),
		o.Load.Validate(),
	)
}
