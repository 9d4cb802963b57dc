package node

import (
	"context"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/view"
)

// publishedOf takes the barrier; ok is false when [Node.Read] is to be asked.
func (n *Node) publishedOf(account uint64) (p *view.Published, ok bool) {
	part, err := n.owner(account)
	if err != nil || part.barrier(context.Background()) != nil {
		return nil, false
	}
	return &part.published.segments, true
}

// PublishedSegment finds a saved segment and its members at nowMs, or at the log
// time if that is later, which it returns. It includes every event acknowledged
// before the call and does not wait for the record that is being applied. When
// ok is false [Node.Read] must be asked, also why: there may be no such segment
// or account, or the partition may have failed.
func (n *Node) PublishedSegment(account uint64, id string, nowMs int64) (s view.CountedSegment, atMs int64, ok bool) {
	p, ok := n.publishedOf(account)
	if !ok {
		return s, 0, false
	}
	return p.Segment(account, id, nowMs)
}

// PublishedSegments is [Node.PublishedSegment] for all saved segments, the oldest
// first, as of one state.
func (n *Node) PublishedSegments(account uint64, nowMs int64) (list []view.CountedSegment, atMs int64, ok bool) {
	p, ok := n.publishedOf(account)
	if !ok {
		return nil, 0, false
	}
	return p.Segments(account, nowMs)
}

// CountMembers is the number of members of a segment at atMs, or at the log time
// if that is later. It includes every event acknowledged before the call, and
// waits for the record that is being applied only when time may have changed the
// number since the last one. known is false when there is no such segment or it
// is not live. Errors are those of [Node.Read].
func (n *Node) CountMembers(ctx context.Context, account uint64, id string, atMs int64) (members uint64, known bool, err error) {
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	if s, _, ok := n.PublishedSegment(account, id, atMs); ok && s.Known {
		return s.Members, true, nil
	}
	err = n.Read(ctx, account, func(v *resolver.View) error {
		members, known = v.Segments().Count(id, atMs)
		return nil
	})
	return members, known, err
}
