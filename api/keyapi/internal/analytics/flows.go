package analytics

import (
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/orders"
	"github.com/musterhq/muster/segment"
)

func flowRoutes() []keycall.Route {
	steps := shape.List(shapes.FlowStepCount.Plus(
		shape.Req("messages", messageCountsShape.OrNull()), shape.Req("series", shape.List(messageCountsShape.Plus(spanStartShape()), "Spans with messages.")),
	), "In the order of the definition; messages are those of the range, null for steps that send none.")
	return []keycall.Route{
		{Handle: allFlows, Operation: operation.Operation{Method: "GET", Path: "/analytics/flows/overview", Permission: "analytics:read", Timeout: keycall.HistoryTimeout, ID: "analyticsFlows", Summary: "Flows", About: "Counts are since flows went live, of those there are; `in_range` and `series` also of those deleted since.", Query: spanQueryShape(),
			Data: shape.Object(shape.Req("range", timeRangeShape), shape.Req("total", shape.Count(3, "Flows.")), shape.Req("draft", shape.Count(1, "")), shape.Req("live", shape.Count(2, "")), shape.Req("paused", shape.Count(0, "")),
				shape.Req("counts", shapes.FlowCounts), shape.Req("in_range", flowMovesShape), shape.Req("series", flowSeriesShape()), shape.Req("flows", shape.List(flowLineShape(), "The oldest first.")))}},
		{Handle: oneFlow, Operation: operation.Operation{Method: "GET", Path: "/analytics/flows/{id}", Permission: "analytics:read", Timeout: keycall.HistoryTimeout, ID: "analyticsFlow", Summary: "A flow and its steps", Query: spanQueryShape(),
			Data: flowLineShape(shape.Req("range", timeRangeShape), shape.Req("series", flowSeriesShape()), shape.Req("steps", steps),
				shape.Req("revenue", shape.List(shapes.SourceRevenue(), "Of orders that belong to messages of the flow, by step, channel and currency, since the flow was made.")),
				shape.Req("revenue_by_currency", shape.List(shapes.Revenue(), "The same of the whole flow: of each currency, what its steps and channels brought together."))),
			Fails: []string{"there is no flow with this id"}}},
	}
}

// moveTypes are the events of entering and leaving flows, in the order of
// [flowMoves].
var moveTypes = []string{"flow_entered", "flow_completed", "flow_exited"}

// flowMoves is how many people entered and left a flow in some time.
type flowMoves struct {
	Entered   uint64 `json:"entered"`
	Completed uint64 `json:"completed"`
	Exited    uint64 `json:"exited"`
}

func (m *flowMoves) add(r *query.SeriesRow) {
	for i, n := range []*uint64{&m.Entered, &m.Completed, &m.Exited} {
		if r.Type == moveTypes[i] {
			*n += r.Events
		}
	}
}

// flowPoint is the figures of a span.
type flowPoint struct {
	Start string `json:"start"`
	flowMoves
}

// movesOver asks what happened in each span.
func movesOver(c *keycall.Call, s *span, cut query.Cut, where ...segment.Predicate) ([]flowPoint, error) {
	rows, err := askSeries(c, query.SeriesQuery{Cut: cut, Types: moveTypes, FromMs: s.fromMs, ToMs: s.toMs, Granularity: s.granularity, Where: where})
	if err != nil {
		return nil, err
	}
	spans := map[int64]*flowMoves{}
	for i := range rows {
		m := spans[rows[i].StartMs]
		if m == nil {
			m = &flowMoves{}
			spans[rows[i].StartMs] = m
		}
		m.add(&rows[i])
	}
	out := []flowPoint{}
	for _, at := range s.starts(maxSpans) {
		p := flowPoint{Start: record.Time(at)}
		if m := spans[at]; m != nil {
			p.flowMoves = *m
		}
		out = append(out, p)
	}
	return out, nil
}

// flowLine is a flow among others.
type flowLine struct {
	ID     string `json:"flow_id"`
	Name   string `json:"name"`
	Status string `json:"status"`
	// Counts are since the flow went live, InRange what happened in the range.
	Counts  record.FlowCounts `json:"counts"`
	InRange flowMoves         `json:"in_range"`
}

// allFlows answers GET /analytics/flows/overview: the flows there are, the
// oldest first, and how many people entered and left them.
func allFlows(c *keycall.Call) (any, error) {
	s, err := spanOf(c)
	if err != nil {
		return nil, err
	}
	status := map[string]int{}
	var all record.FlowCounts
	flows := []flowLine{}
	cut, err := c.Cut(func(v *resolver.View) error {
		for _, f := range v.Flows().List() {
			n := record.NewFlowCounts(&f)
			flows = append(flows, flowLine{ID: f.ID, Name: f.Def.Name, Status: f.Status, Counts: n})
			status[f.Status]++
			all.Add(&n)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rows, err := askSeries(c, query.SeriesQuery{Cut: cut, Types: moveTypes, FromMs: s.fromMs, ToMs: s.toMs, By: []string{"flow_id"}})
	if err != nil {
		return nil, err
	}
	moves := map[string]*flowMoves{}
	for i := range flows {
		moves[flows[i].ID] = &flows[i].InRange
	}
	var whole flowMoves
	for i := range rows {
		whole.add(&rows[i])
		if m := moves[rows[i].Value]; m != nil {
			m.add(&rows[i])
		}
	}
	series, err := movesOver(c, &s, cut)
	if err != nil {
		return nil, err
	}
	return map[string]any{"range": s.body(), "total": len(flows), "draft": status[automation.Draft], "live": status[automation.Live],
		"paused": status[automation.Paused], "counts": all, "in_range": whole, "series": series, "flows": flows}, nil
}

// stepLine is a step with what became of its messages.
type stepLine struct {
	record.StepCount
	// Messages are those sent in the range by steps that send; null for others.
	// Series leaves out spans without messages.
	Messages *MessageCounts `json:"messages"`
	Series   []messagePoint `json:"series"`
}

// messagePoint is the figures of messages in a span.
type messagePoint struct {
	Start string `json:"start"`
	MessageCounts
}

// oneFlow answers GET /analytics/flows/{id}: a flow and its steps.
func oneFlow(c *keycall.Call) (any, error) {
	s, err := spanOf(c)
	if err != nil {
		return nil, err
	}
	var f automation.FlowState
	var sources []*orders.SourceFigures
	cut, err := c.Cut(func(v *resolver.View) error {
		var ok bool
		if f, ok = v.Flows().Find(c.Param("id")); !ok {
			return keycall.ErrNoFlow
		}
		sources = v.Orders().Sources(func(s *orders.Source) bool { return s.Flow == f.ID })
		return nil
	})
	if err != nil {
		return nil, err
	}
	of := segment.Predicate{Path: []string{"flow_id"}, Op: segment.OpEq, Values: []segment.Value{{Kind: segment.ValueString, Str: f.ID}}}
	series, err := movesOver(c, &s, cut, of)
	if err != nil {
		return nil, err
	}
	line := flowLine{ID: f.ID, Name: f.Def.Name, Status: f.Status, Counts: record.NewFlowCounts(&f)}
	for i := range series {
		m := &series[i].flowMoves
		line.InRange.Entered += m.Entered
		line.InRange.Completed += m.Completed
		line.InRange.Exited += m.Exited
	}
	steps, err := stepMessages(c, &s, cut, &f, of)
	if err != nil {
		return nil, err
	}
	return struct {
		Range rangeBody `json:"range"`
		flowLine
		Series []flowPoint `json:"series"`
		Steps  []stepLine  `json:"steps"`

		Revenue           []record.SourceRevenue `json:"revenue"`
		RevenueByCurrency []record.Revenue       `json:"revenue_by_currency"`
	}{s.body(), line, series, steps, record.SourceRevenues(sources), record.RevenueByCurrency(sources)}, nil
}

// stepMessages are the steps of a flow, with their messages.
func stepMessages(c *keycall.Call, s *span, cut query.Cut, f *automation.FlowState, of segment.Predicate) ([]stepLine, error) {
	q := query.SeriesQuery{Cut: cut, FromMs: s.fromMs, ToMs: s.toMs, Where: []segment.Predicate{of}, By: []string{"step_id"}}
	whole, err := messageRows(c, q)
	if err != nil {
		return nil, err
	}
	q.Granularity = s.granularity
	rows, err := messageRows(c, q)
	if err != nil {
		return nil, err
	}
	type place struct {
		step string
		atMs int64
	}
	totals, spans := map[string]*tally{}, map[place]*tally{}
	for i := range whole {
		if totals[whole[i].Value] == nil {
			totals[whole[i].Value] = &tally{}
		}
		totals[whole[i].Value].add(&whole[i])
	}
	for i := range rows {
		p := place{rows[i].Value, rows[i].StartMs}
		if spans[p] == nil {
			spans[p] = &tally{}
		}
		spans[p].add(&rows[i])
	}
	starts := s.starts(maxSpans)
	out := []stepLine{}
	for _, x := range record.StepCounts(f) {
		l := stepLine{StepCount: x, Series: []messagePoint{}}
		t := totals[x.ID]
		if x.Sends() && t == nil {
			t = &tally{}
		}
		if t != nil {
			n := t.body(x.Medium())
			l.Messages = &n
		}
		for _, at := range starts {
			if t := spans[place{x.ID, at}]; t != nil {
				l.Series = append(l.Series, messagePoint{record.Time(at), t.body(x.Medium())})
			}
		}
		out = append(out, l)
	}
	return out, nil
}
