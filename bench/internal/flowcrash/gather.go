package flowcrash

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/bench/internal/surface"
)

// fact is an event as the server tells it.
type fact struct {
	Type       string          `json:"event_type"`
	At         surface.Stamp   `json:"timestamp"`
	Properties json.RawMessage `json:"properties"`
	Key        string          `json:"idempotency_key"`
	who        *person         // who sent it, by the ledger; nil for the service's own
}

// property is a property that is a text, empty when there is none.
func (f *fact) property(name string) string {
	var all map[string]any
	if json.Unmarshal(f.Properties, &all) != nil {
		return ""
	}
	text, _ := all[name].(string)
	return text
}

// visit is a step that an enrolment came to.
type visit = surface.Visit

// enrolment is one enrolment of a person in a flow.
type enrolment struct{ surface.Enrolment }

func (w *enrolment) merged() bool { return w.Reason != nil && *w.Reason == "merged" }

// human is a profile at the end of the run, with everything that is known of it.
// One that is to be two people in the ledger was merged, or both are listed.
type human struct {
	profile    string
	people     []*person
	facts      []fact                 // in the order of the log
	enrolments map[string][]enrolment // by name of flow, the oldest first
	tags       []string
	attributes map[string]any
}

// merged reports whether it was made of two.
func (h *human) merged() bool { return len(h.people) > 1 }

// gathered is what the server tells at the end.
type gathered struct {
	humans []*human
	// byProfile has the ids of merged profiles as well.
	byProfile map[string]*human
}

// askers ask at the same time.
const askers = 4

// gather asks for everything about everybody.
func (l *Load) gather(ctx context.Context) (*gathered, error) {
	g := &gathered{byProfile: map[string]*human{}}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(askers)
	for _, w := range l.workers {
		for _, p := range w.book.people {
			group.Go(func() error {
				h, ids, err := l.whoIs(ctx, p)
				if err != nil {
					return fmt.Errorf("person %s%s: %w", p.external, p.email, err)
				}
				mu.Lock()
				defer mu.Unlock()
				if known := g.byProfile[h.profile]; known != nil {
					h = known
				} else {
					g.humans = append(g.humans, h)
				}
				h.people = append(h.people, p)
				for _, id := range ids {
					g.byProfile[id] = h
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	group, ctx = errgroup.WithContext(context.WithoutCancel(ctx))
	group.SetLimit(askers)
	for _, h := range g.humans {
		group.Go(func() error {
			if err := l.lookInto(ctx, h); err != nil {
				return fmt.Errorf("profile %s: %w", h.profile, err)
			}
			return nil
		})
	}
	return g, group.Wait()
}

// whoIs finds a person's profile, with all ids that it ever had.
func (l *Load) whoIs(ctx context.Context, p *person) (*human, []string, error) {
	query := "email=" + url.QueryEscape(p.email)
	if p.external != "" {
		query = "external_id=" + url.QueryEscape(p.external)
	}
	var data struct {
		ProfileID  string         `json:"profile_id"`
		MergedIDs  []string       `json:"merged_ids"`
		Tags       []string       `json:"tags"`
		Attributes map[string]any `json:"attributes"`
	}
	if err := l.client.Console(ctx, "GET", "/profiles?"+query, nil, &data); err != nil {
		return nil, nil, err
	}
	ids := append(data.MergedIDs, data.ProfileID)
	if !slices.Contains(ids, p.profile) {
		return nil, nil, fmt.Errorf("it was acknowledged as profile %s and is %s now, which was %v", p.profile, data.ProfileID, data.MergedIDs)
	}
	return &human{profile: data.ProfileID, tags: data.Tags, attributes: data.Attributes, enrolments: map[string][]enrolment{}}, ids, nil
}

// lookInto asks for the events and the enrolments of a person.
func (l *Load) lookInto(ctx context.Context, h *human) error {
	for cursor := ""; ; {
		var page struct {
			Events []fact
			Next   *string
		}
		path := "/profiles/" + h.profile + "/events?limit=500&cursor=" + url.QueryEscape(cursor)
		if err := l.client.Console(ctx, "GET", path, nil, &page); err != nil {
			return err
		}
		h.facts = append(h.facts, page.Events...)
		if page.Next == nil {
			break
		}
		cursor = *page.Next
	}
	slices.Reverse(h.facts)
	for _, f := range l.world.flows {
		enrolments, err := l.client.Enrolments(ctx, f.id, h.profile)
		if err != nil {
			return err
		}
		for _, e := range enrolments {
			h.enrolments[f.name] = append(h.enrolments[f.name], enrolment{e})
		}
	}
	return nil
}
