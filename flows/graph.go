package flows

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/jsonform"
)

// eachRef calls visit for the references of the step at path, with theirs.
func (f *Flow) eachRef(path string, s *Step, visit func(path string, to int)) {
	switch {
	case s.Condition != nil:
		visit(jsonform.Join(path, "yes"), s.Condition.Yes)
		visit(jsonform.Join(path, "no"), s.Condition.No)
	case s.Split != nil:
		branches := jsonform.Join(path, "branches")
		for i, b := range s.Split.Branches {
			visit(jsonform.Join(jsonform.Index(branches, i), "next"), b.Next)
		}
	case s.hasNext():
		visit(jsonform.Join(path, "next"), s.Next)
	}
}

// following are the steps that may come after a step, without repetition.
func (f *Flow) following(step int) (out []int) {
	f.eachRef("", &f.Steps[step], func(_ string, to int) {
		if to >= 0 && to < len(f.Steps) && !slices.Contains(out, to) {
			out = append(out, to)
		}
	})
	return out
}

// reached are the steps that an enrolment from the entry may come to.
func (f *Flow) reached() []bool {
	seen := make([]bool, len(f.Steps))
	if len(f.Steps) > 0 {
		f.reach(0, seen)
	}
	return seen
}

func (f *Flow) reach(step int, seen []bool) {
	if seen[step] {
		return
	}
	seen[step] = true
	for _, next := range f.following(step) {
		f.reach(next, seen)
	}
}

// loop are the steps of a path that leads back to the first of them.
type loop []int

// through names the steps.
func (l loop) through(f *Flow) string {
	var b strings.Builder
	for _, step := range l {
		b.WriteString(f.Steps[step].ID + " → ")
	}
	return b.String() + f.Steps[l[0]].ID
}

// loops finds a shortest loop of each knot of steps that lead to each other, by
// the first step of the knot.
func (f *Flow) loops() map[int]loop {
	out := map[int]loop{}
	knotted := make([]bool, len(f.Steps))
	for step := range f.Steps {
		if knotted[step] {
			continue
		}
		if l := f.back(step); l != nil {
			out[step] = l
			// The other steps of the cycle are in this error: those that lead here
			// and are reached from here.
			from := make([]bool, len(f.Steps))
			f.reach(step, from)
			for other := range f.Steps {
				if from[other] && !knotted[other] {
					to := make([]bool, len(f.Steps))
					f.reach(other, to)
					knotted[other] = to[step]
				}
			}
		}
	}
	return out
}

// back is a shortest path from a step to itself, nil if there is none.
func (f *Flow) back(step int) loop {
	before := make([]int, len(f.Steps))
	for i := range before {
		before[i] = Unknown
	}
	for queue := []int{step}; len(queue) > 0; queue = queue[1:] {
		for _, next := range f.following(queue[0]) {
			if next == step {
				way := loop{}
				for at := queue[0]; at != step; at = before[at] {
					way = append(way, at)
				}
				way = append(way, step)
				slices.Reverse(way)
				return way
			}
			if before[next] == Unknown {
				before[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	return nil
}
