package segment_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/segmenttest"
)

// rounds is how many cases a property is tried on.
func rounds(usual int) int {
	if testlevel.Long() {
		return usual * 50
	}
	return testlevel.Count(usual/4, usual)
}

func parse(t *testing.T, text []byte) *segment.Node {
	t.Helper()
	n, err := segment.Parse(text, segment.Limits{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return n
}

// The canonical text parses to an equal tree, and is its own canonical text.
func TestCanonicalComesBack(t *testing.T) {
	for seed := range uint64(rounds(4000)) {
		text := segmenttest.New(seed).DefinitionJSON()
		n := parse(t, text)
		canonical := n.Canonical()
		again := parse(t, canonical)
		if !reflect.DeepEqual(n, again) {
			t.Fatalf("seed %d: another tree\n%s\n%s", seed, text, canonical)
		}
		if twice := again.Canonical(); string(twice) != string(canonical) {
			t.Fatalf("seed %d: not stable\n%s\n%s", seed, canonical, twice)
		}
		marshalled, err := json.Marshal(n) // escapes <, > and & on its own
		if err != nil || !reflect.DeepEqual(n, parse(t, marshalled)) {
			t.Fatalf("seed %d: json.Marshal: %v\n%s", seed, err, marshalled)
		}
	}
}

// Leaves with one key hold for the same profiles, up to negation (S1: they
// share state).
func TestS1LeavesOfOneKeyAgree(t *testing.T) {
	g := segmenttest.New(1)
	var profiles []*segment.NaiveProfile
	for range 30 {
		profiles = append(profiles, g.Profile())
	}
	none := func(string) (*segment.Node, bool) { return nil, false }
	answers := map[string]string{}
	first := map[string]string{}
	shared := 0
	for seed := range uint64(rounds(4000)) {
		for _, leaf := range segmenttest.New(seed).Definition().Leaves() {
			var answer strings.Builder
			for _, p := range profiles {
				fmt.Fprint(&answer, leaf.NaiveCondition(p, segmenttest.BaseMs, none) != leaf.Negated(), " ")
			}
			key, text := leaf.Key(), string(leaf.Canonical())
			if before, ok := answers[key]; ok {
				if text != first[key] {
					shared++
				}
				if before != answer.String() {
					t.Fatalf("seed %d: one key, two answers\n%s\n%s", seed, first[key], text)
				}
			}
			answers[key], first[key] = answer.String(), text
			// The key does not depend on the way of writing.
			if again := parse(t, leaf.Canonical()).Key(); again != key {
				t.Fatalf("seed %d: %s, then %s", seed, key, again)
			}
		}
	}
	if shared < 100 {
		t.Errorf("only %d leaves shared a key across texts: the test says little", shared)
	}
}

// Definitions must not hold too often for all profiles or for none, or
// comparing evaluators over them proves little.
func TestGeneratorIsSelective(t *testing.T) {
	const n = 24
	cases := testlevel.Count(300, 1500)
	var members, profiles, mixed, activities, mixedActivities int
	none := func(string) (*segment.Node, bool) { return nil, false }
	for seed := range uint64(cases) {
		c := segmenttest.New(seed).Case(n)
		found := len(c.Members())
		members += found
		profiles += n
		if found > 0 && found < n {
			mixed++
		}
		for _, leaf := range c.Node.Leaves() {
			if leaf.Kind != segment.KindActivity {
				continue
			}
			found := 0
			for _, p := range c.Profiles {
				if leaf.NaiveCondition(p, c.AtMs, none) {
					found++
				}
			}
			activities++
			if found > 0 && found < n {
				mixedActivities++
			}
		}
	}
	t.Logf("members %d %%, definitions that tell profiles apart %d %%, activities %d %%",
		100*members/profiles, 100*mixed/cases, 100*mixedActivities/activities)
	if share := 100 * members / profiles; share < 25 || share > 75 {
		t.Errorf("%d %% of the profiles are members", share)
	}
	if 100*mixed < 45*cases || 100*mixedActivities < 45*activities {
		t.Errorf("definitions tell profiles apart in %d of %d cases, activities in %d of %d",
			mixed, cases, mixedActivities, activities)
	}
}

// A definition that many profiles share must cost the same whatever the seed:
// nothing in the generator or the oracle depends on anything else.
func TestSameSeedSameCase(t *testing.T) {
	a, b := segmenttest.New(7).Case(20), segmenttest.New(7).Case(20)
	if !reflect.DeepEqual(a, b) {
		t.Error("one seed gave two cases")
	}
}

// TestS1HelpersAgreeWithNaive judges made-up profiles with the oracle and with
// the helpers the engines are built from.
func TestS1HelpersAgreeWithNaive(t *testing.T) {
	for seed := range uint64(rounds(3000)) {
		c := segmenttest.New(seed).Case(12)
		for i, p := range c.Profiles {
			want := c.Node.Naive(p, c.AtMs, c.Refs)
			if got := segment.Helped(c.Node, p, c.AtMs, c.Refs); got != want {
				t.Fatalf("seed %d, profile %d, at %d: the helpers say %v\n%s\n%+v", seed, i, c.AtMs, got, c.Node.Canonical(), p)
			}
		}
	}
}
