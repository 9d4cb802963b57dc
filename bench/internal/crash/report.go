package crash

import "time"

// Report is what a run did. It is only made when every check passed.
type Report struct {
	Kills           int `json:"kills"`
	KillsWhileStart int `json:"kills_while_starting"`
	Work
	// StartMedian and StartMax are the times until a restarted server served.
	StartMedian time.Duration `json:"start_median_ns"`
	StartMax    time.Duration `json:"start_max_ns"`
	Elapsed     time.Duration `json:"elapsed_ns"`
}

// Work is what a [Load] did.
type Work struct {
	Requests         int `json:"requests"`
	Retried          int `json:"requests_retried"`
	Twins            int `json:"requests_sent_twice_at_once"`
	Acked            int `json:"events_acked"`
	Repeated         int `json:"events_repeated"`
	GivenUp          int `json:"events_given_up"`
	GivenUpInHistory int `json:"events_unacked_in_history"`
	Profiles         int `json:"profiles"`
}
