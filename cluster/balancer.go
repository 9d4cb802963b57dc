package cluster

import (
	"cmp"
	"slices"
	"sync"

	kgo "github.com/segmentio/kafka-go"
)

// protocolName is the name of the way partitions are distributed. All members
// must know it, so a change of the rules needs a name of its own.
const protocolName = "muster-2"

// balancer distributes partitions, and says what this member claims.
type balancer struct {
	mu struct {
		sync.Mutex
		claim claim
	}
}

var _ kgo.GroupBalancer = (*balancer)(nil)

// ProtocolName implements [kgo.GroupBalancer].
func (b *balancer) ProtocolName() string { return protocolName }

// UserData implements [kgo.GroupBalancer].
func (b *balancer) UserData() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.claim.encode()
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
	if len(all) == 0 {
		return out
	}
	slices.SortFunc(all, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(x.SinceMs, y.SinceMs), cmp.Compare(x.ID, y.ID), cmp.Compare(x.member, y.member))
	})
	partitions = slices.Clone(partitions)
	slices.SortFunc(partitions, func(x, y kgo.Partition) int { return cmp.Or(cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.ID, y.ID)) })
	for _, s := range spread(sharing(all), partitions) {
		for _, p := range s.has {
			out[s.member][p.Topic] = append(out[s.member][p.Topic], p.ID)
		}
	}
	return out
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

// share is what a member is given.
type share struct {
	candidate
	has []kgo.Partition
}

// spread gives each member as many partitions as any other, or one more. A
// member keeps what it owned last, as far as its number goes; those who kept
// most get the one more.
func spread(members []candidate, partitions []kgo.Partition) []share {
	shares := make([]share, len(members))
	for i, c := range members {
		shares[i].candidate = c
	}
	var free []kgo.Partition
	for _, p := range partitions {
		owner, ok := newest(members, func(c candidate) bool { return c.owns(p.ID) })
		if !ok {
			free = append(free, p)
			continue
		}
		i := slices.IndexFunc(shares, func(s share) bool { return s.member == owner.member })
		shares[i].has = append(shares[i].has, p)
	}
	slices.SortStableFunc(shares, func(x, y share) int { return cmp.Compare(len(y.has), len(x.has)) })
	number := func(i int) int {
		n := len(partitions) / len(shares)
		if i < len(partitions)%len(shares) {
			n++
		}
		return n
	}
	for i := range shares {
		if n := number(i); len(shares[i].has) > n {
			free = append(free, shares[i].has[n:]...)
			shares[i].has = shares[i].has[:n]
		}
	}
	for i := range shares {
		n := number(i) - len(shares[i].has)
		shares[i].has = append(shares[i].has, free[:n]...)
		free = free[n:]
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
