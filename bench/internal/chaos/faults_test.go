package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/ledger"
	"github.com/musterhq/muster/bench/internal/server"
)

func TestDeck(t *testing.T) {
	for _, brokers := range []int{1, 3} {
		c := Config{Topology: Topology{Brokers: brokers}}
		if err := c.Complete(); err != nil {
			t.Fatal(err)
		}
		topology := c.Topology
		deal := func(seed uint64) (rounds [][]fault) {
			d := &deck{rng: rand.New(rand.NewPCG(seed, 0)), topology: topology}
			for range 30 {
				rounds = append(rounds, d.round())
			}
			return rounds
		}
		rounds := deal(1)
		if fmt.Sprint(rounds) != fmt.Sprint(deal(1)) {
			t.Error("a seed deals different faults")
		}
		if fmt.Sprint(rounds) == fmt.Sprint(deal(2)) {
			t.Error("two seeds deal the same")
		}
		kinds := map[string]int{}
		two := 0
		for _, faults := range rounds {
			left := apart(slices.Clone(faults))
			for i := range left {
				if party(left[i]) == party(left[(i+1)%len(left)]) && len(left) > 1 {
					t.Errorf("two of one process: %v", left)
				}
			}
			if len(left) > 1 {
				two++
			}
			for _, f := range faults {
				kinds[f.kind]++
				if f.length < 0 || f.length > 10*time.Second || f.kind == nodeFrozen && f.length <= topology.Session {
					t.Errorf("%v", f)
				}
			}
		}
		if want := map[int]int{1: 10, 3: 11}[brokers]; len(kinds) != want {
			t.Errorf("%d kinds of faults in 30 rounds, want %d: %v", len(kinds), want, kinds)
		}
		if two < 5 {
			t.Errorf("%d of 30 rounds have two faults", two)
		}
	}
}

func TestSentCatches(t *testing.T) {
	a, b := history.Key{Key: "e0-0", EventType: "visit", Rows: 1}, history.Key{Key: "e0-1", EventType: "visit", Rows: 1}
	crashs := history.Key{Key: "k0-0", EventType: "crash_sure", Rows: 1}
	twice, other := a, a
	twice.Rows, other.EventType = 2, "order_placed"
	for _, test := range []struct {
		name string
		rows []history.Key
		want string
	}{
		{"all there", []history.Key{a, b, crashs}, ""},
		{"no answer and not there", []history.Key{a, crashs}, ""},
		{"lost", []history.Key{b}, `"e0-0" was acknowledged and is not`},
		{"seen before", []history.Key{a, b, a}, "in history again"},
		{"twice", []history.Key{twice}, "in history 2 times"},
		{"another type", []history.Key{other}, "event type"},
		{"never sent", []history.Key{a, {Key: "e7-7", Rows: 1}}, "never sent"},
	} {
		passed := 0
		s := sent{}
		s.add("e0-0", &ledger.Event{Type: "visit", Acked: true})
		s.add("e0-1", &ledger.Event{Type: "visit"})
		err := s.check(test.rows, func(history.Key) error { passed++; return nil })
		switch {
		case test.want == "" && err != nil, test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		case test.name == "all there" && passed != 1:
			t.Errorf("%d keys of the crash load were passed on, want 1", passed)
		}
	}
}

func TestDefaults(t *testing.T) {
	for _, x := range []struct {
		given Config
		want  Topology
	}{
		{Config{}, Topology{Nodes: 3, Brokers: 1, Partitions: 3, Session: 3 * time.Second}},
		{Config{Seed: 7}, Topology{Nodes: 3, Brokers: 3, Partitions: 3, Session: 3 * time.Second}},
		{Config{Topology: Topology{Nodes: 1}}, Topology{Nodes: 1, Brokers: 1, Partitions: 1, Session: 3 * time.Second}},
	} {
		if err := x.given.Complete(); err != nil || x.given.Topology != x.want {
			t.Errorf("%+v, %v, want %+v", x.given.Topology, err, x.want)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, c := range map[string]Config{
		"binary":     {Options: server.Options{Dir: t.TempDir()}},
		"rounds":     {Rounds: -1},
		"faults":     {Faults: []string{"rain"}},
		"nodes":      {Topology: Topology{Nodes: 100}},
		"brokers":    {Topology: Topology{Brokers: 2}},
		"partitions": {Topology: Topology{Partitions: -1}},
		"session":    {Topology: Topology{Session: time.Millisecond}},
		"load":       {MinLoad: time.Second, MaxLoad: time.Millisecond},
	} {
		if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
