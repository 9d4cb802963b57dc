package chaos

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

func op(from, to int64, p probe, a answer) porcupine.Operation {
	return porcupine.Operation{Input: p, Output: a, Call: from, Return: to}
}

// The check must tell what a service may answer from what it may not.
func TestHistories(t *testing.T) {
	key := func(person, key int) probe { return probe{kind: post, person: person, key: key} }
	least := func(level int) probe { return probe{kind: count, level: level - 1} }
	who := func(person int) probe { return probe{kind: whois, person: person} }
	a, b := answer{profile: "a"}, answer{profile: "b"}
	n := func(n int) answer { return answer{count: n} }
	none := answer{none: true}
	var left base
	left[0] = [levels]int{5, 2, 0}
	for _, test := range []struct {
		name    string
		history []porcupine.Operation
		right   bool
	}{
		{"one after the other", []porcupine.Operation{
			op(0, 1, least(1), n(5)), op(2, 3, who(0), answer{}), op(4, 5, key(0, 0), a), op(6, 7, least(1), n(6)), op(8, 9, who(0), a),
			op(10, 11, key(0, 1), a), op(12, 13, least(1), n(6)), op(14, 15, least(2), n(3)), op(16, 17, key(1, 0), b), op(18, 19, least(1), n(7)),
		}, true},
		{"sent again", []porcupine.Operation{
			op(0, 1, key(0, 0), a), op(2, 3, key(0, 0), a), op(4, 5, least(1), n(6)), op(6, 7, least(2), n(2)),
		}, true},
		{"a post under way is seen or not", []porcupine.Operation{
			op(0, 9, key(0, 0), a), op(1, 2, least(1), n(5)), op(3, 4, least(1), n(6)), op(5, 6, who(0), a),
		}, true},
		{"a post under way is seen and then not", []porcupine.Operation{
			op(0, 9, key(0, 0), a), op(1, 2, least(1), n(6)), op(3, 4, least(1), n(5)),
		}, false},
		{"acknowledged and not counted: lost, or a reader that is behind", []porcupine.Operation{
			op(0, 1, key(0, 0), a), op(2, 3, least(1), n(5)),
		}, false},
		{"acknowledged and not found", []porcupine.Operation{
			op(0, 1, key(0, 0), a), op(2, 3, who(0), answer{}),
		}, false},
		{"counted twice", []porcupine.Operation{
			op(0, 1, key(0, 0), a), op(2, 3, key(0, 0), a), op(4, 5, least(2), n(3)),
		}, false},
		{"counted and never posted", []porcupine.Operation{op(0, 1, least(1), n(6))}, false},
		{"found and never posted", []porcupine.Operation{op(0, 1, who(0), a)}, false},
		{"what earlier rounds left is gone", []porcupine.Operation{op(0, 1, least(2), n(1))}, false},
		{"another profile", []porcupine.Operation{
			op(0, 1, key(0, 0), a), op(2, 3, key(0, 1), b),
		}, false},
		{"another profile, found", []porcupine.Operation{
			op(0, 1, key(0, 0), a), op(2, 3, who(0), b),
		}, false},
		{"no answer, and done late", []porcupine.Operation{
			op(0, never, key(0, 0), none), op(2, 3, least(1), n(5)), op(4, 5, least(1), n(6)), op(6, 7, who(0), a),
		}, true},
		{"no answer, and never done", []porcupine.Operation{
			op(0, never, key(0, 0), none), op(2, 3, least(1), n(5)), op(4, 5, who(0), answer{}),
		}, true},
		{"no answer, done and undone", []porcupine.Operation{
			op(0, never, key(0, 0), none), op(2, 3, least(1), n(6)), op(4, 5, least(1), n(5)),
		}, false},
		{"no answer, done twice", []porcupine.Operation{
			op(0, never, key(0, 0), none), op(2, 3, least(2), n(3)),
		}, false},
		{"another group", []porcupine.Operation{
			op(0, 1, key(0, 0), a), op(2, 3, probe{kind: count, group: 1}, n(1)),
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "history.html")
			err := linearizable(left, test.history, file)
			switch {
			case test.right && err != nil:
				t.Error(err)
			case !test.right && (err == nil || !strings.Contains(err.Error(), file)):
				t.Errorf("it passed: %v", err)
			}
		})
	}
}
