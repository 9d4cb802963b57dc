package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/bench/internal/recovery"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/soak"
	"github.com/musterhq/muster/internal/serverprocess"
	"github.com/musterhq/muster/internal/testlevel"
)

// L1, L2: a short soak and two kills under clients that retry at once: each
// acknowledged event is in history once, and every sample is there.
func TestSoakAndRecovery(t *testing.T) {
	testlevel.SkipQuick(t, "starts the real binary")
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	binary := serverprocess.Binary(t)
	soaked, err := soak.Run(ctx, soak.Options{
		Duration: 2 * time.Second, Interval: time.Second, RatePerSecond: 100, MergesPerSecond: 10, Connections: 4,
		Profiles: 200, EventBytes: 320, Segments: 3, Options: server.Options{Binary: binary, Dir: t.TempDir(), Log: t.Logf},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(soaked.Samples) < 2 || soaked.Merges == 0 || soaked.Once.Acked == 0 {
		t.Errorf("the soak did too little to prove anything: %+v", soaked)
	}
	for _, s := range soaked.Samples {
		if s.EventsPerSecond == 0 || s.RSSBytes == 0 || s.OpenFiles == 0 || s.DiskBytes["log"] == 0 || s.StoredEvents == 0 {
			t.Errorf("sample %+v lacks a figure", s)
		}
	}
	recovered, err := recovery.Run(ctx, recovery.Options{
		Events: 1000, Profiles: 200, Segments: 3, Clients: 4, Rounds: 2,
		Options: server.Options{Binary: binary, Dir: t.TempDir(), Log: t.Logf},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(recovered.Rounds) != 2 || recovered.Rounds[1].FirstSeconds <= 0 || recovered.Refused == 0 {
		t.Errorf("the kills did too little to prove anything: %+v", recovered)
	}
}

// TestOptionsAreJudgedBeforeBuilding: a mistaken option is reported before the
// server is built.
func TestOptionsAreJudgedBeforeBuilding(t *testing.T) {
	for _, args := range [][]string{{"soak", "--segments", "99"}, {"recovery", "--segments", "99"}, {"crash", "--rounds", "-1"}, {"crash", "--flows", "--rounds", "-1"}, {"chaos", "--rounds", "-1"}} {
		var said bytes.Buffer
		err := dispatch(t.Context(), streams{out: io.Discard, err: &said}, args)
		if err == nil || !strings.Contains(err.Error(), args[len(args)-2][2:]+" must be") || strings.Contains(said.String(), "building") {
			t.Errorf("%v, said %q; expected the mistake before the server is built", err, said.String())
		}
	}
}
