package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/bench/internal/builds"
	"github.com/musterhq/muster/bench/internal/contest"
	"github.com/musterhq/muster/bench/internal/figures"
	"github.com/musterhq/muster/bench/internal/segments"
	"github.com/musterhq/muster/internal/serverprocess"
	"github.com/musterhq/muster/internal/testlevel"
)

func TestMain(m *testing.M) {
	// The bench starts itself as a baseline server; in a test that is this
	// binary.
	if len(os.Args) > 1 && os.Args[1] == baselineCommand {
		main()
		return
	}
	serverprocess.Main(m)
}

// runCommand runs a subcommand and returns what it wrote.
func runCommand(t *testing.T, in string, args ...string) (out, errors string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	err = dispatch(context.Background(), streams{strings.NewReader(in), &o, &e}, args)
	return o.String(), e.String(), err
}

// The committed sample is what the command writes without flags.
// runReport runs a command that must succeed and leave nothing behind, and returns
// its report, of which file names the JSON, and its tables.
func runReport[T any](t *testing.T, file string, args ...string) (r T, table string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	table, said, err := runCommand(t, "", args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("%v is left behind", left)
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r, table
}

// wantText checks that a text has each of some parts.
func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in:\n%s", part, text)
		}
	}
}

func TestSampleIsReproducible(t *testing.T) {
	want, err := os.ReadFile("sample/shop.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := runCommand(t, "", "shop")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Error("sample/shop.jsonl differs from what `go run ./bench shop` writes; write it again")
	}
	if len(want) > 300<<10 {
		t.Errorf("the sample has %d bytes, the limit is 300 KiB", len(want))
	}
}

func TestRetailReadsStandardInputAndFiles(t *testing.T) {
	const text = "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country\n" +
		"536365,85123A,HEART,6,2010-12-01 08:26:00,2.55,17850.0,United Kingdom\n"
	a, said, err := runCommand(t, text, "retail")
	if err != nil || !strings.Contains(a, `"external_id":"17850"`) || !strings.Contains(said, "1 purchases worth 15.3") {
		t.Errorf("%q, %q, %v", a, said, err)
	}
	path := filepath.Join(t.TempDir(), "retail.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b, _, err := runCommand(t, "", "retail", path)
	if err != nil || a != b {
		t.Errorf("from a file: %q, %v", b, err)
	}
}

// The whole measurement, but for Muster itself.
func TestIngestBaselines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	r, table := runReport[contest.Report](t, file, "ingest", "--baseline-only", "--baseline-duration", "300ms", "--rounds", "1",
		"--profiles", "1000", "--connections", "4", "--json", file)
	wantText(t, table, "parse only", "batches of 100, 4 connections")
	if len(r.Modes) != 4 || len(r.Modes[2].Rounds) != 1 || !r.Modes[3].Mode.Repeat || r.Modes[3].Mode.ChangeRatio != 0.05 {
		t.Fatalf("%+v", r)
	}
	batch := r.Modes[2]
	for name, p := range map[string]contest.Phase{"parse": batch.Rounds[0].Parse, "read": batch.Rounds[0].Read} {
		if p.Events != p.Requests*100 || p.Events == 0 || p.Failed != 0 || p.CPUSeconds <= 0 || p.PeakRSSBytes < 1<<20 || p.P50Millis <= 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if batch.Median.ReadCPUMicros >= batch.Median.ParseCPUMicros {
		t.Errorf("reading takes %.2f µs per event, parsing as well %.2f µs: that cannot be",
			batch.Median.ReadCPUMicros, batch.Median.ParseCPUMicros)
	}
}

// Two builds, which are the same, in short turns. The directory is given as people do, from
// where they are.
func TestBuilds(t *testing.T) {
	testlevel.SkipQuick(t, "measures two servers")
	binary, out := serverprocess.Binary(t), t.TempDir()
	t.Chdir(out)
	file := filepath.Join(out, "report.json")
	r, table := runReport[builds.Report](t, file, "builds", "--binary", binary, "--other", binary, "--dir", ".", "--json", file,
		"--pairs", "6", "--turn", "100ms", "--profiles", "1000", "--connections", "4", "--mode", "batch", "--batch", "10", "--change-ratio", "0.05")
	wantText(t, table, "batches of 10, traits of 0.05 of them change, 4 connections, 6 pairs of turns of 100ms", "CPU in its turns: ")
	for i, b := range r.Builds {
		last := b.Turns[len(b.Turns)-1]
		if len(b.Turns) != 6 || b.Events == 0 || last.EventsPerSecond <= 0 || b.CPUMicrosPerEvent <= 0 || b.Once.Acked < b.Events || b.Once.Rows != b.Once.Acked || b.Once.Missing+b.Once.Doubled > 0 {
			t.Errorf("build %d: %+v", i, b)
		}
	}
	if r.Rate.Low <= 0 || r.Rate.Low > r.Rate.Median || r.Rate.Median > r.Rate.High || r.WholeCPU <= 0 {
		t.Errorf("%+v", r)
	}
	if left, _ := filepath.Glob(filepath.Join(out, "muster-bench-*")); len(left) > 0 {
		t.Errorf("%v is left behind", left)
	}
}

// The page of figures, short and on small accounts.
func TestFigures(t *testing.T) {
	testlevel.SkipQuick(t, "measures servers for a minute")
	out := t.TempDir()
	_, page := runReport[figures.Report](t, filepath.Join(out, "report.json"), "figures", "--binary", serverprocess.Binary(t), "--out", out, "--json", filepath.Join(out, "report.json"),
		"--rounds", "1", "--duration", "500ms", "--max-profiles", "1000", "--stale-reads", "200", "--events", "5000", "--kills", "1")
	wantText(t, page, "| single events, traits of nearly each event change |", "| batches of 100, traits of 5 % of the events change |", "0 missing, 0 doubled",
		"## After kill -9", "## Segments, 1,000 profiles", "| 0 stale |")
	written, err := os.ReadFile(filepath.Join(out, "README.md"))
	if err != nil || !strings.HasPrefix(string(written), page) {
		t.Errorf("the page in the directory is another: %v", err)
	}
	charts, err := filepath.Glob(filepath.Join(out, "*.svg"))
	if err != nil || len(charts) != 4*4+6 {
		t.Errorf("%d charts, %v", len(charts), err)
	}
	for _, c := range charts {
		if !strings.Contains(string(written), "("+filepath.Base(c)+")") {
			t.Errorf("the page lacks %s", c)
		}
	}
}

// The whole of segments on a small account: what is in the report, that nothing
// is left behind, and that answers were compared.
func TestSegments(t *testing.T) {
	testlevel.SkipQuick(t, "measures a growing account")
	out := t.TempDir()
	r, table := runReport[segments.Report](t, filepath.Join(out, "report.json"), "segments", "--min-profiles", "2000", "--max-profiles", "2000", "--events", "2000", "--cost-events", "200",
		"--rounds", "1", "--reads", "300", "--stale-reads", "500", "--cpuprofile", "--out", out)
	wantText(t, table, "Ingest of 1 × 2000 events", "20 segments with", "stale reads: 0 of 500", "stopped: at 2000 profiles")
	for _, name := range []string{"cost-by-size.svg", "cost-by-segments.svg", "counts.svg", "backfill.svg", "memory.svg", "restart.svg", "ingest-20-segments-2000.pprof"} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(r.Steps) != 1 || r.Stale == nil || r.Stale.Reads != 500 || r.Stale.Stale != 0 || len(r.Targets) < 8 {
		t.Fatalf("%+v", r)
	}
	s := r.Steps[0]
	switch {
	case s.Incomplete != "" || s.Profiles != 2000 || s.Grow.Events != 20_000 || s.Events < 30_000:
		t.Errorf("%d profiles, %d past events, %d events, incomplete: %s", s.Profiles, s.Grow.Events, s.Events, s.Incomplete)
	case s.Ingest.Without.Events != 2000 || s.Ingest.With.Events != 2000 || s.Ingest.WithoutAgain.Events != 2000 || s.Ingest.With.LeastMicros <= 0 || s.Ingest.CPURatio <= 0:
		t.Errorf("ingest: %+v", s.Ingest)
	case s.Ingest.Without.Transitions != 0 || s.Ingest.With.Transitions == 0 || s.Ingest.WithoutAgain.Transitions != 0:
		t.Errorf("segments were live when they should not be, or the other way round: %+v", s.Ingest)
	case s.Cost == nil || len(s.Cost.Other) != 5 || len(s.Cost.Same) != 4 || s.Cost.Same[3].Segments != 1000 || s.Cost.Same[3].CPUMicros <= s.Cost.Same[0].CPUMicros:
		t.Errorf("cost: %+v", s.Cost)
	case s.Counts == nil || s.Counts.Busy.Reads != 300 || s.Counts.Busy.P50Micros <= 0 || s.Counts.PerSec <= 0 || len(s.Counts.SQL) != 3 || s.Counts.LeastTimes <= 0:
		t.Errorf("counts: %+v", s.Counts)
	case s.Preview == nil || s.Preview.KnownMillis <= 0 || s.Preview.FirstMillis <= 0 || s.Preview.WholeMillis <= 0 || s.Preview.UnknownConditions != 1:
		t.Errorf("previews: %+v", s.Preview)
	case len(s.Backfill) != 4 || s.Backfill[2].Members == 0 || s.Backfill[2].BuildMillis <= 0 || s.Backfill[2].BareMillis <= 0:
		t.Errorf("backfill: %+v", s.Backfill)
	case s.Memory.Segments.Segments != 20 || s.Memory.Segments.Values == 0 || s.Memory.BytesPerValue <= 0 || s.Memory.Started.HeapBytes <= 0 || s.Memory.Started.RSSBytes <= 0:
		t.Errorf("memory: %+v", s.Memory)
	case s.Restart == nil || s.Restart.SameMembers != 20 || s.Restart.OpenSeconds <= 0 || s.RestartBare == nil || s.Checkpoint == nil || s.Checkpoint.Bytes <= 0:
		t.Errorf("restart: %+v, checkpoint: %+v", s.Restart, s.Checkpoint)
	case len(s.Verified) != 2 || s.Verified[0].Segments != 20 || s.Verified[0].Members == 0:
		t.Errorf("verified: %+v", s.Verified)
	}
}

// A budget that ends early is no failure: the report says where it ended.
func TestSegmentsOutOfTime(t *testing.T) {
	out := t.TempDir()
	_, table := runReport[segments.Report](t, filepath.Join(out, "report.json"), "segments", "--budget", "400ms", "--min-profiles", "3000", "--max-profiles", "30000", "--stale-reads", "100", "--out", out)
	wantText(t, table, "the budget of 400ms ended in: ", "stale reads: 0 of 100")
}

func TestFaultyCommandsAreRefused(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"fly"}, `no command "fly"`},
		{[]string{"ingest", "--modes", "bulk", "--baseline-only"}, `no mode "bulk"`},
		{[]string{"ingest", "--change-ratio", "much", "--baseline-only"}, "change-ratio"},
		{[]string{"ingest", "--change-ratio", "1.5", "--baseline-only"}, "change-ratio"},
		{[]string{"ingest", "--change-ratio", "0.5", "--surface", "tracking", "--baseline-only"}, "tracking"},
		{[]string{"ingest", "--baseline-only", "--duration", "9h"}, "duration"},
		{[]string{"ingest", "--baseline-only", "--rate", "-1"}, "rate"},
		{[]string{"ingest", "--baseline-only", "--event-bytes", "10"}, "event bytes"},
		{[]string{"builds"}, "other"},
		{[]string{"builds", "--other", "/nonexistent/muster"}, "/nonexistent/muster"},
		{[]string{"builds", "--other", "/bin/true", "--mode", "single,batch"}, "mode"},
		{[]string{"builds", "--other", "/bin/true", "--pairs", "5"}, "pairs"},
		{[]string{"builds", "--other", "/bin/true", "--connections", "0", "--new-ratio", "2"}, "new-ratio"},
		{[]string{"segments", "--max-profiles", "10"}, "max-profiles"},
		{[]string{"segments", "--budget", "0s"}, "budget"},
		{[]string{"segments", "--stale-reads", "-1"}, "stale-reads"},
		{[]string{"flows", "--flows", "1"}, "flows"},
		{[]string{"flows", "--sleepers", "5"}, "sleepers"},
		{[]string{"flows", "--binary", "/nonexistent/muster"}, "/nonexistent/muster"},
		{[]string{"shop", "--until", "tomorrow"}, "until"},
		{[]string{"shop", "surplus"}, "too much"},
		{[]string{"crash", "--binary", "/nonexistent/muster"}, "/nonexistent/muster"},
	} {
		t.Setenv("TMPDIR", t.TempDir())
		if _, _, err := runCommand(t, "", c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want one with %q", c.args, err, c.want)
		}
		if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
			t.Errorf("%q: %v is left behind", c.args, left)
		}
	}
}
