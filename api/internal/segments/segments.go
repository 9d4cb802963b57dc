package segments

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/musterhq/muster/api/internal/evaluation"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/view"
	"github.com/musterhq/muster/segment"
)

// Operations are the calls about segments.
func (a *API) Operations() handler.Group {
	body := func() *shape.Schema {
		return shape.Object(shape.Req("name", shape.Text("Customers", "Name of the segment.").Bytes(1, 200)), shape.Req("definition", shapes.Definition))
	}
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: segments", Title: "Segments",
		About: "A segment is a saved definition. Counts and members are exact at the moment of reading: every acknowledged event is in them."}, Routes: []handler.Route{
		{Handle: a.listSegments, Operation: operation.Operation{Method: "GET", Path: "/segments", Permission: "segments:read", ID: "listSegments", Summary: "List segments", About: "The oldest first; all counts are of one instant.",
			Data: shape.List(recordShape, ""), Paged: true, Limit: paging.MaxLimit}},
		{Handle: a.createSegment, Operation: operation.Operation{Method: "POST", Path: "/segments", Permission: "segments:write", ID: "createSegment", Summary: "Save a segment", About: "A segment on a long history is built in the background; its counts are exact meanwhile.",
			Body: body(), Data: recordShape}},
		{Handle: a.preview, Operation: operation.Operation{Method: "POST", Path: "/segments/preview", Permission: "segments:read", ID: "previewSegment", Summary: "Count the members of a definition", About: "Without saving it.",
			Body: shape.Named("PreviewSegmentRequest", shape.Object(shape.Req("definition", shapes.Definition), shape.Opt("segment_id", shape.SegmentID("The segment that is being edited, to learn who would enter and leave.")),
				shape.Opt("explain", shape.Boolean(true, "Also say why each profile of the sample belongs. Their events are read, 10,000 of each at most, which takes time.").Default(false)))),
			Data: shape.Object(shape.Req("count", shape.Count(512, "")), shape.Req("as_of", shape.Instant("The instant of the count.")),
				shape.Opt("entering", shape.Count(312, "With `segment_id`: who would become a member.")), shape.Opt("leaving", shape.Count(40, "With `segment_id`: who would be none any more.")),
				shape.Req("reachable", reachableShape),
				shape.Req("profiles", shape.Count(1204, "All profiles.")), shape.Req("share", shape.Share("The count's share of them.")),
				shape.Req("parts", shape.List(shape.Object(shape.Req("path", shape.Text("conditions[0]", "Where in the definition.")), shape.Req("count", shape.Count(700, "Profiles for which this part holds.")),
					shape.Req("without", shape.Count(640, "The definition's count without it."))), "The groups and conditions in the order of the definition; none if there are more than 64.")),
				shape.Req("warnings", definitionWarningsShape()), shape.Req("sample", shape.List(shapes.Profile, "Some of them, 10 at most.")),
				shape.Opt("explained", shape.List(explanationShape, "With `explain`: why each profile of the sample belongs, in its order. A profile that changed after it was counted may be no member any more."))), Also: []int{409, 503}}},
		{Handle: a.getSegment, Operation: operation.Operation{Method: "GET", Path: "/segments/{id}", Permission: "segments:read", ID: "getSegment", Summary: "Read a segment", Data: recordShape}},
		{Handle: a.updateSegment, Operation: operation.Operation{Method: "PUT", Path: "/segments/{id}", Permission: "segments:write", ID: "updateSegment", Summary: "Replace a segment's name and definition", Query: handler.IfVersionQuery(), Body: body(), Data: recordShape, Also: []int{409}}},
		{Handle: a.deleteSegment, Operation: operation.Operation{Method: "DELETE", Path: "/segments/{id}", Permission: "segments:write", ID: "deleteSegment", Summary: "Delete a segment", About: "Refused while another segment or a campaign that was not sent uses it."}},
		handler.UsedInRoute("/segments", "segments:read", "segmentUsedIn", "a segment", handler.KeepsFromDeletion, view.UsedIn.Segment, handler.ErrNoSegment),
		a.versionsRoute(),
		a.growthRoute(),
		a.overlapRoute(),
		{Handle: a.members, Operation: operation.Operation{Method: "GET", Path: "/segments/{id}/members", Permission: "segments:read", ID: "segmentMembers", Summary: "List members",
			About: "In the order in which profiles were made. Each page is of its own instant; a profile that is a member all the time is on exactly one.", Query: operation.PageQuery(),
			Data: shape.Object(shape.Req("members", shape.List(shape.ProfileID(""), "")), shape.Req("profiles", shape.List(shapes.ProfileRow, "The members, in the same order.")), shape.Req("next", shape.NextCursor.OrNull()), shape.Req("as_of", shape.Instant("The instant of the page.")))}},
		{Handle: a.explain, Operation: operation.Operation{Method: "GET", Path: "/segments/{id}/explain", Permission: "segments:read", ID: "explainSegment", Summary: "Explain a profile's membership",
			Query: []operation.Parameter{operation.Must("profile_id", shape.ProfileID("The profile."))},
			Data: shape.Object(shape.Req("segment_id", shape.SegmentID("")), shape.Req("profile_id", shape.ProfileID("The profile's present id.")), shape.Req("member", shape.Boolean(true, "")),
				shape.Req("as_of", shape.Instant("")), shape.Req("definition", shapes.Explained)), Also: []int{409}}},
		{Handle: a.explainDefinition, Operation: operation.Operation{Method: "POST", Path: "/segments/explain", Permission: "segments:read", ID: "explainDefinition", Summary: "Explain an unsaved definition for a profile", About: "Without saving it.",
			Body: shape.Object(shape.Req("definition", shapes.Definition), shape.Req("profile_id", shape.ProfileID("The profile."))),
			Data: explanationShape, Also: []int{409}}},
		{Handle: a.transitions, Operation: operation.Operation{Method: "GET", Path: "/segments/{id}/transitions", Permission: "segments:read", ID: "segmentTransitions", Summary: "Stream members who enter and leave",
			About:  "A stream of server-sent events, `entered` and `left`, in the order in which they were made, each once. The id of a message is its position: send it as `after`, or in `Last-Event-ID`, to continue behind it.",
			Query:  []operation.Parameter{operation.Query("after", shape.Text("0-0", "Position to continue behind; 0-0 is the beginning. Left out, from now on."))},
			Header: []operation.Parameter{operation.Query("Last-Event-ID", shape.Text("1042-3", "As `after`; browsers send it by themselves."))},
			Other: shape.Pairs("200", operation.Plain("Entries and exits.", "text/event-stream",
				": watching\nid: 7-0\n\nid: 8-1\nevent: left\ndata: {\"profile_id\":\"prf_cdc5eaeb89bc0ed9f653e1d1d46aa533\",\"segment_id\":\"seg_9c1f0e7ad24b4f6c8f3b5a2d7e60c481\",\"cause\":\"event\",\"at\":\"2026-01-31T09:00:00.000Z\",\"position\":\"8-1\"}\n\n", nil))}},
	}}
}

// segmentRecord is a saved segment as it is answered.
type segmentRecord struct {
	ID         string          `json:"_id"`
	Name       string          `json:"name"`
	Definition json.RawMessage `json:"definition"`
	// Status is building until the engine keeps the members by this definition,
	// and those of all segments it refers to, and live from then on. Progress is
	// how much of that is done, from 0 to 1.
	Status   string  `json:"status"`
	Progress float64 `json:"progress"`
	// Count is the number of members at AsOf; null when it could not be found
	// in time, which the message then says.
	Count     *uint64 `json:"count"`
	AsOf      string  `json:"as_of"`
	CreatedAt string  `json:"created_at"`
	UpdatedAt string  `json:"updated_at"`
	// Version names the name and the definition.
	Version string `json:"version"`
	// Warnings are of a definition that was just saved.
	Warnings []string `json:"warnings,omitempty"`

	root *segment.Node
}

const (
	statusBuilding = "building"
	statusLive     = "live"
)

// building reports whether history must be asked for the count.
func (r *segmentRecord) building() bool { return r.Status == statusBuilding }

// records makes segments of one state into what is answered.
type records struct {
	view *resolver.View
	atMs int64
	asOf string
	// progress is remembered: many segments may refer to one.
	progress map[string]float64
}

func newRecords(v *resolver.View, atMs int64) *records {
	return &records{view: v, atMs: atMs, asOf: record.Time(atMs)}
}

// newRecord is a live segment, without its count.
func newRecord(s *resolver.Segment, asOf string) segmentRecord {
	return segmentRecord{
		ID: s.ID, Name: s.Name, Definition: s.Definition, Status: statusLive, Progress: 1,
		AsOf: asOf, CreatedAt: record.Time(s.CreatedMs), UpdatedAt: record.Time(s.UpdatedMs), Version: s.Version(), root: s.Root,
	}
}

// of is the segment with its count, unless it is building.
func (r *records) of(s *resolver.Segment) segmentRecord {
	out := newRecord(s, r.asOf)
	if n, live := r.view.Segments().Count(s.ID, r.atMs); live {
		out.Count = &n
	} else {
		out.Status, out.Progress = statusBuilding, r.progressOf(s.ID)
	}
	return out
}

// progressOf is how much is built of a segment and all it refers to: it waits
// for the one that is last.
func (r *records) progressOf(id string) float64 {
	if p, ok := r.progress[id]; ok {
		return p
	}
	p, live := r.view.Segments().Progress(id)
	if r.progress == nil {
		r.progress = map[string]float64{}
	}
	r.progress[id] = p
	if s, ok := r.view.Segments().Get(id); ok && !live {
		for _, other := range s.Root.SegmentIDs() {
			p = min(p, r.progressOf(other))
		}
		r.progress[id] = p
	}
	return p
}

const notCounted = "the count could not be found in time; ask for the segment again"

type segmentBody struct {
	Name       *string         `json:"name"`
	Definition json.RawMessage `json:"definition"`
}

func (b *segmentBody) check() error {
	if b.Name == nil || strings.TrimSpace(*b.Name) == "" {
		return handler.BadField("name", "name is missing; name the segment")
	}
	return nil
}

// createSegment answers POST /segments.
func (a *API) createSegment(c *handler.Call) (any, error) {
	return a.saveSegment(c, resolver.CommandSegmentCreate, "")
}

// updateSegment answers PUT /segments/{id}.
func (a *API) updateSegment(c *handler.Call) (any, error) {
	return a.saveSegment(c, resolver.CommandSegmentUpdate, c.PathID())
}

func (a *API) saveSegment(c *handler.Call, command, id string) (any, error) {
	var in segmentBody
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	// What cannot be parsed needs no record in the log.
	root, definition, err := evaluation.ParseDefinition(in.Definition)
	if err != nil {
		return nil, err
	}
	if id, err = c.CommandID(command, resolver.SegmentSave{ID: id, Name: *in.Name, Definition: definition, IfVersion: c.IfVersion()}); err != nil {
		return nil, err
	}
	var warnings []string
	err = c.Read(func(v *resolver.View) error {
		warnings = evaluation.Warnings(v, root)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return a.answerSegment(c, id, warnings)
}

// deleteSegment answers DELETE /segments/{id}.
func (a *API) deleteSegment(c *handler.Call) (any, error) {
	return nil, c.Command(resolver.CommandSegmentDelete, resolver.SegmentDelete{ID: c.PathID()}, nil)
}

// getSegment answers GET /segments/{id}.
func (a *API) getSegment(c *handler.Call) (any, error) { return a.answerSegment(c, c.PathID(), nil) }

// answerSegment answers a segment with its count, from what is published if that
// tells. While it is building history is asked; when that does not answer, the
// segment itself is known. warnings are those of a definition that was just saved.
func (a *API) answerSegment(c *handler.Call, id string, warnings []string) (any, error) {
	var r segmentRecord
	answer := func() segmentRecord {
		r.Warnings = warnings
		return r
	}
	if s, atMs, ok := a.opts.Node.PublishedSegment(c.Account, id, a.opts.Now().UnixMilli()); ok && s.Known {
		r = newRecord(s.Segment, record.Time(atMs))
		r.Count = &s.Members
		return answer(), nil
	}
	find := func(v *resolver.View, atMs int64) error {
		s, ok := v.Segments().Get(id)
		if !ok {
			return handler.ErrNoSegment
		}
		r = newRecords(v, atMs).of(&s)
		return nil
	}
	err := c.Read(func(v *resolver.View) error { return find(v, a.opts.Chain.Instant(v)) })
	if err != nil || !r.building() {
		return answer(), err
	}
	q, err := a.opts.Evaluation.Ask(c, func(q *evaluation.Question, v *resolver.View) error {
		if err := find(v, q.AtMs); err != nil {
			return err
		}
		if r.building() {
			q.Gather(v, r.root)
		}
		return nil
	})
	if err == nil {
		defer q.Close()
		if r.building() {
			r.Count, err = q.Count(q.Ctx, r.root)
		}
	}
	if err != nil {
		p, ours := handler.Classify(err)
		if p.Status < 500 {
			return nil, err
		}
		if ours {
			a.opts.Logger.Error("a segment could not be counted", "segment", id, "error", err)
		}
		return handler.Note{Data: answer(), Message: notCounted}, nil
	}
	return answer(), nil
}

// listBytes bounds the definitions in a page of segments.
const listBytes = 4 << 20

// segmentPage is a page of segments of one state.
type segmentPage struct {
	records []segmentRecord
	next    string
}

// pageOf is the page behind the segment with the id after, from the beginning
// if that is nil.
func pageOf(v *resolver.View, saved []resolver.Segment, after []byte, limit int, atMs int64) (p segmentPage, err error) {
	from, to, err := pageBounds(len(saved), func(i int) *resolver.Segment { return &saved[i] }, after, limit)
	if err != nil {
		return p, err
	}
	p.records = make([]segmentRecord, 0, to-from)
	rs := newRecords(v, atMs)
	for i := from; i < to; i++ {
		p.records = append(p.records, rs.of(&saved[i]))
	}
	if to < len(saved) {
		p.next = paging.Encode(paging.Segments, []byte(saved[to-1].ID))
	}
	return p, nil
}

// publishedPage is pageOf from what is published; ok is false when that does not
// tell the count of a segment of the page.
func publishedPage(saved []view.CountedSegment, after []byte, limit int, atMs int64) (p segmentPage, ok bool, err error) {
	from, to, err := pageBounds(len(saved), func(i int) *resolver.Segment { return saved[i].Segment }, after, limit)
	if err != nil {
		return p, false, err
	}
	p.records = make([]segmentRecord, to-from)
	asOf := record.Time(atMs)
	for i := range p.records {
		s := &saved[from+i]
		if !s.Known {
			return segmentPage{}, false, nil
		}
		p.records[i] = newRecord(s.Segment, asOf)
		p.records[i].Count = &s.Members
	}
	if to < len(saved) {
		p.next = paging.Encode(paging.Segments, []byte(saved[to-1].ID))
	}
	return p, true, nil
}

// pageBounds is which of n segments are on the page behind the one with the id
// after.
func pageBounds(n int, at func(i int) *resolver.Segment, after []byte, limit int) (from, to int, err error) {
	if after != nil {
		for from < n && at(from).ID != string(after) {
			from++
		}
		if from == n {
			return 0, 0, handler.BadField("cursor", "cursor points to a segment that was deleted; leave it out to start at the beginning")
		}
		from++
	}
	bytes := 0
	for to = from; to < n && to-from < limit; to++ {
		if bytes += len(at(to).Definition); to > from && bytes > listBytes {
			break
		}
	}
	return from, to, nil
}

// building lists the definitions whose members history must be asked for.
func (p *segmentPage) building() (roots []*segment.Node) {
	for i := range p.records {
		if p.records[i].building() {
			roots = append(roots, p.records[i].root)
		}
	}
	return roots
}

// listSegments answers GET /segments, the oldest first. All counts are of one
// instant. Those of segments that are building come from history: they share
// the answers to conditions and a bound on time; what is over it has a null
// count.
func (a *API) listSegments(c *handler.Call) (any, error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	after, err := c.Cursor(paging.Segments, 0)
	if err != nil {
		return nil, err
	}
	if saved, atMs, ok := a.opts.Node.PublishedSegments(c.Account, a.opts.Now().UnixMilli()); ok {
		p, whole, err := publishedPage(saved, after, limit, atMs)
		if err != nil {
			return nil, err
		}
		if whole {
			return handler.Page{Items: p.records, Next: p.next}, nil
		}
	}
	var p segmentPage
	err = c.Read(func(v *resolver.View) (err error) {
		p, err = pageOf(v, v.Segments().All(), after, limit, a.opts.Chain.Instant(v))
		return err
	})
	if err != nil {
		return nil, err
	}
	message := ""
	if len(p.building()) > 0 {
		ctx, cancel := context.WithTimeout(c.UntilGone(), a.opts.ListTimeout)
		defer cancel()
		q, err := a.opts.Evaluation.AskWithin(ctx, c, func(q *evaluation.Question, v *resolver.View) (err error) {
			if p, err = pageOf(v, q.Saved, after, limit, q.AtMs); err == nil {
				q.Gather(v, p.building()...)
			}
			return err
		})
		switch {
		case err == nil:
			defer q.Close()
			message = a.countBuilding(ctx, q, p.records)
		default:
			reason, _ := handler.Classify(err)
			if reason.Status < 500 {
				return nil, err
			}
			message = notAllCounted
		}
	}
	return handler.Page{Items: p.records, Next: p.next, Message: message}, nil
}

const notAllCounted = "segments with a null count could not be counted in time; ask for them one by one"

// countBuilding counts the records that are building; the message says that
// some could not be counted.
func (a *API) countBuilding(ctx context.Context, q *evaluation.Question, list []segmentRecord) (message string) {
	for i := range list {
		r := &list[i]
		if !r.building() {
			continue
		}
		var err error
		if r.Count, err = q.Count(ctx, r.root); err != nil {
			if message == "" && !errors.Is(err, context.DeadlineExceeded) {
				a.opts.Logger.Error("a segment could not be counted", "segment", r.ID, "error", err)
			}
			message = notAllCounted
		}
	}
	return message
}
