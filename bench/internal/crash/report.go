package crash

import "github.com/musterhq/muster/bench/internal/topology"

// Report is what a run did. It is only made when every check passed.
type Report struct {
	topology.Killed
	Work
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
