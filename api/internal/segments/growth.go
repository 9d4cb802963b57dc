package segments

import (
	"time"

	"github.com/musterhq/muster/api/internal/evaluation"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
)

// maxGrowthSpans is how many spans of time an answer may have.
const maxGrowthSpans = 2000

func (a *API) growthRoute() handler.Route {
	return handler.Route{Handle: a.growth, Operation: operation.Operation{Method: "GET", Path: "/segments/{id}/growth", Permission: "segments:read", ID: "growth", Summary: "Read the growth of a segment",
		About: "Entries, exits and members by spans of time, exact, from the segment's creation unless the query says otherwise. Spans begin in UTC, weeks on Monday; at most 2,000.",
		Query: []operation.Parameter{
			operation.Query("from", shape.Text("2026-01-01", "First instant: a date, or a time with its zone; default the segment's creation. It is moved to the beginning of its span.")),
			operation.Query("to", shape.Text("2026-02-01", "Instant after the last; default the present.")),
			operation.Query("granularity", shape.Word("", "hour", "day", "week", "month").Default("day"))},
		Data: shape.Object(shape.Req("segment_id", shape.SegmentID("")), shape.Req("as_of", shape.Instant("The instant up to which entries and exits are counted.")),
			shape.Req("series", shape.List(shape.Named("SegmentGrowth", shape.Object(shape.Req("start", shape.Instant("Of the span.")), shape.Req("entered", shape.Count(40, "Entries in the span.")), shape.Req("left", shape.Count(7, "Exits in the span.")),
				shape.Req("members", shape.Count(512, "Members at the end of the span, or at `as_of`.")))), "")))}}
}

// segmentSpan is how many entered and left a segment in a span of time.
type segmentSpan struct {
	Start   string `json:"start"`
	Entered uint64 `json:"entered"`
	Left    uint64 `json:"left"`
	Members uint64 `json:"members"`
}

// growth answers GET /segments/{id}/growth. Entries less exits are the members,
// so the sums of history are exact at the log time of the cut.
func (a *API) growth(c *handler.Call) (any, error) {
	g := query.Granularity(c.QueryArgs().Peek("granularity"))
	switch g {
	case "":
		g = query.Day
	case query.Hour, query.Day, query.Week, query.Month:
	default:
		return nil, handler.BadField("granularity", "granularity must be hour, day, week or month")
	}
	var cut query.Cut
	var createdMs, asOfMs int64
	err := c.Read(func(v *resolver.View) error {
		s, ok := v.Segments().Get(c.PathID())
		if !ok {
			return handler.ErrNoSegment
		}
		cut, createdMs, asOfMs = v.Cut(), s.CreatedMs, v.LogTimeMs()
		return nil
	})
	if err != nil {
		return nil, err
	}
	fromMs, err := queryInstant(c, "from", createdMs)
	if err != nil {
		return nil, err
	}
	toMs, err := queryInstant(c, "to", asOfMs+1)
	if err != nil {
		return nil, err
	}
	if fromMs >= toMs {
		return nil, handler.BadField("from", "from must be before to")
	}
	fromMs = g.Start(fromMs)
	series := []segmentSpan{}
	index := map[int64]int{}
	for at := fromMs; at < toMs; at = g.Next(at) {
		if len(series) == maxGrowthSpans {
			return nil, handler.BadField("granularity", "granularity must be coarser, or from later: there would be more than %d spans", maxGrowthSpans)
		}
		index[at] = len(series)
		series = append(series, segmentSpan{Start: record.Time(at)})
	}
	ctx, done, err := a.opts.Evaluation.Begin(c, cut)
	if err != nil {
		return nil, err
	}
	defer done()
	q := query.MovesQuery{Cut: cut, Account: c.Account, Segment: c.PathID(), ToMs: fromMs}
	before, err := a.opts.History.Moves(ctx, q)
	if err != nil {
		return nil, evaluation.HistoryError(err)
	}
	q.FromMs, q.ToMs, q.Granularity = fromMs, toMs, g
	moves, err := a.opts.History.Moves(ctx, q)
	if err != nil {
		return nil, evaluation.HistoryError(err)
	}
	for _, m := range moves {
		x := &series[index[m.StartMs]]
		x.Entered, x.Left = m.Entered, m.Exits
	}
	members := uint64(0)
	for _, m := range before {
		members += m.Entered - m.Exits
	}
	for i := range series {
		members += series[i].Entered - series[i].Left
		series[i].Members = members
	}
	return map[string]any{"segment_id": c.PathID(), "as_of": record.Time(min(asOfMs, toMs-1)), "series": series}, nil
}

// queryInstant reads an instant of the query, in Unix milliseconds: a date, or a time
// with its zone.
func queryInstant(c *handler.Call, name string, absent int64) (int64, error) {
	text := string(c.QueryArgs().Peek(name))
	if text == "" {
		return absent, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() >= 1970 && t.Year() <= 2200 {
			return t.UnixMilli(), nil
		}
	}
	return 0, handler.BadField(name, "%s must be a date or a time with its zone, such as 2026-01-31 or 2026-01-31T08:00:00Z", name)
}
