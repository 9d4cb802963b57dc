package flowcrash

import (
	"fmt"
	"io"
	"time"

	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/bench/internal/topology"
)

// Limits of a [Config].
const (
	MaxRounds  = 1000
	minWorkers = 1
	maxWorkers = 32
)

// Config says what to do. The zero value of a number means the usual.
type Config struct {
	topology.Kills
	// MailFaults has the SMTP server fail some messages at the first attempt. They
	// are tried again after 7.5 s and more, which makes the end of a run longer.
	MailFaults bool
	// IdleTimeout bounds the time until all enrolments have ended, after
	// the last kill. Default 2 min.
	IdleTimeout time.Duration
}

// Complete puts the usual numbers in place of zero values, and reports the first fault.
func (c *Config) Complete() error { return c.Kills.Complete(usual, MaxRounds, minWorkers, maxWorkers) }

// usual is the defaults of a run.
var usual = topology.Kills{Rounds: 3, Workers: 4, MinLoad: 100 * time.Millisecond, MaxLoad: 2 * time.Second}

// Report is what a run did. It is only made when every check passed.
type Report struct {
	topology.Killed
	// PausedKills are kills over which a flow was paused.
	PausedKills int `json:"kills_while_paused"`
	Work
}

// Print writes the report for people.
func (r *Report) Print(out io.Writer) error {
	return report.PrintTables(out, func(w io.Writer) {
		fmt.Fprintf(w, "seed %d: killed %d times under load, %d of them with a flow paused, and %d times while starting, in %v\n",
			r.Seed, r.Kills, r.PausedKills, r.KillsWhileStart, r.Elapsed.Round(time.Second))
		fmt.Fprintf(w, "%d requests, %d sent again after no answer; %d events and %d calls to flows acknowledged, of %d people; %d merges, %d pauses\n",
			r.Requests, r.Retried, r.Acked, r.Triggers, r.People, r.Merges, r.Pauses)
		fmt.Fprintf(w, "%d enrolments, %d steps: each exists once, took the path it had to and is counted right\n", r.Enrolments, r.Steps)
		fmt.Fprintf(w, "%d webhook calls and %d e-mails, each under one id; %d came again after a fault of the receiver, %d over a kill\n",
			r.Calls, r.Mails, r.AfterError, r.AfterKill)
	}, r.PrintStarts)
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
	// Late are enrolments begun by a call that its caller had given up or was
	// refused.
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
