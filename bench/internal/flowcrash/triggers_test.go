package flowcrash

import (
	"testing"

	"github.com/musterhq/muster/bench/internal/surface"
)

// TestEnrolledMerged: each half of a merged person has entered by its own first event, also where
// events of both have the same millisecond.
func TestEnrolledMerged(t *testing.T) {
	a, b := new(person), new(person)
	enrolments := make([]enrolment, 2)
	enrolments[0].StartedAt, enrolments[1].StartedAt = surface.Stamp(932), surface.Stamp(938)
	began, err := enrolledMerged(enrolments, []cause{{atMs: 932, key: "1229", who: a}, {atMs: 938, key: "1230", who: a}, {atMs: 938, key: "1231", who: b}})
	if err != nil || began[0].key != "1229" || began[1].key != "1231" {
		t.Errorf("%+v, %v", began, err)
	}
	if began, err := enrolledMerged(enrolments, []cause{{atMs: 932, key: "1229", who: a}, {atMs: 938, key: "1230", who: a}}); err == nil {
		t.Errorf("one half has entered twice: %+v", began)
	}
}
