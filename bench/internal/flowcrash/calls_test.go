package flowcrash

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/bench/internal/surface"
)

// F1: enrolments are begun by calls, each by one; what may be carried out late is,
// and nothing else is excused.
func TestF1Called(t *testing.T) {
	on := func(number int, fromMs, toMs int64) enrolment {
		end := surface.Stamp(toMs)
		return enrolment{Enrolment: surface.Enrolment{Number: number, StartedAt: surface.Stamp(fromMs), EndedAt: &end}}
	}
	acked := func(key string, fromMs, toMs int64) call {
		return call{trigger: &trigger{acked: true, fromMs: fromMs, toMs: toMs}, key: key}
	}
	lost := func(key string, fromMs, toMs int64) call {
		return call{trigger: &trigger{fromMs: fromMs, toMs: toMs}, key: key}
	}
	refused := func(key string, fromMs, toMs int64) call {
		return call{trigger: &trigger{refused: true, fromMs: fromMs, toMs: toMs}, key: key}
	}
	arrived := func(c call) call { c.arrived = true; return c }
	repeated := func(c call) call { c.repeated = true; return c }
	for _, c := range []struct {
		name       string
		enrolments []enrolment
		calls      []call
		keys       string // of the calls that began them
		late       int
		fault      string
	}{
		{name: "nothing"},
		{name: "one", enrolments: []enrolment{on(1, 5, 9)}, calls: []call{acked("a", 4, 6)}, keys: "a"},
		{name: "acknowledged for nothing", calls: []call{acked("a", 4, 6)}, fault: "0 enrolments cannot be"},
		{name: "no call", enrolments: []enrolment{on(1, 5, 9)}, fault: "enrolment 1 began at 5, when no call began it"},
		{name: "before its call", enrolments: []enrolment{on(1, 3, 9)}, calls: []call{acked("a", 4, 6)}, fault: "enrolment 1 began at 3"},
		{name: "after its answer", enrolments: []enrolment{on(1, 7, 9)}, calls: []call{acked("a", 4, 6)}, fault: "enrolment 1 began at 7"},
		{name: "twice for one call", enrolments: []enrolment{on(1, 5, 5), on(2, 6, 9)}, calls: []call{acked("a", 4, 6)}, fault: "enrolment 2 began at 6"},
		{name: "lost for good", calls: []call{lost("a", 4, 6)}},
		{name: "lost and done", enrolments: []enrolment{on(1, 5, 9)}, calls: []call{lost("a", 4, 6)}, keys: "a"},
		{
			name:       "woken behind a later call",
			enrolments: []enrolment{on(1, 12, 20), on(2, 30, 40)}, calls: []call{lost("a", 4, 6), acked("b", 11, 13)}, keys: "b a", late: 1,
		},
		{
			name:       "which of two lost ones its effect tells",
			enrolments: []enrolment{on(1, 30, 40)}, calls: []call{lost("a", 4, 6), arrived(lost("b", 11, 13))}, keys: "b", late: 1,
		},
		{
			name:       "an effect came and no enrolment",
			enrolments: []enrolment{on(1, 12, 20)}, calls: []call{arrived(lost("a", 4, 6)), acked("b", 11, 13)}, fault: "1 enrolments cannot be",
		},
		{name: "refused while busy", enrolments: []enrolment{on(1, 5, 20)}, calls: []call{acked("a", 4, 6), refused("b", 11, 13)}, keys: "a"},
		{name: "refused while free", enrolments: []enrolment{on(1, 5, 9)}, calls: []call{acked("a", 4, 6), refused("b", 11, 13)}, fault: "key b was refused"},
		{name: "refused and done", enrolments: []enrolment{on(1, 5, 20), on(2, 30, 40)}, calls: []call{acked("a", 4, 6), refused("b", 11, 13)}, fault: "enrolment 2 began at 30"},
		{name: "refused, the first try done late", enrolments: []enrolment{on(1, 5, 20), on(2, 30, 40), on(3, 51, 60)}, calls: []call{acked("a", 4, 6), repeated(refused("b", 11, 13)), acked("c", 50, 52)}, keys: "a b c", late: 1},
		{name: "two at once", enrolments: []enrolment{on(1, 5, 20), on(2, 12, 40)}, calls: []call{acked("a", 4, 6), acked("b", 11, 13)}, fault: "enrolment 2 began while enrolment 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			began, late, err := called(c.enrolments, c.calls)
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Fatalf("error %v, want one of %q", err, c.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, b := range began {
				if b.atMs != int64(c.enrolments[i].StartedAt) || b.key != strings.Fields(c.keys)[i] {
					t.Errorf("enrolment %d was begun by %+v, want %s", i+1, b, c.keys)
				}
			}
			if len(began) != len(slices.Collect(strings.FieldsSeq(c.keys))) {
				t.Errorf("begun by %v, want %s", began, c.keys)
			}
			if late != c.late {
				t.Errorf("%d late, want %d", late, c.late)
			}
		})
	}
}
