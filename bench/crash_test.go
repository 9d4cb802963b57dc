package main

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/musterhq/muster/bench/internal/crash"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/topology"
	"github.com/musterhq/muster/internal/serverprocess"
	"github.com/musterhq/muster/internal/testlevel"
)

// Rounds of TestL1L2KillNine.
const (
	fewRounds  = 5
	manyRounds = 50
)

// L1: an acknowledged request survives kill -9. L2: each acknowledged event
// counts exactly once, in segments and in history. The real binary is killed
// under load MUSTER_CRASH_ROUNDS times (default 5; 50 with MUSTER_LONG=1),
// with seed MUSTER_CRASH_SEED (default 1). MUSTER_BINARY names a binary that is
// built already.
func TestL1L2KillNine(t *testing.T) {
	testlevel.SkipQuick(t, "starts the real binary")
	t.Parallel()
	rounds, seed := roundsOf(t, "CRASH", fewRounds, manyRounds)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute+time.Duration(rounds)*30*time.Second)
	defer cancel()
	binary := serverprocess.Binary(t)
	dir, err := os.MkdirTemp("", "muster-crash-")
	if err != nil {
		t.Fatal(err)
	}
	report, err := crash.Run(ctx, topology.Kills{
		Options: server.Options{Binary: binary, Dir: dir, Log: t.Logf}, Variants: topology.UsualVariants(), Rounds: rounds, Seed: seed,
	})
	if err != nil {
		t.Fatalf("%v\n(the server's files are in %s)", err, dir)
	}
	if report.Kills != rounds || report.Acked < 100*rounds {
		t.Errorf("the run did too little to prove anything: %+v", report)
	}
	t.Logf("%+v", report)
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

// roundsOf returns how many rounds a test of a kind does, few or, with MUSTER_LONG=1,
// many, and its seed, as far as MUSTER_<kind>_ROUNDS and MUSTER_<kind>_SEED do not say.
func roundsOf(t *testing.T, kind string, few, many int) (rounds int, seed uint64) {
	t.Helper()
	if testlevel.Long() {
		few = many
	}
	return int(fromEnv(t, "MUSTER_"+kind+"_ROUNDS", uint64(few))), fromEnv(t, "MUSTER_"+kind+"_SEED", 1)
}

func fromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s must be a number, not %q", name, text)
	}
	return n
}
