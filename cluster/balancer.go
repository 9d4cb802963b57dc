package cluster

import (
	"cmp"
	"slices"
	"sync"

	kgo "github.com/segmentio/kafka-go"
)

// protocolName is the name of the way partitions are distributed. All members
// must know it, so a change of the rules needs a name of its own.
const protocolName = "muster-3"

// balancer distributes partitions, and says what this member claims.
type balancer struct {
	mu struct {
		sync.Mutex
		claim claim
		// news counts what the group must learn at once, sent is how much of that
		// was in the last metadata sent to the group.
		news, sent int
	}
}

var _ kgo.GroupBalancer = (*balancer)(nil)

// ProtocolName implements [kgo.GroupBalancer].
func (b *balancer) ProtocolName() string { return protocolName }

// UserData implements [kgo.GroupBalancer].
func (b *balancer) UserData() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.sent = b.mu.news
	return b.mu.claim.encode()
}

// unsent reports whether the group is to be entered again, because of news.
func (b *balancer) unsent() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.sent < b.mu.news
}

// warmed sets which partitions are warm, and reports whether another one is.
func (b *balancer) warmed(partitions []int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	more := slices.ContainsFunc(partitions, func(p int) bool { return !b.mu.claim.warm(p) })
	b.mu.claim.Warm = partitions
	return more
}

// again has the group entered again, though nothing has changed here.
func (b *balancer) again() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.news++
}

// leaves reports that the member is about to go.
func (b *balancer) leaves() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.mu.claim.Leaving {
		b.mu.claim.Leaving = true
		b.mu.news++
	}
}

// own sets what this member owns from a generation on.
func (b *balancer) own(generation int32, partitions []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.claim.Generation, b.mu.claim.Owns = generation, partitions
}

// candidate is a member as the one who distributes sees it.
type candidate struct {
	claim
	member string
}

// AssignGroups implements [kgo.GroupBalancer]. It is a function of its
// arguments' contents, whatever their order.
func (b *balancer) AssignGroups(members []kgo.GroupMember, partitions []kgo.Partition) kgo.GroupMemberAssignments {
	out := kgo.GroupMemberAssignments{}
	var all []candidate
	for _, m := range members {
		out[m.ID] = map[string][]int{}
		all = append(all, candidate{decodeClaim(m.UserData), m.ID})
	}
	for member, has := range distribute(all, partitions).given {
		for _, p := range has {
			out[member][p.Topic] = append(out[member][p.Topic], p.ID)
		}
	}
	return out
}

// distribution says, by member, who owns which partitions now, and which ones a
// member is to own once it has them warm.
type distribution struct{ given, planned map[string][]kgo.Partition }

// distribute spreads partitions over those that stay. One whose owner is there
// waits with it until the next one is warm, so that it always has an owner.
func distribute(all []candidate, partitions []kgo.Partition) distribution {
	d := distribution{map[string][]kgo.Partition{}, map[string][]kgo.Partition{}}
	if len(all) == 0 {
		return d
	}
	all = slices.Clone(all)
	slices.SortFunc(all, byAge)
	partitions = slices.Clone(partitions)
	slices.SortFunc(partitions, byNumber)
	members := sharing(all)
	staying := slices.DeleteFunc(slices.Clone(members), func(c candidate) bool { return c.Leaving })
	if len(staying) == 0 {
		staying = members
	}
	for _, s := range spread(staying, partitions) {
		for _, p := range s.has {
			owner, ok := newest(members, func(c candidate) bool { return c.owns(p.ID) })
			if !ok || owner.member == s.member || s.warm(p.ID) {
				d.given[s.member] = append(d.given[s.member], p)
				continue
			}
			d.given[owner.member] = append(d.given[owner.member], p)
			d.planned[s.member] = append(d.planned[s.member], p)
		}
	}
	return d
}

// sharing are the members that may own partitions: the one that owned some last,
// or has been there longest, and those that share them with it.
func sharing(all []candidate) (out []candidate) {
	chief := all[0]
	if last, ok := newest(all, func(c candidate) bool { return len(c.Owns) > 0 }); ok {
		chief = last
	}
	for _, c := range all {
		if c.member == chief.member || c.shares(&chief.claim) {
			out = append(out, c)
		}
	}
	return out
}

func byAge(x, y candidate) int { return cmp.Or(cmp.Compare(x.SinceMs, y.SinceMs), byID(x, y)) }

func byID(x, y candidate) int {
	return cmp.Or(cmp.Compare(x.ID, y.ID), cmp.Compare(x.member, y.member))
}

func byNumber(x, y kgo.Partition) int {
	return cmp.Or(cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.ID, y.ID))
}

// share is what a member is given, of a number in the end.
type share struct {
	candidate
	has    []kgo.Partition
	number int
}

func (s *share) take(p kgo.Partition) bool {
	if len(s.has) >= s.number {
		return false
	}
	s.has = append(s.has, p)
	return true
}

// spread gives each member as many partitions as any other, or one more. A
// member keeps what it owned last, as far as its number goes; those who kept
// most get the one more. The rest is given to those who have it warm, and then in
// order of members, so that what is planned does not change because some of it
// came about.
func spread(members []candidate, partitions []kgo.Partition) []*share {
	var shares []*share
	for _, c := range members {
		shares = append(shares, &share{candidate: c})
	}
	var free []kgo.Partition
	for _, p := range partitions {
		owner, ok := newest(members, func(c candidate) bool { return c.owns(p.ID) })
		if !ok {
			free = append(free, p)
			continue
		}
		i := slices.IndexFunc(shares, func(s *share) bool { return s.member == owner.member })
		shares[i].has = append(shares[i].has, p)
	}
	most := slices.Clone(shares)
	slices.SortStableFunc(most, func(x, y *share) int { return cmp.Compare(len(y.has), len(x.has)) })
	for i, s := range most {
		s.number = len(partitions) / len(shares)
		if i < len(partitions)%len(shares) {
			s.number++
		}
		if len(s.has) > s.number {
			free = append(free, s.has[s.number:]...)
			s.has = s.has[:s.number]
		}
	}
	slices.SortFunc(free, byNumber)
	for _, wanted := range []func(*share, kgo.Partition) bool{
		func(s *share, p kgo.Partition) bool { return s.warm(p.ID) },
		func(*share, kgo.Partition) bool { return true },
	} {
		for _, s := range shares {
			free = slices.DeleteFunc(free, func(p kgo.Partition) bool { return wanted(s, p) && s.take(p) })
		}
	}
	return shares
}

// newest is the candidate whose claim is of the newest generation, the first
// one of several.
func newest(all []candidate, claims func(candidate) bool) (found candidate, ok bool) {
	for _, c := range all {
		if claims(c) && (!ok || c.Generation > found.Generation) {
			found, ok = c, true
		}
	}
	return found, ok
}
