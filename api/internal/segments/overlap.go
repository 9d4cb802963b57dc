package segments

import (
	"github.com/musterhq/muster/api/internal/evaluation"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/segment"
)

func (a *API) overlapRoute() handler.Route {
	return handler.Route{Handle: a.overlap, Operation: operation.Operation{Method: "GET", Path: "/segments/{id}/overlap", Permission: "segments:read", ID: "overlap", Summary: "Count the overlap of two segments",
		About: "All counts are exact and of one instant.", Query: []operation.Parameter{operation.Must("with", shape.SegmentID("The other segment."))},
		Data: shape.Object(shape.Req("segment_id", shape.SegmentID("")), shape.Req("with", shape.SegmentID("The other segment.")),
			shape.Req("both", shape.Count(210, "Members of both.")), shape.Req("only_segment", shape.Count(302, "Members of the first alone.")), shape.Req("only_with", shape.Count(95, "Members of the other alone.")),
			shape.Req("as_of", shape.Instant("The instant of the counts."))), Also: []int{503}}}
}

// overlap answers GET /segments/{id}/overlap.
func (a *API) overlap(c *handler.Call) (any, error) {
	with := string(c.QueryArgs().Peek("with"))
	if with == "" {
		return nil, handler.BadField("with", "with is missing; name the other segment by its id")
	}
	ref := func(id string) *segment.Node {
		return &segment.Node{Kind: segment.KindSegment, Segment: &segment.Ref{SegmentID: id, Member: true}}
	}
	first, second := ref(c.PathID()), ref(with)
	q, err := a.opts.Evaluation.AskEngine(c, func(q *evaluation.Question, v *resolver.View) error {
		if _, ok := q.Lookup(c.PathID()); !ok {
			return handler.ErrNoSegment
		}
		if _, ok := q.Lookup(with); !ok {
			return handler.BadField("with", "with: there is no segment with this id")
		}
		q.Gather(v, first, second)
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer q.Close()
	x, err := q.Who(q.Ctx, first)
	if err != nil {
		return nil, err
	}
	y, err := q.Who(q.Ctx, second)
	if err != nil {
		return nil, err
	}
	both := x.AndCardinality(y)
	return map[string]any{"segment_id": c.PathID(), "with": with, "both": both, "only_segment": x.GetCardinality() - both, "only_with": y.GetCardinality() - both, "as_of": record.Time(q.AtMs)}, nil
}
