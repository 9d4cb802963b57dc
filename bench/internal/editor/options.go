package editor

import (
	"cmp"

	"github.com/musterhq/muster/bench/internal/server"
)

// Options say how large the account is, and how often is asked.
type Options struct {
	Profiles int `json:"profiles"`
	// EventsPerProfile are past events, spread over 90 days.
	EventsPerProfile int    `json:"events_per_profile"`
	Seed             uint64 `json:"seed"`
	// Searches, Suggestions and Definitions are how many of each are timed; a definition is
	// asked once, and then with Edits other thresholds.
	Searches    int `json:"searches"`
	Suggestions int `json:"suggestions"`
	Definitions int `json:"definitions"`
	Edits       int `json:"edits"`
	server.Options
	// Browser is the path of Chromium, which types into the console's builder, too; "" for
	// none.
	Browser string `json:"browser,omitempty"`
	// Kept is the directory of a server that is filled already, "" for a new one.
	Kept string `json:"kept,omitempty"`
}

// Validate reports the first fault of the options. Binary may be missing: it can be built
// once the others are right.
func (o Options) Validate() error {
	return cmp.Or(
		server.Within("profiles", o.Profiles, 1, 20_000_000),
		server.Within("events-per-profile", o.EventsPerProfile, 1, 1000),
		server.Within("searches", o.Searches, 1, 1_000_000),
		server.Within("suggestions", o.Suggestions, 1, 1_000_000),
		server.Within("definitions", o.Definitions, 1, 1000),
		server.Within("edits", o.Edits, 1, 1000),
	)
}
