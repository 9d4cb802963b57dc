package flowcrash

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/bench/internal/server"
)

// Limits of a [Config].
const (
	MaxRounds  = 1000
	maxWorkers = 32
	maxLoad    = time.Minute
)

// Config says what to do. The zero value of a field but Installation means its
// default.
type Config struct {
	Installation *server.Installation
	// Variants are further arguments of the server; each start takes one of them.
	Variants [][]string
	// Rounds is how often the server is killed under load. Default 3.
	Rounds int
	// Seed makes the requests and moments repeatable, as far as the machine is.
	Seed uint64
	// Workers act at the same time. Default 4.
	Workers int
	// MinLoad and MaxLoad bound the random time from ready to kill. Defaults 100 ms
	// and 2 s.
	MinLoad, MaxLoad time.Duration
	// MailFaults has the SMTP server fail some messages at the first attempt. They
	// are tried again after 7.5 s and more, which makes the end of a run longer.
	MailFaults bool
	// StartTimeout bounds a start after a kill, StopTimeout the stop at the end.
	// Defaults 60 s.
	StartTimeout, StopTimeout time.Duration
	// SettleTimeout bounds the time until all ways through flows have ended, after
	// the last kill. Default 2 min.
	SettleTimeout time.Duration
	// Log receives a line per round; nil is silent.
	Log func(format string, args ...any)
}

func (c Config) withDefaults() Config {
	if c.Rounds == 0 {
		c.Rounds = 3
	}
	if c.Workers == 0 {
		c.Workers = 4
	}
	if c.MinLoad == 0 {
		c.MinLoad = 100 * time.Millisecond
	}
	if c.MaxLoad == 0 {
		c.MaxLoad = 2 * time.Second
	}
	for _, d := range []*time.Duration{&c.StartTimeout, &c.StopTimeout} {
		if *d == 0 {
			*d = time.Minute
		}
	}
	if c.SettleTimeout == 0 {
		c.SettleTimeout = 2 * time.Minute
	}
	if c.Log == nil {
		c.Log = func(string, ...any) {}
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Installation == nil:
		return fmt.Errorf("a crash run of flows needs an installation")
	case c.Rounds < 1 || c.Rounds > MaxRounds:
		return fmt.Errorf("rounds must be 1 to %d, not %d", MaxRounds, c.Rounds)
	case c.Workers < 1 || c.Workers > maxWorkers:
		return fmt.Errorf("workers must be 1 to %d, not %d", maxWorkers, c.Workers)
	case c.MinLoad < 0 || c.MaxLoad < c.MinLoad || c.MaxLoad > maxLoad:
		return fmt.Errorf("load must last 0 to %v, the least no longer than the most", maxLoad)
	}
	return nil
}

// Report is what a run did. It says more than counts only when every check
// passed.
type Report struct {
	Kills           int `json:"kills"`
	KillsWhileStart int `json:"kills_while_starting"`
	// PausedKills are kills over which a flow was paused.
	PausedKills int `json:"kills_while_paused"`
	Work
	// StartMedian and StartMax are the times until a restarted server served.
	StartMedian time.Duration `json:"start_median_ns"`
	StartMax    time.Duration `json:"start_max_ns"`
	Elapsed     time.Duration `json:"elapsed_ns"`
}

// Work is what a [Load] did.
type Work struct {
	Requests   int `json:"requests"`
	Retried    int `json:"requests_retried"`
	Acked      int `json:"events_acked"`
	Triggers   int `json:"api_triggers_acked"`
	People     int `json:"people"`
	Merges     int `json:"merges"`
	Pauses     int `json:"pauses"`
	Enrolments int `json:"enrolments"`
	// Late are ways begun by a call that its caller had given up or was refused.
	Late  int `json:"enrolments_by_late_calls"`
	Steps int `json:"steps"`
	// ByFlow are the enrolments by name of flow.
	ByFlow map[string]int `json:"enrolments_by_flow"`
	// Calls and Mails are different ids.
	Calls int `json:"webhooks"`
	Mails int `json:"emails"`
	// Repeats under an id by what explains them: it was not taken before (the receiver
	// answered an error, hung, hung up or was cut off by a kill), or it was, and the
	// server was killed or disturbed before that was on record.
	AfterError int `json:"repeats_after_error"`
	AfterKill  int `json:"repeats_after_kill"`
}
