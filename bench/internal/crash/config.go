package crash

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/bench/internal/server"
)

// Limits of a [Config].
const (
	MaxRounds  = 10_000
	maxWorkers = 64
	maxLoad    = time.Minute
)

// Config says what to do. The zero value of a field but Installation means its
// default.
type Config struct {
	Installation *server.Installation
	// Variants are further arguments of the server; each start takes one of
	// them. Some should make checkpoints so often that kills hit them.
	Variants [][]string
	// Rounds is how often the server is killed under load. Default 5.
	Rounds int
	// Seed makes the requests and moments repeatable, as far as the machine is.
	Seed uint64
	// Workers post at the same time; every other one posts batches. Default 6.
	Workers int
	// MinLoad and MaxLoad bound the random time from ready to kill. Defaults
	// 30 ms and 900 ms.
	MinLoad, MaxLoad time.Duration
	// StartTimeout bounds a start after a kill. Default 60 s.
	StartTimeout time.Duration
	// StopTimeout bounds the graceful stop at the end. Default 60 s.
	StopTimeout time.Duration
	// Log receives a line per round; nil is silent.
	Log func(format string, args ...any)
}

func (c Config) withDefaults() Config {
	if c.Rounds == 0 {
		c.Rounds = 5
	}
	if c.Workers == 0 {
		c.Workers = 6
	}
	if c.MinLoad == 0 {
		c.MinLoad = 30 * time.Millisecond
	}
	if c.MaxLoad == 0 {
		c.MaxLoad = 900 * time.Millisecond
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = time.Minute
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = time.Minute
	}
	if c.Log == nil {
		c.Log = func(string, ...any) {}
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Installation == nil:
		return fmt.Errorf("crash run needs an installation")
	case c.Rounds < 1 || c.Rounds > MaxRounds:
		return fmt.Errorf("rounds must be 1 to %d, not %d", MaxRounds, c.Rounds)
	case c.Workers < 2 || c.Workers > maxWorkers:
		return fmt.Errorf("workers must be 2 to %d, not %d", maxWorkers, c.Workers)
	case c.MinLoad < 0 || c.MaxLoad < c.MinLoad || c.MaxLoad > maxLoad:
		return fmt.Errorf("load must last 0 to %v, the least no longer than the most", maxLoad)
	}
	return nil
}
