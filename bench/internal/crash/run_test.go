package crash

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/ledger"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/topology"
)

const fakeVariable = "MUSTER_CRASH_TEST_FAKE"

func TestMain(m *testing.M) {
	if flaw := os.Getenv(fakeVariable); flaw != "" && len(os.Args) > 1 && os.Args[1] == "serve" {
		if err := runFake(flaw); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func runOn(t *testing.T, flaw string, rounds int) (*Report, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(fakeVariable, flaw)
	return Run(context.Background(), topology.Kills{
		Options: server.Options{Binary: self, Dir: t.TempDir()}, Rounds: rounds, Seed: 1, MaxLoad: 150 * time.Millisecond, StartTimeout: time.Minute,
	})
}

func TestRunPassesAnHonestServer(t *testing.T) {
	// A busy machine does less between two kills, so that more of them are needed.
	for rounds := 4; ; rounds *= 2 {
		report, err := runOn(t, honest, rounds)
		if err != nil {
			t.Fatal(err)
		}
		if report.Kills != rounds {
			t.Fatalf("%d kills in %d rounds", report.Kills, rounds)
		}
		if !proves(report) {
			if rounds < 64 {
				continue
			}
			t.Errorf("the run did too little to prove anything: %+v", report)
		}
		return
	}
}

// proves reports whether a run did enough to prove anything.
func proves(report *Report) bool {
	return !(report.Acked < 500 || report.Retried == 0 || report.Repeated == 0 || report.Twins == 0 ||
		report.Profiles < 50 || report.StartMax == 0)
}

// A run that cannot tell a bad server from a good one proves nothing.
func TestL1L2RunCatchesBrokenServers(t *testing.T) {
	for flaw, want := range map[string]string{
		late:      "", // lost events show in several ways
		forgetful: "", // doubled events as well
		renaming:  "was profile",
		miscounts: "segment of users with an event", miscountsLive: "live segment of anybody",
		hoarding: "never sent",
	} {
		t.Run(flaw, func(t *testing.T) {
			var err error
			for rounds := 3; err == nil && rounds < 50; rounds *= 2 { // a flaw may take more than a busy machine does in 3
				_, err = runOn(t, flaw, rounds)
				t.Log(rounds, err)
			}
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "seed 1") {
				t.Errorf("error %v, want one with %q", err, want)
			}
		})
	}
}

func TestL2FinderCatches(t *testing.T) {
	u, v := user{0, 1}, user{0, 2}
	sure := ledger.Event{Type: typeSure, Acked: true}
	books := func() *book {
		return &book{events: []event{{sure, u, 0, 0}, {sure, v, 0, 0}, {ledger.Event{Type: typeMaybe}, u, 0, 0}}}
	}
	a := history.Key{Key: "k0-0", EventType: typeSure, Rows: 1, Ordinal: 4}
	b := history.Key{Key: "k0-1", EventType: typeSure, Rows: 1, Ordinal: 5}
	c := history.Key{Key: "k0-2", EventType: typeMaybe, Rows: 1, Ordinal: 4}
	with := func(k history.Key, change func(*history.Key)) history.Key { change(&k); return k }
	for _, test := range []struct {
		name string
		keys []history.Key
		want string
	}{
		{"all there", []history.Key{a, b, c}, ""},
		{"given-up event absent", []history.Key{a, b}, ""},
		{"lost", []history.Key{a, c}, `"k0-1" was acknowledged and is not in history`},
		{"doubled", []history.Key{with(a, func(k *history.Key) { k.Rows = 2 }), b}, "in history 2 times"},
		{"given-up event doubled", []history.Key{a, b, with(c, func(k *history.Key) { k.Rows = 2 })}, "in history 2 times"},
		{"seen before", []history.Key{a, b, a}, "in history again"},
		{"never sent", []history.Key{a, b, {Key: "k7-7", Rows: 1}}, "never sent"},
		{"other type", []history.Key{with(a, func(k *history.Key) { k.EventType = "x" }), b}, "event type"},
		{"two profiles of a user", []history.Key{a, b, with(c, func(k *history.Key) { k.Ordinal = 9 })}, "on profiles 4 and 9"},
		{"two users of a profile", []history.Key{a, with(b, func(k *history.Key) { k.Ordinal = 4 })}, "has events of users"},
	} {
		f := newFinder(books())
		for _, k := range test.keys {
			if err := f.visit(k); err != nil {
				t.Fatal(err)
			}
		}
		switch err := f.err(); {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: error %v, want one with %q", test.name, err, test.want)
		}
	}
	f := newFinder(books())
	for i := range 50 {
		_ = f.visit(history.Key{Key: fmt.Sprintf("x%d", i)})
	}
	if n := strings.Count(f.err().Error(), "\n") + 1; n != ledger.MaxFaults+1 {
		t.Errorf("%d lines of faults, want %d", n, ledger.MaxFaults+1)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, c := range map[string]topology.Kills{
		"binary":  {Options: server.Options{Dir: t.TempDir()}},
		"rounds":  {Rounds: -1},
		"workers": {Workers: 1},
		"load":    {MinLoad: time.Second, MaxLoad: time.Millisecond},
	} {
		if _, err := Run(context.Background(), c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
