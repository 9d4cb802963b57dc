package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/bench/internal/contest"
)

func TestMain(m *testing.M) {
	// The bench starts itself as a baseline server; in a test that is this
	// binary.
	if len(os.Args) > 1 && os.Args[1] == baselineCommand {
		main()
		return
	}
	os.Exit(m.Run())
}

// runCommand runs a subcommand and returns what it wrote.
func runCommand(t *testing.T, in string, args ...string) (out, errors string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	err = dispatch(context.Background(), streams{strings.NewReader(in), &o, &e}, args)
	return o.String(), e.String(), err
}

// The committed sample is what the command writes without flags.
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
	report := filepath.Join(t.TempDir(), "report.json")
	out, said, err := runCommand(t, "", "ingest", "--baseline-only", "--baseline-duration", "300ms", "--rounds", "1",
		"--profiles", "1000", "--connections", "4", "--dir", t.TempDir(), "--json", report)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if !strings.Contains(out, "parse only") || !strings.Contains(out, "batches of 100, 4 connections") {
		t.Errorf("table:\n%s", out)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var r contest.Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Modes) != 2 || len(r.Modes[1].Rounds) != 1 {
		t.Fatalf("%+v", r)
	}
	batch := r.Modes[1]
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

func TestFaultyCommandsAreRefused(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"fly"}, `no command "fly"`},
		{[]string{"ingest", "--modes", "bulk", "--baseline-only"}, `no mode "bulk"`},
		{[]string{"ingest", "--baseline-only", "--duration", "9h"}, "duration"},
		{[]string{"ingest", "--baseline-only", "--rate", "-1"}, "rate"},
		{[]string{"ingest", "--baseline-only", "--event-bytes", "10"}, "event bytes"},
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
