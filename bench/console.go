package main

import (
	"context"

	"github.com/musterhq/muster/bench/internal/editor"
)

func consoleRun(ctx context.Context, s streams, args []string) error {
	var o editor.Options
	f := newFlags("console", s)
	f.IntVar(&o.Profiles, "profiles", 1_000_000, "profiles of the account")
	f.IntVar(&o.EventsPerProfile, "events-per-profile", 10, "past events per profile, spread over 90 days")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of events and questions")
	f.IntVar(&o.Searches, "searches", 1000, "searches of each kind")
	f.IntVar(&o.Suggestions, "suggestions", 500, "requests of each kind of suggestion")
	f.IntVar(&o.Definitions, "definitions", 40, "definitions that are previewed, each with conditions that are new")
	f.StringVar(&o.Kept, "kept", "", "directory of a server that an earlier run kept (server/ below what --keep left): nothing is filled; the sizes must be those of that run")
	f.IntVar(&o.Edits, "edits", 5, "thresholds that each of them is edited to")
	f.StringVar(&o.Browser, "browser", "", "path of Chromium: types into the console's builder and opens its pages, too; needs Node.js and npm ci in console/web")
	return measure(ctx, f, newTrial(f, s), args, &o.Options, func() error { return o.Validate() }, func() (*editor.Report, error) { return editor.Run(ctx, o) })
}
