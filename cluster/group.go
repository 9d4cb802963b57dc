package cluster

import (
	"context"
	"time"

	kgo "github.com/segmentio/kafka-go"

	"github.com/musterhq/muster/internal/pause"
)

// groupStable is the state of a group whose partitions are distributed. Only
// then Kafka returns what its members said.
const groupStable = "Stable"

// pollEvery is between two questions about the group's state.
const pollEvery = 50 * time.Millisecond

func (m *Member) describe(ctx context.Context) (kgo.DescribeGroupsResponseGroup, error) {
	res, err := m.client.DescribeGroups(ctx, &kgo.DescribeGroupsRequest{GroupIDs: []string{Group(m.opts.Topic)}})
	switch {
	case err != nil:
		return kgo.DescribeGroupsResponseGroup{}, err
	case len(res.Groups) != 1:
		return kgo.DescribeGroupsResponseGroup{}, kgo.GroupCoordinatorNotAvailable
	}
	return res.Groups[0], res.Groups[0].Error
}

// formerSelves are the members that this node was before its process died. A
// group that is about to distribute its partitions does not say so.
func (m *Member) formerSelves(ctx context.Context) (members []candidate, err error) {
	for {
		g, err := m.describe(ctx)
		// A group that never was has no coordinator for a moment.
		if err == nil || g.GroupState == "Dead" {
			for _, x := range g.Members {
				if c := decodeClaim(x.MemberMetadata.UserData); c.ID == m.opts.Node.ID {
					members = append(members, candidate{c, x.MemberID})
				}
			}
			return members, nil
		}
		if pause.For(ctx, pollEvery) != nil {
			return nil, err
		}
	}
}

// dismiss removes former selves, once this member is on its way into the group:
// an empty group would wait for others (group.initial.rebalance.delay.ms). It
// is done to be quick, not to be right: their sessions end by themselves.
func (m *Member) dismiss(ctx context.Context, members []candidate) {
	for range 40 {
		if g, err := m.describe(ctx); err != nil || g.GroupState != groupStable || pause.For(ctx, pollEvery) != nil {
			break
		}
	}
	for _, c := range members {
		_, err := m.client.LeaveGroup(ctx, &kgo.LeaveGroupRequest{GroupID: Group(m.opts.Topic), Members: []kgo.LeaveGroupRequestMember{{ID: c.member}}})
		m.opts.Logger.Debug("dismissed the member that this node was before", "member", c.member, "err", err)
	}
}
