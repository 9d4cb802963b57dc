package loader

import (
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	const ok = `{"success":true,"profile_id":"prf_1","error":null}`
	for _, c := range []struct {
		name   string
		expect Expect
		batch  int
		status int
		body   string
		ok     bool
	}{
		{"single", ExpectOutcome, 0, 202, ok, true},
		{"single, other order and space", ExpectOutcome, 0, 202, `{ "profile_id": "prf_1", "error": null, "success": true }`, true},
		{"single, other status", ExpectOutcome, 0, 200, ok, false},
		{"single refused", ExpectOutcome, 0, 202, `{"success":false,"profile_id":"","error":"no"}`, false},
		{"single without profile", ExpectOutcome, 0, 202, `{"success":true,"profile_id":"","error":null}`, false},
		{"single with error", ExpectOutcome, 0, 202, `{"success":true,"profile_id":"prf_1","error":"no"}`, false},
		{"single, empty", ExpectOutcome, 0, 202, ``, false},
		{"read only", ExpectSuccess, 0, 202, `{"success":true}`, true},
		{"read only, batch", ExpectSuccess, 2, 202, `{"success":true}`, true},
		{"batch", ExpectOutcome, 2, 202, `{"success":true,"accepted":2,"total":2,"results":[` + ok + `,` + ok + `]}`, true},
		{"batch, one missing", ExpectOutcome, 2, 202, `{"success":true,"accepted":2,"total":2,"results":[` + ok + `]}`, false},
		{"batch, fewer accepted", ExpectOutcome, 2, 202, `{"success":true,"accepted":1,"total":2,"results":[` + ok + `,` + ok + `]}`, false},
		{"batch, number that begins alike", ExpectCount, 2, 202, `{"success":true,"accepted":20,"total":20}`, false},
		{"batch, count only", ExpectCount, 2, 202, `{"success":true,"accepted":2,"total":2}`, true},
		{"batch, entry refused", ExpectOutcome, 1, 202, `{"success":true,"accepted":1,"total":1,"results":[{"success":false,"profile_id":"","error":"no"}]}`, false},
		{"batch, success false", ExpectOutcome, 1, 202, `{"success":false,"accepted":1,"total":1,"results":[` + ok + `]}`, false},
	} {
		j := newJudge(c.expect, c.batch)
		if err := j.check(Answer{Status: c.status, Body: []byte(c.body)}); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Between the answers that are read in full, refusals must be seen as well.
func TestJudgeWithoutParsing(t *testing.T) {
	for _, batch := range []int{0, 2} {
		j := newJudge(ExpectCount, batch)
		good := `{"success":true,"accepted":2,"total":2}`
		if err := j.check(Answer{Status: 202, Body: []byte(good)}); err != nil {
			t.Fatal(err)
		}
		for _, body := range []string{
			`{"success":false,"accepted":2,"total":2}`, `{"success":false}`, `{}`, `[true]`,
		} {
			if err := j.check(Answer{Status: 202, Body: []byte(body)}); err == nil {
				t.Errorf("batch %d: %s passed", batch, body)
			}
		}
	}
	j := newJudge(ExpectCount, 2)
	_ = j.check(Answer{Status: 202})
	for _, body := range []string{`{"success":true,"accepted":1,"total":2}`, `{"success":true,"accepted":25,"total":25}`} {
		if err := j.check(Answer{Status: 202, Body: []byte(body)}); err == nil {
			t.Errorf("%s passed", body)
		}
	}
	if n := testing.AllocsPerRun(60, func() {
		j.seen = 1
		if err := j.check(Answer{Status: 202, Body: []byte(`{"success":true,"accepted":2,"total":2}`)}); err != nil {
			t.Error(err)
		}
	}); n > 1 { // the test's own conversion
		t.Errorf("%v allocations per answer", n)
	}
}

func TestAddRange(t *testing.T) {
	var ranges []Range
	for _, r := range [][2]uint64{{0, 10}, {10, 20}, {30, 40}, {40, 50}, {60, 61}} {
		var err error
		if ranges, err = addRange(ranges, 0, 7, r[0], r[1]); err != nil {
			t.Fatal(err)
		}
	}
	want := []Range{{0, 7, 0, 20}, {0, 7, 30, 50}, {0, 7, 60, 61}}
	if len(ranges) != 3 || ranges[0] != want[0] || ranges[1] != want[1] || ranges[2] != want[2] {
		t.Fatalf("%v, want %v", ranges, want)
	}
	full := make([]Range, maxRanges)
	if _, err := addRange(full, 0, 0, 99, 100); err == nil || !strings.Contains(err.Error(), "gaps") {
		t.Fatalf("error %v at the bound", err)
	}
}
