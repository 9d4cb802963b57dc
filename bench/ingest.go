package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/bench/internal/contest"
)

// Connections when the flag is not given.
const (
	singleConnections = 64
	batchConnections  = 16
)

func ingest(ctx context.Context, s streams, args []string) error {
	var o contest.Options
	f := newFlags("ingest", s)
	modes := f.String("modes", "single,batch", "what to send: single, batch or both, separated by a comma")
	surface := f.String("surface", "events", "events: the events API, in the modes of --modes; tracking: the tracking API with batches as Segment's SDK for Node.js sends them, beside batches of the events API")
	batch := f.Int("batch", 100, "events per batch")
	connections := f.Int("connections", 0, fmt.Sprintf("connections; 0 is %d for single events and %d for batches", singleConnections, batchConnections))
	f.DurationVar(&o.Duration, "duration", 15*time.Second, "length of each phase on muster")
	f.DurationVar(&o.SaturatedDuration, "saturated-duration", 0, "length of the first of them, at the highest rate; 0 is that of --duration")
	f.DurationVar(&o.BaselineDuration, "baseline-duration", 5*time.Second, "length of the phase on each baseline server")
	f.IntVar(&o.Rounds, "rounds", 2, "how often everything is measured")
	f.Float64Var(&o.RatePerSecond, "rate", 0, "events/s of the open loop; 0 is half of the measured maximum")
	f.IntVar(&o.Profiles, "profiles", 100_000, "known profiles")
	f.Float64Var(&o.NewRatio, "new-ratio", 0.05, "share of events on new profiles, 0 to 1")
	changes := f.String("change-ratio", "", "shares of the events whose traits change, 0 to 1, separated by a comma: each mode is measured with each. all draws traits for each event, so that nearly each changes its profile. Empty is all,0.05 for the events API, all for the tracking API, which takes no other")
	f.IntVar(&o.EventBytes, "event-bytes", 320, "bytes of one event's JSON")
	f.IntVar(&o.Segments, "segments", 20, "segments that are live meanwhile, 0 to 20")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the generator")
	f.BoolVar(&o.Stalls, "stalls", false, "report what slow requests of the paced phase waited for, from an execution trace of the server, which costs it some CPU")
	baselineOnly := f.Bool("baseline-only", false, "measure the baseline servers alone")
	charts := f.String("charts", "", "directory for charts of rate, latency, CPU and memory over time, as SVG; empty draws none")
	t := newTrial(f, s)
	prepare := func() (err error) {
		o.Keep, t.without = t.keep, *baselineOnly
		self, err := os.Executable()
		if err != nil {
			return err
		}
		o.Baseline = []string{self, baselineCommand}
		if o.Modes, err = ingestModes(*surface, *modes, *changes, *batch, *connections); err != nil {
			return err
		}
		return o.Validate()
	}
	return measure(ctx, f, t, args, &o.Options, prepare, func() (*contest.Report, error) {
		r, err := contest.Run(ctx, o)
		if r == nil || *charts == "" {
			return r, err
		}
		_, fault := r.Plot(*charts)
		return r, errors.Join(err, fault)
	})
}

// ingestModes are the modes that the flags of ingest ask for.
func ingestModes(surface, names, changes string, batch, connections int) ([]contest.Mode, error) {
	if surface == "tracking" {
		names = "batch"
	} else if surface != "events" {
		return nil, fmt.Errorf("surface: there is no surface %q; name events or tracking", surface)
	}
	modes, err := modesOf(names, batch, connections)
	if err != nil {
		return nil, err
	}
	usual := "all,0.05"
	if surface == "tracking" {
		tracking := modes[0]
		tracking.Name, tracking.Tracking = "tracking", true
		modes, usual = append(modes, tracking), "all"
	}
	return withChanges(modes, cmp.Or(changes, usual))
}

// modesOf reads the names of modes; connections of 0 are the usual ones.
func modesOf(names string, batch, connections int) (modes []contest.Mode, err error) {
	for name := range strings.SplitSeq(names, ",") {
		m := contest.Mode{Name: strings.TrimSpace(name), Connections: connections}
		switch m.Name {
		case "single":
			m.Connections = cmp.Or(m.Connections, singleConnections)
		case "batch":
			m.Connections, m.Batch = cmp.Or(m.Connections, batchConnections), batch
			if m.Batch < 1 {
				return nil, fmt.Errorf("batch must be 1 or more, not %d", m.Batch)
			}
		default:
			return nil, fmt.Errorf("modes: there is no mode %q; name single, batch or both", m.Name)
		}
		modes = append(modes, m)
	}
	return modes, nil
}

// withChanges repeats the modes for each of the shares of events whose traits change.
func withChanges(modes []contest.Mode, ratios string) (out []contest.Mode, err error) {
	for _, m := range modes {
		for text := range strings.SplitSeq(ratios, ",") {
			if text = strings.TrimSpace(text); text != "all" {
				m.Repeat = true
				if m.ChangeRatio, err = strconv.ParseFloat(text, 64); err != nil {
					return nil, fmt.Errorf("change-ratio: %q is neither a number nor all", text)
				}
			}
			out = append(out, m)
			m.Repeat, m.ChangeRatio = false, 0
		}
	}
	return out, nil
}
