package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/bench/internal/crash"
	"github.com/musterhq/muster/bench/internal/flowcrash"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/topology"
)

func crashRun(ctx context.Context, s streams, args []string) error {
	f := newFlags("crash", s)
	withFlows := f.Bool("flows", false, "with flows running: each enrolment exists once, each effect has one id")
	rounds := f.Int("rounds", 50, "how often the server is killed under load")
	seed := f.Uint64("seed", 1, "seed of requests and moments")
	workers := f.Int("workers", 6, "workers that post at the same time; every other one posts batches; 4 with --flows")
	maxLoad := f.Duration("max-load", 900*time.Millisecond, "longest time from ready to kill; 2s with --flows")
	t := newTrial(f, s)
	if err := parse(f, args, 0); err != nil {
		return err
	}
	if err := t.open(ctx); err != nil {
		return err
	}
	installation, err := server.NewInstallation(filepath.Join(t.dir, "server"), t.binary, t.serverArgs())
	if err != nil {
		return t.close(err, nil)
	}
	kills := topology.Kills{Installation: installation, Variants: topology.UsualVariants(), Rounds: *rounds, Seed: *seed, Log: s.logf}
	f.Visit(func(given *flag.Flag) {
		switch given.Name {
		case "workers":
			kills.Workers = *workers
		case "max-load":
			kills.MaxLoad = *maxLoad
		}
	})
	if *withFlows {
		return crashFlows(ctx, s, flowcrash.Config{Kills: kills, MailFaults: true}, t)
	}
	report, err := crash.Run(ctx, kills)
	if err != nil {
		return t.close(err, nil)
	}
	fmt.Fprintf(s.out, "killed %d times under load and %d times while starting, in %v\n", report.Kills, report.KillsWhileStart, report.Elapsed.Round(time.Second))
	fmt.Fprintf(s.out, "%d requests, %d sent again after no answer, %d sent twice at once; %d events sent again on purpose\n",
		report.Requests, report.Retried, report.Twins, report.Repeated)
	fmt.Fprintf(s.out, "%d events of %d profiles acknowledged: each is in history exactly once, each profile and segment count is right\n",
		report.Acked, report.Profiles)
	fmt.Fprintf(s.out, "%d events given up, %d of them in history, none twice\n", report.GivenUp, report.GivenUpInHistory)
	fmt.Fprintf(s.out, "restart: median %v, longest %v\n", report.StartMedian.Round(time.Millisecond), report.StartMax.Round(time.Millisecond))
	return t.close(nil, report)
}

// crashFlows is crashRun with flows.
func crashFlows(ctx context.Context, s streams, c flowcrash.Config, t *trial) error {
	r, err := flowcrash.Run(ctx, c)
	if err != nil {
		return t.close(err, nil)
	}
	fmt.Fprintf(s.out, "seed %d: killed %d times under load, %d of them with a flow paused, and %d times while starting, in %v\n",
		c.Seed, r.Kills, r.PausedKills, r.KillsWhileStart, r.Elapsed.Round(time.Second))
	fmt.Fprintf(s.out, "%d requests, %d sent again after no answer; %d events and %d calls to flows acknowledged, of %d people; %d merges, %d pauses\n",
		r.Requests, r.Retried, r.Acked, r.Triggers, r.People, r.Merges, r.Pauses)
	fmt.Fprintf(s.out, "%d enrolments, %d steps: each exists once, took the path it had to and is counted right\n", r.Enrolments, r.Steps)
	fmt.Fprintf(s.out, "%d webhook calls and %d e-mails, each under one id; %d came again after a fault of the receiver, %d over a kill\n",
		r.Calls, r.Mails, r.AfterError, r.AfterKill)
	fmt.Fprintf(s.out, "restart: median %v, longest %v\n", r.StartMedian.Round(time.Millisecond), r.StartMax.Round(time.Millisecond))
	return t.close(nil, r)
}
