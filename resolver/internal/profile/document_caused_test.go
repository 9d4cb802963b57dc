package profile

import "testing"

func TestCausedFolds(t *testing.T) {
	for _, c := range [][3]CausedEnrolments{
		{{5, 3}, {5, 7}, {5, 7}},
		{{5, 9}, {5, 7}, {5, 9}},
		{{6, 1}, {5, 7}, {6, 1}},
		{{}, {5, 7}, {5, 7}},
	} {
		got := c[0]
		if got.merge(c[1]); got != c[2] {
			t.Errorf("%v and %v make %v, want %v", c[0], c[1], got, c[2])
		}
	}
}
