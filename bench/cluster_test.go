package main

import (
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/bench/internal/cluster"
	"github.com/musterhq/muster/internal/serverprocess"
	"github.com/musterhq/muster/internal/services"
	"github.com/musterhq/muster/internal/testlevel"
)

// L1, L2: nodes on Kafka and ClickHouse count each acknowledged event once, in
// segments and in ClickHouse, also those of a partition that moves. All of bench
// cluster on a small load: a run whose checks fail is an error. Rates and times
// are not judged here.
func TestL1L2Cluster(t *testing.T) {
	testlevel.SkipQuick(t, "starts the real binary")
	services.Kafka(t) // or skips
	services.ClickHouse(t)
	file := filepath.Join(t.TempDir(), "report.json")
	r, table := runReport[cluster.Report](t, file, "cluster", "--services", "shared", "--modes", "batch", "--nodes", "2", "--rounds", "1", "--duration", "300ms", "--profiles", "600",
		"--partitions", "3", "--move-profiles", "500", "--session-timeout", "6s", "--server-args", "--checkpoint-interval 1s", "--binary", serverprocess.Binary(t), "--json", file)
	wantText(t, table, "2 nodes, owner, at ", "owner is killed", "of produce with a record a request", "profiles, owner is killed: unavailable in s: ")
	if len(r.Modes) != 1 || r.Moves == nil || len(r.Moves.Steps) != 6 {
		t.Fatalf("%+v", r)
	}
	for _, m := range r.Modes {
		round := m.Rounds[0]
		if len(round.Groups) != 2 || round.Produce.Events == 0 || round.ProduceFull.Events == 0 || round.Insert.Events == 0 || m.RecordBytes == 0 {
			t.Errorf("%s: %+v", m.Mode.Name, round)
		}
		for _, g := range round.Groups {
			if g.Saturated.Events == 0 || g.Paced.Events == 0 || g.HistoryPerSecond == 0 || g.Saturated.NodesMicros == 0 {
				t.Errorf("%s: %+v", m.Mode.Name, g)
			}
		}
	}
	if len(r.Once) != 1 {
		t.Errorf("%d groups", len(r.Once))
	}
	for name, o := range r.Once {
		// Half of 20 segments in each of 3 companies are counted.
		if o.Acked == 0 || o.Acked != o.Rows || o.Segments != 30 {
			t.Errorf("%s: %+v", name, o)
		}
	}
	moved := 0
	for _, s := range r.Moves.Steps {
		if s.From != s.To {
			moved++
		}
		if s.Probes == 0 || s.EventSeconds == 0 || s.CountSeconds == 0 {
			t.Errorf("%+v", s)
		}
	}
	if o := r.Moves.Once; moved < 4 || r.Moves.Probes == 0 || o.Acked < 500+r.Moves.Probes || o.Rows != o.Acked || o.Segments != 11 {
		t.Errorf("%d moves, %+v", moved, r.Moves)
	}
}
