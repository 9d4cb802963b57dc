package cluster

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	kgo "github.com/segmentio/kafka-go"
	"pgregory.net/rapid"
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

func partitions(n int) (out []kgo.Partition) {
	for i := range n {
		out = append(out, kgo.Partition{Topic: "log", ID: i})
	}
	return out
}

// alone claims without a key, named with one.
func alone(id string, since int64, generation int32, owns ...int) claim {
	return claim{Node: Node{ID: id}, SinceMs: since, Generation: generation, Owns: owns}
}

func named(id string, since int64, generation int32, owns ...int) claim {
	c := alone(id, since, generation, owns...)
	c.Key = "k"
	return c
}

func keyed(key string, c claim) claim {
	c.Key = key
	return c
}

// assigned is what the members are given, by id, sorted; those with nothing are
// left out.
func assigned(all []kgo.GroupMember, n int) map[string][]int {
	have := map[string][]int{}
	for member, topics := range new(balancer).AssignGroups(all, partitions(n)) {
		if p := topics["log"]; len(p) > 0 {
			slices.Sort(p)
			have[member[2:]] = p
		}
	}
	return have
}

// planned is what the members are to warm, by id.
func planned(all []kgo.GroupMember, n int) map[string][]int {
	var c []candidate
	for _, m := range all {
		c = append(c, candidate{decodeClaim(m.UserData), m.ID})
	}
	have := map[string][]int{}
	for member, list := range distribute(c, partitions(n)).planned {
		for _, p := range list {
			have[member[2:]] = append(have[member[2:]], p.ID)
		}
	}
	return have
}

func warm(c claim, partitions ...int) claim {
	c.Warm = partitions
	return c
}

func leaving(c claim) claim {
	c.Leaving = true
	return c
}

// TestBalancer: a partition stays with its last owner, as far as that is
// even; the order of members does not matter; members that do not share a key
// with the owner get nothing.
func TestBalancer(t *testing.T) {
	for _, x := range []struct {
		what       string
		members    []kgo.GroupMember
		partitions int
		want       map[string][]int
	}{
		{"alone", members(t, alone("a", 5, 0)), 1, map[string][]int{"a": {0}}},
		{"no owner before: the first there", members(t, named("b", 5, 0), named("a", 7, 0)), 1, map[string][]int{"b": {0}}},
		{"at one instant: by id", members(t, named("b", 5, 0), named("a", 5, 0)), 1, map[string][]int{"a": {0}}},
		{"the owner stays, however late its clock", members(t, named("a", 1, 0), named("b", 9, 4, 0)), 1, map[string][]int{"b": {0}}},
		{"a member that was away claims an older generation", members(t, named("a", 1, 3, 0), named("b", 9, 4, 0)), 1, map[string][]int{"b": {0}}},
		{"three start at once", members(t, named("a", 1, 0), named("b", 2, 0), named("c", 3, 0)), 6, map[string][]int{"a": {0, 1}, "b": {2, 3}, "c": {4, 5}}},
		{"one more joins, and is warm", members(t, named("a", 1, 4, 0, 1, 2), named("b", 2, 4, 3, 4, 5), warm(named("c", 3, 0), 2, 5)), 6, map[string][]int{"a": {0, 1}, "b": {3, 4}, "c": {2, 5}}},
		{"one has gone", members(t, named("a", 1, 4, 0, 1), named("b", 2, 4, 3, 4)), 6, map[string][]int{"a": {0, 1, 2}, "b": {3, 4, 5}}},
		{"one was started again", members(t, named("a", 1, 4, 0, 1), named("b", 2, 4, 3, 4), named("c", 9, 0)), 6, map[string][]int{"a": {0, 1}, "b": {3, 4}, "c": {2, 5}}},
		{"the member with most keeps the one more", members(t, named("a", 1, 4, 0), named("b", 2, 4, 1, 2)), 3, map[string][]int{"a": {0}, "b": {1, 2}}},
		{"a member that was away gets its number of what others have now", members(t, warm(named("a", 1, 3, 0, 1), 1), named("b", 9, 4, 0, 1)), 2, map[string][]int{"a": {1}, "b": {0}}},
		{"more members than partitions", members(t, named("a", 1, 0), named("b", 2, 4, 1), named("c", 3, 4, 0)), 2, map[string][]int{"b": {1}, "c": {0}}},
		{"without a key the owner is alone", members(t, alone("a", 1, 4, 0, 1), alone("b", 2, 0), named("c", 3, 0)), 2, map[string][]int{"a": {0, 1}}},
		{"without a key and an owner, the first there", members(t, alone("b", 2, 0), alone("a", 1, 0)), 2, map[string][]int{"a": {0, 1}}},
		{"another key", members(t, named("a", 1, 4, 0), warm(named("b", 2, 0), 1), keyed("x", named("c", 0, 0))), 2, map[string][]int{"a": {0}, "b": {1}}},
		{"another key, of one that was away", members(t, named("a", 1, 4, 0), keyed("x", named("c", 0, 3, 0, 1))), 2, map[string][]int{"a": {0, 1}}},
		{"data that cannot be read claim nothing", append(members(t, alone("a", 3, 1, 0)), kgo.GroupMember{ID: "m-x", UserData: []byte("{")}), 1, map[string][]int{"a": {0}}},
		{"no members", nil, 1, map[string][]int{}},
	} {
		for range 4 {
			rand.Shuffle(len(x.members), func(i, j int) { x.members[i], x.members[j] = x.members[j], x.members[i] })
			if have := assigned(x.members, x.partitions); fmt.Sprint(have) != fmt.Sprint(x.want) {
				t.Fatalf("%s: %v, want %v", x.what, have, x.want)
			}
		}
	}
}

// TestH1H2Warm: a partition whose owner is there moves to a member that has it
// warm and to no other (H1), whether the owner stays or is about to go; one
// without an owner is given away at once (H2); a member that has not got warm holds
// up no other (H3).
func TestH1H2Warm(t *testing.T) {
	for _, x := range []struct {
		what           string
		members        []kgo.GroupMember
		given, planned map[string][]int
	}{
		{"one joins", members(t, named("a", 1, 4, 0, 1, 2, 3), named("b", 2, 0)), map[string][]int{"a": {0, 1, 2, 3}}, map[string][]int{"b": {2, 3}}},
		{"a part is warm", members(t, named("a", 1, 4, 0, 1, 2, 3), warm(named("b", 2, 0), 3)), map[string][]int{"a": {0, 1, 2}, "b": {3}}, map[string][]int{"b": {2}}},
		{"warm is what another is to have", members(t, named("a", 1, 4, 0, 1, 2, 3), warm(named("b", 2, 0), 0)), map[string][]int{"a": {0, 1, 2, 3}}, map[string][]int{"b": {2, 3}}},
		{"its owner has gone", members(t, named("a", 1, 4, 0, 1), named("b", 2, 0)), map[string][]int{"a": {0, 1}, "b": {2, 3}}, nil},
		{"its owner has gone and another is warm", members(t, named("a", 1, 4, 0, 1), named("b", 2, 0), warm(named("c", 3, 4), 2)), map[string][]int{"a": {0, 1}, "b": {3}, "c": {2}}, nil},
		{"one is about to go", members(t, leaving(named("a", 1, 4, 0, 1)), named("b", 2, 4, 2, 3)), map[string][]int{"a": {0, 1}, "b": {2, 3}}, map[string][]int{"b": {0, 1}}},
		{"one is about to go and one of two is warm", members(t, leaving(named("a", 1, 4, 0, 1)), warm(named("b", 2, 4, 2), 0), named("c", 3, 4, 3)), map[string][]int{"a": {1}, "b": {0, 2}, "c": {3}}, map[string][]int{"c": {1}}},
		{"all are about to go", members(t, leaving(named("a", 1, 4, 0, 1, 2)), leaving(named("b", 2, 4, 3))), map[string][]int{"a": {0, 1, 2}, "b": {3}}, map[string][]int{"b": {2}}},
		{"foreign nodes warm nothing", members(t, named("a", 1, 4, 0, 1, 2, 3), warm(keyed("x", named("b", 2, 0)), 2, 3)), map[string][]int{"a": {0, 1, 2, 3}}, nil},
	} {
		if have := assigned(x.members, 4); fmt.Sprint(have) != fmt.Sprint(x.given) {
			t.Errorf("%s: given %v, want %v", x.what, have, x.given)
		}
		if have := planned(x.members, 4); fmt.Sprint(have) != fmt.Sprint(x.planned) {
			t.Errorf("%s: planned %v, want %v", x.what, have, x.planned)
		}
	}
}

// TestBalancerIsEvenAndSticky: whatever members claim, each partition has one
// owner at any time, and goes from one that is there to one that is warm only
// (H1). Once all that is planned is warm, numbers differ by one at most, and
// nothing has moved that need not: a distribution that is even stays, and a
// member's coming or going moves at most what makes the numbers even.
func TestBalancerIsEvenAndSticky(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 24).Draw(t, "partitions")
		var claims []claim
		for i := range rapid.IntRange(1, 6).Draw(t, "members") {
			claims = append(claims, named(fmt.Sprint(i), rapid.Int64Range(0, 3).Draw(t, "since"), rapid.Int32Range(0, 5).Draw(t, "generation"),
				rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, n, rapid.ID).Draw(t, "owns")...))
		}
		generation := int32(9)
		// rebalance has members get warm until nothing is planned, and returns who
		// owns what then, and how often a partition moved.
		rebalance := func() (have map[string][]int, moves int) {
			t.Helper()
			for round := 0; ; round++ {
				if round > 3*n+3 {
					t.Fatalf("it continues for ever: %+v", claims)
				}
				var all []kgo.GroupMember
				var owners []candidate
				for _, c := range claims {
					b, _ := c.encode()
					all = append(all, kgo.GroupMember{ID: "m-" + c.ID, UserData: b})
					owners = append(owners, candidate{c, c.ID})
				}
				slices.SortFunc(owners, byAge)
				have = assigned(all, n)
				plan := planned(all, n)
				seen := map[int]string{}
				for id, list := range have {
					for _, p := range list {
						if seen[p] != "" {
							t.Fatalf("partition %d has two owners: %v", p, have)
						}
						seen[p] = id
						was, ok := newest(owners, func(c candidate) bool { return c.owns(p) })
						if i := slices.IndexFunc(claims, func(c claim) bool { return c.ID == id }); ok && was.ID != id {
							moves++
							if !claims[i].warm(p) {
								t.Fatalf("H1: partition %d went from %s to %s, which is not warm: %+v", p, was.ID, id, claims)
							}
						}
					}
				}
				if len(seen) != n {
					t.Fatalf("%d of %d partitions have an owner: %v", len(seen), n, have)
				}
				generation++
				for i := range claims {
					c := &claims[i]
					c.Owns, c.Generation = have[c.ID], generation
					c.Warm = slices.DeleteFunc(c.Warm, func(p int) bool { return !slices.Contains(plan[c.ID], p) })
				}
				if len(plan) == 0 {
					return have, moves
				}
				// At least one gets warm.
				warmed := false
				for i := range claims {
					for _, p := range plan[claims[i].ID] {
						if !warmed || rapid.Bool().Draw(t, "warm") {
							claims[i].Warm, warmed = append(claims[i].Warm, p), true
						}
					}
				}
			}
		}
		even := func(have map[string][]int) {
			t.Helper()
			for _, c := range claims {
				if list := have[c.ID]; len(list) < n/len(claims) || len(list) > (n+len(claims)-1)/len(claims) {
					t.Fatalf("%d partitions for %d members: %v", n, len(claims), have)
				}
			}
		}
		first, _ := rebalance()
		even(first)
		if again, moved := rebalance(); moved > 0 || !reflect.DeepEqual(again, first) {
			t.Fatalf("an even distribution does not stay: %v became %v", first, again)
		}
		// One more, or one less, which may tell before it goes.
		least := 0 // what has to move
		how := rapid.SampledFrom([]string{"joins", "dies", "leaves"}).Draw(t, "what")
		if len(claims) == 1 {
			how = "joins"
		}
		switch how {
		case "joins":
			claims = append(claims, named("new", 99, 0))
			least = (n + len(claims) - 1) / len(claims)
		case "leaves":
			least = len(first[claims[0].ID])
			claims[0].Leaving = true
			have, _ := rebalance()
			if list := have[claims[0].ID]; len(list) > 0 {
				t.Fatalf("a member that leaves keeps %v", list)
			}
			claims = claims[1:]
		default:
			least = len(first[claims[0].ID])
			claims = claims[1:]
		}
		next, _ := rebalance()
		even(next)
		moved := 0
		for id, list := range next {
			for _, p := range list {
				if !slices.Contains(first[id], p) {
					moved++
				}
			}
		}
		if moved > least {
			t.Fatalf("%d partitions moved, %d have to: %v became %v", moved, least, first, next)
		}
	})
}

// TestKinship: a process knows itself before Kafka has told it its member id, and
// does not take what is left of a former life for a foreign claim.
func TestKinship(t *testing.T) {
	own := claim{Node: Node{ID: "a"}, SinceMs: 7, Key: "k"}
	for name, x := range map[string]struct {
		claim claim
		want  kinship
	}{
		"itself":                {claim{Node: Node{ID: "a"}, SinceMs: 7, Key: "k", Generation: 3}, ownClaim},
		"a former self":         {claim{Node: Node{ID: "a"}, SinceMs: 6, Key: "k"}, twinClaim},
		"another node":          {claim{Node: Node{ID: "b"}, SinceMs: 7, Key: "k"}, sharingClaim},
		"another key":           {claim{Node: Node{ID: "b"}, SinceMs: 7, Key: "x"}, foreignClaim},
		"no key":                {claim{Node: Node{ID: "b"}, SinceMs: 7}, foreignClaim},
		"a former self, no key": {claim{Node: Node{ID: "a"}, SinceMs: 6}, foreignClaim},
	} {
		if got := x.claim.to(&own); got != x.want {
			t.Errorf("%s: %d, want %d", name, got, x.want)
		}
	}
	alone := claim{Node: Node{ID: "a"}, SinceMs: 7}
	if got := (&claim{Node: Node{ID: "a"}, SinceMs: 6}).to(&alone); got != foreignClaim {
		t.Errorf("a former self of a node that owns alone: %d, want %d", got, foreignClaim)
	}
	now := time.Unix(100, 0)
	m := &Member{opts: Options{SessionTimeout: time.Second, Now: func() time.Time { return now }}}
	for _, step := range []struct {
		after time.Duration
		lost  bool
	}{{0, false}, {time.Second, false}, {500 * time.Millisecond, false}, {time.Second, true}} {
		if now = now.Add(step.after); m.hadTwin() != step.lost {
			t.Errorf("at %v, after a twin was seen first at 100 s: lost is %v", now.Unix(), !step.lost)
		}
	}
}

func TestClaim(t *testing.T) {
	c := claim{Node: Node{ID: "a", Host: "h", Address: "1.2.3.4:5"}, SinceMs: 7, Key: "k", Owns: []int{0, 3}, Generation: 9}
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
