package cluster

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/bench/internal/contest"
	"github.com/musterhq/muster/bench/internal/report"
)

func per(second float64) Phase { return Phase{Phase: report.Phase{EventsPerSecond: second}} }

func roundOf(produce, full, group float64) Round {
	return Round{
		Produce: per(produce), ProduceFull: per(full), Insert: per(1000),
		Groups: []Loaded{{Nodes: 3, Route: ToOwner, Saturated: per(group), HistoryPerSecond: 100}},
	}
}

// Ratios are of the same round, so that a machine that is twice as slow in one
// changes nothing, and a target that is missed says so.
func TestRatiosAndTargets(t *testing.T) {
	r := &Report{Options: Options{Session: 10 * time.Second}, Modes: []ModeReport{{
		Mode: contest.Mode{Name: "batch", Batch: 100, Connections: 16}, Rounds: []Round{roundOf(100, 200, 60), roundOf(50, 100, 30), roundOf(100, 200, 80)},
	}, {
		Mode: contest.Mode{Name: "single", Connections: 64}, Rounds: []Round{roundOf(100, 200, 60)},
	}}, Moves: &Moves{Profiles: 7, Steps: []Step{
		{Name: "third node joins", From: 1, To: 1, EventSeconds: 99},
		{Name: "owner is stopped", From: 0, To: 1, EventSeconds: 1, CountSeconds: 10.5},
		{Name: "owner is killed", From: 1, To: 2, EventSeconds: 2, CountSeconds: 1},
	}}}
	r.conclude()
	var out bytes.Buffer
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"3 nodes, owner: 60 events/s = 60.0 % (60.0 to 80.0) of produce with a record a request, 30.0 % (30.0 to 40.0) of full batches; history 10.0 %",
		"MET: batch, 3 nodes, owner, by bare produce, full batches: 0.3, at least 0.25",
		"MISSED: single, 3 nodes, owner, by bare produce, a record a request: 0.6, at least 0.75",
		"MISSED: 7 profiles, owner is stopped: unavailable in s: 10.5, at most 10",
		"MET: 7 profiles, owner is killed: unavailable in s: 2, at most 10",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if len(r.Targets) != 4 {
		t.Errorf("%d targets, want 4: what did not move is not judged", len(r.Targets))
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := Options{
		Modes: []contest.Mode{{Name: "batch", Batch: 10, Connections: 8}}, Nodes: []int{1, 3}, Partitions: 6, Rounds: 1, Duration: time.Second,
		Profiles: 100, EventBytes: 320, Segments: 20, MoveProfiles: 10, Cycles: 1, ProbesPerSecond: 50, Session: 10 * time.Second, Services: Own,
	}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Options){
		"rounds must":                      func(o *Options) { o.Rounds = -1 },
		"nothing to do":                    func(o *Options) { o.Rounds, o.MoveProfiles = 0, 0 },
		"partitions must be 1":             func(o *Options) { o.Partitions = 0 },
		"partitions, for moves, must be 3": func(o *Options) { o.Partitions, o.Nodes = 2, []int{1} },
		"nodes must":                       func(o *Options) { o.Nodes = []int{0} },
		"as many as nodes":                 func(o *Options) { o.Nodes = []int{7} },
		"connections must":                 func(o *Options) { o.Modes[0].Connections = 5 },
		"profiles must":                    func(o *Options) { o.Profiles = 5 },
		"session-timeout must":             func(o *Options) { o.Session = time.Second },
		"services must":                    func(o *Options) { o.Services = "none" },
		"probes must":                      func(o *Options) { o.ProbesPerSecond = 0 },
		"cycles must":                      func(o *Options) { o.Cycles = 0 },
		"segments must":                    func(o *Options) { o.Segments = 99 },
	} {
		o := good
		o.Modes = append([]contest.Mode(nil), good.Modes...)
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
