package main

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/musterhq/muster/bench/internal/chaos"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/internal/serverprocess"
	"github.com/musterhq/muster/internal/services"
	"github.com/musterhq/muster/internal/testlevel"
)

// Rounds of TestL1L2F1Chaos.
const (
	fewFaults  = 10
	manyFaults = 100
)

// L1, L2, F1: whatever is killed, frozen or cut off - nodes, Kafka, ClickHouse -
// what was acknowledged counts exactly once, in segments and in ClickHouse, people
// are enrolled once, effects have one id, and posts and counts are linearizable.
// Real processes, faults in MUSTER_CHAOS_ROUNDS rounds (default 10, 100 with
// MUSTER_LONG=1), with seed MUSTER_CHAOS_SEED (default 1). MUSTER_BINARY names a
// binary that is built already.
func TestL1L2F1Chaos(t *testing.T) {
	testlevel.SkipQuick(t, "starts the real binary")
	t.Parallel()
	rounds, seed := roundsOf(t, "CHAOS", fewFaults, manyFaults)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute+time.Duration(rounds)*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "muster-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	report, err := chaos.Run(ctx, chaos.Config{
		Options: server.Options{Binary: serverprocess.Binary(t), Dir: dir, Log: t.Logf}, Rounds: rounds, Seed: seed,
	})
	if errors.Is(err, services.ErrMissing) && os.Getenv(services.EnvRequire) != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("%v\n(data and logs are in %s)", err, dir)
	}
	if report.Rounds != rounds || report.Events.Acked < 200*rounds || report.Flows.Enrolments < 10*rounds || report.Probes.Reads < 50*rounds {
		t.Errorf("the run did too little to prove anything: %+v", report)
	}
	t.Logf("%+v", report)
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}
