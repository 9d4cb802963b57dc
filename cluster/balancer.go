package cluster

import (
	"cmp"
	"slices"
	"sync"

	kgo "github.com/segmentio/kafka-go"
)

// protocolName is the name of the way partitions are distributed. All members
// must know it, so a change of the rules needs a name of its own.
const protocolName = "muster-1"

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
	// Who owns a partition that nobody owned: for now whoever owns others, so
	// that one node has them all.
	fallback := all[0]
	if last, ok := newest(all, func(c candidate) bool { return len(c.Owns) > 0 }); ok {
		fallback = last
	}
	for _, p := range partitions {
		owner, ok := newest(all, func(c candidate) bool { return c.owns(p.ID) })
		if !ok {
			owner = fallback
		}
		out[owner.member][p.Topic] = append(out[owner.member][p.Topic], p.ID)
	}
	return out
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
