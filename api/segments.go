package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/segment"
)

// segmentRecord is a saved segment as it is answered.
type segmentRecord struct {
	ID         string          `json:"_id"`
	Name       string          `json:"name"`
	Definition json.RawMessage `json:"definition"`
	Status     string          `json:"status"`
	Progress   float64         `json:"progress"`
	// Count is the number of members at AsOf; null when it could not be found
	// in time, which the message then says.
	Count     *uint64 `json:"count"`
	AsOf      string  `json:"as_of"`
	CreatedAt string  `json:"created_at"`
	UpdatedAt string  `json:"updated_at"`
}

func newSegmentRecord(s resolver.Segment, count *uint64, asOfMs int64) segmentRecord {
	return segmentRecord{
		ID: s.ID, Name: s.Name, Definition: s.Definition, Status: "live", Progress: 1, Count: count,
		AsOf: timeText(asOfMs), CreatedAt: timeText(s.CreatedMs), UpdatedAt: timeText(s.UpdatedMs),
	}
}

const notCounted = "the count could not be found in time; ask for the segment again"

type segmentBody struct {
	Name       *string         `json:"name"`
	Definition json.RawMessage `json:"definition"`
}

func (b *segmentBody) check() error {
	switch {
	case b.Name == nil || strings.TrimSpace(*b.Name) == "":
		return badField("name", "name is missing; name the segment")
	case len(b.Definition) == 0 || string(b.Definition) == "null":
		return badField("definition", "definition is missing; send a group or a condition")
	}
	return nil
}

// createSegment answers POST /segments.
func (a *API) createSegment(c *call) (any, error) {
	return a.saveSegment(c, resolver.CommandSegmentCreate, "")
}

// updateSegment answers PUT /segments/{id}.
func (a *API) updateSegment(c *call) (any, error) {
	return a.saveSegment(c, resolver.CommandSegmentUpdate, c.id())
}

func (a *API) saveSegment(c *call, command, id string) (any, error) {
	var in segmentBody
	if err := a.decode(c, &in); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	// What cannot be parsed needs no record in the log.
	if _, err := segment.Parse(in.Definition, segment.Limits{}); err != nil {
		return nil, badField("definition", "%s", err)
	}
	reply, err := a.opts.Node.Command(c.ctx, c.account, command, resolver.SegmentSave{ID: id, Name: *in.Name, Definition: in.Definition})
	if err != nil {
		return nil, err
	}
	var saved struct{ ID string }
	if err := json.Unmarshal(reply, &saved); err != nil {
		return nil, fmt.Errorf("reply to %s: %w", command, err)
	}
	return a.answerSegment(c, saved.ID)
}

// deleteSegment answers DELETE /segments/{id}.
func (a *API) deleteSegment(c *call) (any, error) {
	_, err := a.opts.Node.Command(c.ctx, c.account, resolver.CommandSegmentDelete, resolver.SegmentDelete{ID: c.id()})
	return nil, err
}

// getSegment answers GET /segments/{id}.
func (a *API) getSegment(c *call) (any, error) { return a.answerSegment(c, c.id()) }

var errNoSegment = missing("there is no segment with this id")

// answerSegment answers a segment with its count, or without when history does
// not answer: the segment itself is known.
func (a *API) answerSegment(c *call, id string) (any, error) {
	var s resolver.Segment
	find := func(v *resolver.View) error {
		var ok bool
		if s, ok = v.Segment(id); !ok {
			return errNoSegment
		}
		return nil
	}
	q, err := a.askAll(c, find)
	if err != nil {
		return a.uncounted(c, find, &s, err)
	}
	defer q.close()
	n, err := q.count(q.ctx, s.Root)
	if err != nil {
		return a.uncounted(c, nil, &s, err)
	}
	return newSegmentRecord(s, n, q.atMs), nil
}

// uncounted answers a segment whose count could not be found because of err.
func (a *API) uncounted(c *call, find func(*resolver.View) error, s *resolver.Segment, err error) (any, error) {
	p, ours := classify(err)
	if p.status < 500 {
		return nil, err
	}
	if ours {
		a.opts.Logger.Error("a segment could not be counted", "segment", s.ID, "error", err)
	}
	if find != nil {
		if err := a.read(c, find); err != nil {
			return nil, err
		}
	}
	return note{newSegmentRecord(*s, nil, a.opts.Now().UnixMilli()), notCounted}, nil
}

// listBytes bounds the definitions in a page of segments.
const listBytes = 4 << 20

// listSegments answers GET /segments, the oldest first. Counts share the
// answers to conditions and a bound on time; what is over it has a null count.
func (a *API) listSegments(c *call) (any, error) {
	limit, err := queryInt(c.QueryArgs(), "limit", 1, maxLimit, maxLimit)
	if err != nil {
		return nil, err
	}
	after, err := peekCursor(c, cursorSegments, 0)
	if err != nil {
		return nil, err
	}
	q, err := a.askAll(c, nil)
	if err != nil {
		return nil, err
	}
	defer q.close()
	rest := q.saved
	if after != nil {
		at := slices.IndexFunc(rest, func(s resolver.Segment) bool { return s.ID == string(after) })
		if at < 0 {
			return nil, badField("cursor", "cursor points to a segment that was deleted; leave it out to start at the beginning")
		}
		rest = rest[at+1:]
	}
	ctx, cancel := context.WithTimeout(q.ctx, a.opts.ListTimeout)
	defer cancel()
	out := page{items: []segmentRecord{}}
	records := []segmentRecord{}
	message, bytes := "", 0
	for i, s := range rest {
		if i == limit || (i > 0 && bytes+len(s.Definition) > listBytes) {
			out.next = cursorText.EncodeToString(append([]byte{cursorSegments}, rest[i-1].ID...))
			break
		}
		bytes += len(s.Definition)
		var n *uint64
		if n, err = q.count(ctx, s.Root); err != nil {
			if message == "" && !errors.Is(err, context.DeadlineExceeded) {
				a.opts.Logger.Error("a segment could not be counted", "segment", s.ID, "error", err)
			}
			message = "segments with a null count could not be counted in time; ask for them one by one"
		}
		records = append(records, newSegmentRecord(s, n, q.atMs))
	}
	out.items, out.message = records, message
	return out, nil
}
