package flowcrash

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"sync"

	"github.com/musterhq/muster/bench/internal/surface"
)

// pauseTime is a time in which a flow was paused, in ms of the log's time.
type pauseTime struct{ fromMs, toMs int64 }

// pauses pauses and resumes a flow and keeps when it was.
type pauses struct {
	flow   *flow
	client *surface.Client

	mu struct {
		sync.Mutex
		times  []pauseTime // the last open while paused
		paused bool
		// still is where everybody stood when the pause was known, nil while that is not.
		still map[enrolmentID]place
	}
}

// enrolmentID names a person's enrolment in a flow.
type enrolmentID struct {
	profile string
	number  int
}

// place is where an enrolment stands.
type place struct{ status, step string }

// toggle pauses a live flow and resumes a paused one. It is done when it is
// acknowledged, over all restarts.
func (p *pauses) toggle(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.paused {
		s, err := p.client.ResumeFlow(ctx, p.flow.id)
		if err != nil {
			return err
		}
		if s.Status != "live" || s.ResumedAt == nil {
			return fmt.Errorf("flow %s is %s after it was resumed", p.flow.name, s.Status)
		}
		p.mu.times[len(p.mu.times)-1].toMs = int64(*s.ResumedAt)
		p.mu.paused, p.mu.still = false, nil
		return nil
	}
	s, err := p.client.PauseFlow(ctx, p.flow.id)
	if err != nil {
		return err
	}
	if s.Status != "paused" || s.PausedAt == nil {
		return fmt.Errorf("flow %s is %s after it was paused", p.flow.name, s.Status)
	}
	p.mu.times = append(p.mu.times, pauseTime{int64(*s.PausedAt), math.MaxInt64})
	p.mu.paused = true
	p.mu.still, err = standings(ctx, p.client, p.flow)
	return err
}

// isPausedNow reports whether the flow is known to be paused, and is not just being
// toggled.
func (p *pauses) isPausedNow() bool {
	if !p.mu.TryLock() {
		return false
	}
	defer p.mu.Unlock()
	return p.mu.paused
}

// isPaused reports whether the flow is known to be paused.
func (p *pauses) isPaused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.paused
}

// check compares where everybody stands with where they stood when the pause
// began. Only who waited for the answer to a webhook may have come to the step
// behind it, where the enrolment waits.
func (p *pauses) check(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mu.paused {
		return nil
	}
	s, err := p.client.Flow(ctx, p.flow.id)
	if err != nil {
		return err
	}
	if s.Status != "paused" {
		return fmt.Errorf("flow %s was paused and is %s", p.flow.name, s.Status)
	}
	now, err := standings(ctx, p.client, p.flow)
	if err != nil {
		return err
	}
	for id, at := range now {
		before, there := p.mu.still[id]
		switch {
		case !there:
			return fmt.Errorf("flow %s is paused and enrolled %s (enrolment %d)", p.flow.name, id.profile, id.number)
		case at == before:
		case before.step != "" && p.flow.step(before.step).Type == "webhook" && p.flow.follows(before.step, at):
		default:
			return fmt.Errorf("flow %s is paused and moved %s from %+v to %+v", p.flow.name, id.profile, before, at)
		}
	}
	if len(now) != len(p.mu.still) {
		return fmt.Errorf("flow %s is paused and has %d enrolments, it had %d", p.flow.name, len(now), len(p.mu.still))
	}
	return nil
}

// follows reports whether a place is the one behind a step with one next.
func (f *flow) follows(step string, at place) bool {
	next := f.step(step).Next
	if next == nil {
		return at == place{"completed", ""}
	}
	return at == place{"in_progress", *next}
}

// eachEnrolment visits all enrolments of a flow, page by page.
func (f *flow) eachEnrolment(ctx context.Context, c *surface.Client, visit func(*surface.Enrolment)) error {
	const limit = 500
	for cursor := ""; ; {
		var page struct {
			Enrolments []surface.Enrolment
			Next       *string
		}
		path := "/flows/" + f.id + "/enrolments?status=all&limit=" + strconv.Itoa(limit) + "&cursor=" + url.QueryEscape(cursor)
		if err := c.Console(ctx, "GET", path, nil, &page); err != nil {
			return err
		}
		for i := range page.Enrolments {
			visit(&page.Enrolments[i])
		}
		if page.Next == nil {
			return nil
		}
		cursor = *page.Next
	}
}

// standings is where everybody stands in a flow.
func standings(ctx context.Context, c *surface.Client, f *flow) (map[enrolmentID]place, error) {
	at := map[enrolmentID]place{}
	err := f.eachEnrolment(ctx, c, func(e *surface.Enrolment) {
		x := place{status: e.Status}
		if e.Step != nil {
			x.step = *e.Step
		}
		at[enrolmentID{e.ProfileID, e.Number}] = x
	})
	return at, err
}
