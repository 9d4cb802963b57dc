package cluster

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	kgo "github.com/segmentio/kafka-go"
)

func members(t *testing.T, claims ...claim) (out []kgo.GroupMember) {
	t.Helper()
	for _, c := range claims {
		b, err := c.encode()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, kgo.GroupMember{ID: "m-" + c.ID, Topics: []string{"log"}, UserData: b})
	}
	return out
}

func named(id string, since int64, generation int32, owns ...int) claim {
	return claim{Node: Node{ID: id}, SinceMs: since, Generation: generation, Owns: owns}
}

// TestBalancer: a partition stays with whoever owned it last; one that nobody
// owned goes to the member that has been there longest; the order of members
// does not matter.
func TestBalancer(t *testing.T) {
	partitions := func(n int) (out []kgo.Partition) {
		for i := range n {
			out = append(out, kgo.Partition{Topic: "log", ID: i})
		}
		return out
	}
	for _, x := range []struct {
		what       string
		members    []kgo.GroupMember
		partitions int
		want       map[string][]int
	}{
		{"alone", members(t, named("a", 5, 0)), 1, map[string][]int{"a": {0}}},
		{"nobody owned: the first there", members(t, named("b", 5, 0), named("a", 7, 0)), 1, map[string][]int{"b": {0}}},
		{"at one instant: by id", members(t, named("b", 5, 0), named("a", 5, 0)), 1, map[string][]int{"a": {0}}},
		{"the owner stays, however late its clock", members(t, named("a", 1, 0), named("b", 9, 4, 0)), 1, map[string][]int{"b": {0}}},
		{"who was away claims an older generation", members(t, named("a", 1, 3, 0), named("b", 9, 4, 0)), 1, map[string][]int{"b": {0}}},
		{"an owner gets what nobody owned", members(t, named("a", 1, 0), named("b", 9, 4, 0)), 3, map[string][]int{"b": {0, 1, 2}}},
		{"several owners keep theirs", members(t, named("a", 1, 3, 0, 2), named("b", 9, 4, 1)), 3, map[string][]int{"a": {0, 2}, "b": {1}}},
		{"data that cannot be read claim nothing", append(members(t, named("a", 3, 1, 0)), kgo.GroupMember{ID: "m-x", UserData: []byte("{")}), 1, map[string][]int{"a": {0}}},
		{"no members", nil, 1, map[string][]int{}},
	} {
		for range 4 {
			rand.Shuffle(len(x.members), func(i, j int) { x.members[i], x.members[j] = x.members[j], x.members[i] })
			have := map[string][]int{}
			for member, topics := range new(balancer).AssignGroups(x.members, partitions(x.partitions)) {
				if p := topics["log"]; len(p) > 0 {
					have[member[2:]] = p
				}
			}
			if fmt.Sprint(have) != fmt.Sprint(x.want) {
				t.Fatalf("%s: %v, want %v", x.what, have, x.want)
			}
		}
	}
}

func TestClaim(t *testing.T) {
	c := claim{Node: Node{ID: "a", Host: "h", Address: "1.2.3.4:5"}, SinceMs: 7, Owns: []int{0, 3}, Generation: 9}
	b, err := c.encode()
	if err != nil {
		t.Fatal(err)
	}
	if back := decodeClaim(b); !reflect.DeepEqual(back, c) {
		t.Errorf("%+v became %+v", c, back)
	}
	for _, bad := range []string{"", "{", "[]", `{"owns":"x"}`} {
		if c := decodeClaim([]byte(bad)); c.ID != "" || c.Owns != nil {
			t.Errorf("%q reads as %+v", bad, c)
		}
	}
}
